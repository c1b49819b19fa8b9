//! What calls would have missed with the members of some types in another order: the caches run again over the
//! recorded stream.

use crate::files;
use crate::outcome::Outcome;
use anyhow::{Context, Result, bail};
use lineup_advise::offsets_in_order;
use lineup_advise::proposal::Advice;
use lineup_advise::usage::Usage;
use lineup_cache::CacheSpec;
use lineup_explain::Explained;
use lineup_explain::what_if::{NewOrder, Relayout, Replay};
use lineup_model::types::{TypeId, Types};
use lineup_recording::{Counts, Event, Latency, Reader, SystemSummary};
use serde::Serialize;
use std::fmt::Write;
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
pub(crate) fn run(recording: &Path, recorded: &Explained, orders: &[Named], json: bool) -> Result<Outcome> {
    if orders.is_empty() {
        bail!("nothing to try: no order of a type is proposed; name orders in a file");
    }
    let plain: Vec<NewOrder> = orders.iter().map(|named| named.order.clone()).collect();
    let relayout = Relayout::new(recorded.types(), &plain, recorded.objects());
    let found = replay(recording, recorded, relayout)?;
    let objects_of = |ty: TypeId| recorded.objects().iter().filter(|(of, _)| *of == ty).count();
    let regions = recorded.header().regions.iter().enumerate().map(|(index, (_, region))| RegionMisses {
        region: region.name.clone(),
        calls: found.calls.get(index).copied().unwrap_or(0),
        before: found.before.get(index).map_or(Misses::of(&Counts::default()), Misses::of),
        after: found.after.get(index).map_or(Misses::of(&Counts::default()), Misses::of),
    });
    let report = Report {
        schema: "lineup.what-if/1",
        types: orders.iter().map(|named| (named.name.clone(), objects_of(named.order.ty))).collect(),
        reproduces_recording: found.is_exact,
        regions: regions.collect(),
    };
    let printed = match json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => text(&report),
    };
    files::print(&printed)?;
    Ok(Outcome::Done)
}

/// What two replays found.
struct Found {
    before: Vec<Counts>,
    after: Vec<Counts>,
    /// Kept calls of each region.
    calls: Vec<u64>,
    is_exact: bool,
}

fn replay(recording: &Path, recorded: &Explained, relayout: Relayout) -> Result<Found> {
    let header = recorded.header();
    let caches: Vec<CacheSpec> = header
        .caches
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>()
        .context("the recorded caches")?;
    let regions = header.regions.len();
    let mut before = Replay::new(&caches, regions, Relayout::default());
    let mut after = Replay::new(&caches, regions, relayout);
    let mut kept: Vec<std::collections::BTreeSet<u64>> = vec![Default::default(); regions];
    let mut measured = Vec::new();
    let mut system = None;
    for event in reader(recording)? {
        match event {
            Event::Stream(part) => {
                part.iter().for_each(|step| {
                    before.step(step);
                    after.step(step);
                });
            }
            Event::Call(call) => {
                let region = usize::from(call.region.0);
                if let Some(kept) = kept.get_mut(region) {
                    kept.insert(call.sequence);
                }
            }
            Event::Measured(call) => measured.push(call),
            Event::System(last_words) => system = Some(last_words),
            _ => {}
        }
    }
    let latency = latency(system, recording)?;
    let (before, after) = (before.regions(latency), after.regions(latency));
    let seen = |region: usize| -> Counts {
        let is_kept = |call: &&lineup_recording::MeasuredCall| {
            usize::from(call.region.0) == region && kept[region].contains(&call.sequence)
        };
        measured.iter().filter(is_kept).fold(Counts::default(), |sum, call| sum.plus(&call.own))
    };
    let is_exact =
        before.iter().enumerate().all(|(region, before)| Misses::of(&seen(region)) == Misses::of(before));
    let calls = kept.iter().map(|kept| kept.len() as u64).collect();
    Ok(Found { before, after, calls, is_exact })
}

fn reader(recording: &Path) -> Result<Reader<BufReader<std::fs::File>>> {
    let name = || recording.display().to_string();
    Reader::new(BufReader::new(lineup_mapping::open(recording).with_context(name)?)).with_context(name)
}

/// What misses cost, from the recorder's last words, which also say whether the stream is whole.
fn latency(system: Option<SystemSummary>, recording: &Path) -> Result<Latency> {
    let system =
        system.context("the recording was cut off before the recorder's last words; record again")?;
    match system.has_whole_stream {
        true => Ok(system.latency),
        false => bail!(
            "{} holds no whole stream; record with --stream, a larger limit or a shorter workload",
            recording.display()
        ),
    }
}

fn text(report: &Report) -> String {
    let mut out = String::from(
        "If these types were laid anew, predicted by running the caches over the recorded stream:\n",
    );
    for (name, objects) in &report.types {
        let _ = writeln!(out, "  {name}: {objects} objects");
    }
    out.push_str(match report.reproduces_recording {
        true => "The replay of the present layout misses exactly what the recorder saw.\n",
        false => "The replay of the present layout does not miss exactly what the recorder saw: take the figures with doubt.\n",
    });
    let width = report.regions.iter().map(|region| region.region.len()).max().unwrap_or(0).max(6);
    let _ = writeln!(
        out,
        "\n{:width$} {:>6} {:>22} {:>22} {:>26}",
        "region", "calls", "L1D misses a call", "L2 misses a call", "stall cycles a call"
    );
    for region in report.regions.iter().filter(|region| region.calls > 0) {
        let per_call = |count: u64| count as f64 / region.calls as f64;
        let pair = |of: fn(&Misses) -> u64| {
            format!("{:.2} -> {:.2}", per_call(of(&region.before)), per_call(of(&region.after)))
        };
        let _ = writeln!(
            out,
            "{:width$} {:>6} {:>22} {:>22} {:>26}",
            region.region,
            region.calls,
            pair(|misses| misses.data_l1),
            pair(|misses| misses.code_l2 + misses.data_l2),
            pair(|misses| misses.stall_cycles)
        );
    }
    out.push_str("\nA prediction by the cache model, not a measurement.\n");
    out
}
