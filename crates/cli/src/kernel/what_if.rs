//! What calls would have missed with the members of some types in another order: the caches run again over the
//! recorded stream.

mod text;

use crate::files;
use crate::outcome::Outcome;
use crate::progress::{ReadInStage, Stages};
use anyhow::{Context, Result, bail};
use lineup_advise::offsets_in_order;
use lineup_advise::proposal::Advice;
use lineup_advise::usage::Usage;
use lineup_explain::Explained;
use lineup_explain::what_if::{NewOrder, Relayout, compare};
use lineup_model::types::{TypeId, Types};
use lineup_recording::{Counts, Reader};
use lineup_study::progress::Progress;
use serde::Serialize;
use std::io::BufReader;
use std::path::Path;

/// An order with the name of its type.
pub(crate) struct Named {
    name: String,
    order: NewOrder,
}

/// What is printed.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    /// Types laid anew, and how many of their objects the recorded calls used.
    types: Vec<(String, usize)>,
    /// True when the replay of the present layout missed exactly what the recorder saw.
    reproduces_recording: bool,
    regions: Vec<RegionMisses>,
}

/// Misses and modelled stalls of all kept calls of one region.
#[derive(Serialize)]
struct RegionMisses {
    region: String,
    calls: u64,
    before: Misses,
    after: Misses,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
struct Misses {
    code_l1: u64,
    code_l2: u64,
    data_l1: u64,
    data_l2: u64,
    stall_cycles: u64,
}

impl Misses {
    fn of(counts: &Counts) -> Misses {
        Misses {
            code_l1: counts.code_misses.l1,
            code_l2: counts.code_misses.l2,
            data_l1: counts.data_misses.l1,
            data_l2: counts.data_misses.l2,
            stall_cycles: counts.code_stall_cycles + counts.data_stall_cycles,
        }
    }
}

/// The orders that advice proposes.
pub(crate) fn proposed(advice: &Advice, recorded: &Explained) -> Vec<Named> {
    let named = |order: &lineup_advise::proposal::OrderProposal| {
        let id = type_named(recorded.types(), &order.type_name)?;
        named(recorded, &order.type_name, id, &order.field_order)
    };
    advice.orders.iter().filter_map(named).collect()
}

/// Reads lines `TYPE: member, member, …`, every member once; `(anonymous)` stands for the nameless ones in turn.
pub(crate) fn read_orders(file: &Path, recorded: &Explained) -> Result<Vec<Named>> {
    let text = lineup_mapping::read_text(file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            parse_order(line, recorded).with_context(|| format!("{}, line {}", file.display(), index + 1))
        })
        .collect()
}

fn parse_order(line: &str, recorded: &Explained) -> Result<Named> {
    let (name, members) = line.split_once(':').context("write TYPE: member, member, …")?;
    let name = name.trim().trim_start_matches("struct ");
    let types = recorded.types();
    let id = type_named(types, name).with_context(|| format!("no type {name} in the recorded kernel"))?;
    let (_, aggregate) = types.aggregate(id).with_context(|| format!("{name} is no struct"))?;
    let mut order = Vec::new();
    for member in members.split(',').map(str::trim) {
        let is_it = |(index, known): (usize, &lineup_model::types::Member)| {
            let known = known.name.as_deref().unwrap_or("(anonymous)");
            (known == member && !order.contains(&index)).then_some(index)
        };
        let found = aggregate.members.iter().enumerate().find_map(is_it);
        order.push(found.with_context(|| format!("{name} has no member {member}, or not so often"))?);
    }
    if order.len() != aggregate.members.len() {
        bail!(
            "{name} has {} members, and {} are in the order: name each",
            aggregate.members.len(),
            order.len()
        );
    }
    named(recorded, name, id, &order).with_context(|| format!("the layout of {name} cannot be worked out"))
}

fn named(recorded: &Explained, name: &str, id: TypeId, order: &[usize]) -> Option<Named> {
    let bits = offsets_in_order(recorded.types(), &Usage::of_explained(recorded), id, order)?;
    let (ty, _) = recorded.types().aggregate(id)?;
    Some(Named {
        name: name.to_owned(),
        order: NewOrder { ty, offsets_bytes: bits.iter().map(|bits| bits / 8).collect() },
    })
}

fn type_named(types: &Types, name: &str) -> Option<TypeId> {
    let is_whole = |id: &TypeId| types.aggregate(*id).is_some_and(|(_, aggregate)| !aggregate.is_declaration);
    types.by_name().get(name)?.iter().copied().find(is_whole)
}

/// Replays the stream twice and prints the difference.
pub(crate) fn run(
    recording: &Path,
    recorded: &Explained,
    orders: &[Named],
    json: bool,
    stages: &Stages,
) -> Result<Outcome> {
    if orders.is_empty() {
        bail!("nothing to try: no order of a type is proposed; name orders in a file");
    }
    let plain: Vec<NewOrder> = orders.iter().map(|named| named.order.clone()).collect();
    let relayout = Relayout::new(recorded.types(), &plain, recorded.objects());
    let name = || recording.display().to_string();
    stages.stage("running the caches over the recorded stream, in MiB");
    let found = compare(reader(recording, stages)?, relayout).with_context(name)?;
    stages.end();
    let objects_of = |ty: TypeId| recorded.objects().iter().filter(|(of, _)| *of == ty).count();
    let named = recorded.header().regions.iter().zip(&found.regions);
    let regions = named.map(|((_, region), found)| RegionMisses {
        region: region.name.clone(),
        calls: found.calls,
        before: Misses::of(&found.before),
        after: Misses::of(&found.after),
    });
    let report = Report {
        schema: "lineup.what-if/1",
        types: orders.iter().map(|named| (named.name.clone(), objects_of(named.order.ty))).collect(),
        reproduces_recording: found.is_exact,
        regions: regions.collect(),
    };
    let printed = match json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => text::text(&report),
    };
    files::print(&printed)?;
    Ok(Outcome::Done)
}

fn reader<'s>(recording: &Path, stages: &'s Stages) -> Result<Reader<BufReader<ReadInStage<'s>>>> {
    let name = || recording.display().to_string();
    let file = ReadInStage::new(lineup_mapping::open(recording).with_context(name)?, stages);
    Reader::new(BufReader::new(file)).with_context(name)
}
