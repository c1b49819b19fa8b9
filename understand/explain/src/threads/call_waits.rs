//! Waits of a kernel's functions in windows that keep the order of all CPUs, by the length of the calls.

use crate::naming::namer::Namer;
use crate::threads::access_log::Use;
use crate::threads::process::{Process, all_tags, waits_of};
use crate::threads::report::{CallWaits, CallsInWindows, WaitedFor, Waits, WaitsByOrder};
use crate::threads::use_names::Names;
use crate::threads::windowed_calls::{Reaches, Within};
use lineup_coherence::PairCounts;
use lineup_model::region::{RegionId, Regions};
use std::collections::BTreeMap;

/// The largest number of data listed for each region.
const MOST_DATA: usize = 12;

/// The waits of each region's calls.
pub(super) fn calls_in_windows(
    reaches: &Reaches,
    processes: &[Process],
    uses: &[Use],
    regions: &Regions,
    namer: &mut Namer<'_>,
) -> Vec<CallsInWindows> {
    let mut calls: BTreeMap<Within, u64> = BTreeMap::new();
    reaches
        .all
        .iter()
        .filter_map(|reach| reaches.kind(reach))
        .for_each(|kind| *calls.entry(kind).or_default() += 1);
    let mut names = Names::new(uses);
    let region = |(region, above): (&RegionId, &f64)| {
        let of = |is_tail| {
            let kind = Within { region: *region, is_tail };
            CallWaits { calls: calls.get(&kind).copied().unwrap_or(0), waits: waits(processes, uses, kind) }
        };
        let (usual, tail) = (of(false), of(true));
        (usual.calls + tail.calls > 0).then(|| CallsInWindows {
            region: regions
                .get(*region)
                .map(|region| lineup_debuginfo::spelled(&region.name))
                .unwrap_or_default(),
            above_instructions: *above,
            data: data((processes, uses), *region, [usual.calls, tail.calls], &mut |tag| {
                names.part(tag, namer)
            }),
            usual,
            tail,
        })
    };
    reaches.unusual.iter().filter_map(region).collect()
}

fn of_kind(uses: &[Use], kind: Within) -> impl Fn(&(&u32, &PairCounts)) -> bool + '_ {
    move |(tag, _)| uses.get(**tag as usize).is_some_and(|used| used.within == Some(kind))
}

fn waits(processes: &[Process], uses: &[Use], kind: Within) -> WaitsByOrder {
    let sum = |order: fn(&Process) -> &lineup_coherence::Outcome| {
        let all = all_tags(processes, order).filter(of_kind(uses, kind));
        all.map(|(_, counts)| waits_of(counts)).fold(Waits::default(), Waits::plus)
    };
    WaitsByOrder {
        recorded: sum(|process| &process.outcomes.recorded),
        fewest: sum(|process| &process.outcomes.fewest),
        most: sum(|process| &process.outcomes.most),
    }
}

/// The waits of the tail's calls and of the others. Data that a call of the tail waits for more often than another one
/// come first.
fn data(
    (processes, uses): (&[Process], &[Use]),
    region: RegionId,
    calls: [u64; 2],
    name: &mut dyn FnMut(u32) -> String,
) -> Vec<WaitedFor> {
    let mut by_name: BTreeMap<String, [Waits; 2]> = BTreeMap::new();
    for (place, is_tail) in [(0, false), (1, true)] {
        let kind = Within { region, is_tail };
        for (tag, counts) in
            all_tags(processes, |process| &process.outcomes.recorded).filter(of_kind(uses, kind))
        {
            let both = by_name.entry(name(*tag)).or_default();
            both[place] = both[place].plus(waits_of(counts));
        }
    }
    let a_call = |waits: Waits, calls: u64| waits.all() as f64 / calls.max(1) as f64;
    let more = |[usual, tail]: [Waits; 2]| a_call(tail, calls[1]) - a_call(usual, calls[0]);
    let mut all: Vec<(String, [Waits; 2])> = by_name.into_iter().collect();
    all.sort_by(|(_, one), (_, other)| more(*other).total_cmp(&more(*one)));
    all.truncate(MOST_DATA);
    all.into_iter().map(|(name, [usual, tail])| WaitedFor { name, usual, tail }).collect()
}
