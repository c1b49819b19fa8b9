//! What calls would have missed with the members of some types in another order: the caches run again over the
//! recorded stream.

mod text;

use crate::files;
use crate::outcome::Outcome;
use crate::progress::{ReadInStage, Stages};
use anyhow::{Context, Result, bail};
use lineup_advise::order_file::{self, Arrangement};
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
    /// The type's size as it is, and in this order.
    sizes: [u64; 2],
    order: NewOrder,
}

/// What is printed.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    /// Types laid anew.
    types: Vec<TriedType>,
    /// True when the replay of the present layout missed exactly what the recorder saw.
    reproduces_recording: bool,
    regions: Vec<RegionMisses>,
}

/// A type that is laid anew.
#[derive(Serialize)]
struct TriedType {
    name: String,
    /// Objects of it that the recorded calls used.
    objects: usize,
    /// Of these, how many lay where the new alignment allows no object: they count as if they began before that.
    unaligned: usize,
    size_bytes: u64,
    new_size_bytes: u64,
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
        let members = order.field_order.len();
        let arrangement = Arrangement {
            order: order.field_order.clone(),
            align_bytes: vec![None; members],
            groups: Vec::new(),
        };
        named(recorded, &order.type_name, id, &arrangement)
    };
    advice.orders.iter().filter_map(named).collect()
}

/// Reads a file of orders.
pub(crate) fn read_orders(file: &Path, recorded: &Explained) -> Result<Vec<Named>> {
    let text = lineup_mapping::read_text(file).with_context(|| format!("cannot read {}", file.display()))?;
    let orders = order_file::parse(&text).with_context(|| file.display().to_string())?;
    let types = recorded.types();
    let mut all: Vec<Named> = Vec::new();
    for order in &orders {
        let name = &order.type_name;
        let at = || format!("{}, line {}", file.display(), order.line);
        let id = type_named(types, name)
            .with_context(|| format!("no type {name} in the recorded kernel"))
            .with_context(at)?;
        let (_, aggregate) =
            types.aggregate(id).with_context(|| format!("{name} is no struct")).with_context(at)?;
        let arrangement = order.resolve(aggregate).with_context(|| file.display().to_string())?;
        let named = named(recorded, name, id, &arrangement)
            .with_context(|| format!("the layout of {name} cannot be worked out"))
            .with_context(at)?;
        if let Some(other) = all.iter().find(|other| lies_in(types, &named, other)) {
            bail!("{}: {name} and {} lie in each other: try one at a time", at(), other.name);
        }
        all.push(named);
    }
    Ok(all)
}

/// True when objects of one lie in those of the other, or they are of one type.
fn lies_in(types: &Types, one: &Named, other: &Named) -> bool {
    let holds = |outer: &Named, inner: &Named| {
        let relayout = Relayout::new(types, std::slice::from_ref(&inner.order), &[(outer.order.ty, 0)]);
        relayout.objects(0).0 > 0
    };
    holds(one, other) || holds(other, one)
}

fn named(recorded: &Explained, name: &str, id: TypeId, arrangement: &Arrangement) -> Option<Named> {
    let types = recorded.types();
    let arranged = arrangement.place(types, &Usage::of_explained(recorded), id)?;
    let (ty, _) = types.aggregate(id)?;
    let sizes = [types.size_bytes(ty)?, arranged.size_bytes];
    let offsets_bytes = arranged.offsets_bits.iter().map(|bits| bits / 8).collect();
    let order = NewOrder { ty, offsets_bytes, align_bytes: arranged.align_bytes };
    Some(Named { name: name.to_owned(), sizes, order })
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
    let tried = orders.iter().enumerate().map(|(index, named)| {
        let (objects, unaligned) = relayout.objects(index);
        let [size_bytes, new_size_bytes] = named.sizes;
        TriedType { name: named.name.clone(), objects, unaligned, size_bytes, new_size_bytes }
    });
    let types = tried.collect();
    let name = || recording.display().to_string();
    stages.stage("running the caches over the recorded stream, in MiB");
    let found = compare(reader(recording, stages)?, relayout).with_context(name)?;
    stages.end();
    let named = recorded.header().regions.iter().zip(&found.regions);
    let regions = named.map(|((_, region), found)| RegionMisses {
        region: region.name.clone(),
        calls: found.calls,
        before: Misses::of(&found.before),
        after: Misses::of(&found.after),
    });
    let report = Report {
        schema: "lineup.what-if/2",
        types,
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
