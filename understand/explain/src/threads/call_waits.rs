//! Waits of a kernel's functions in windows that keep the order of all CPUs, by the length of the calls.

use crate::naming::namer::Namer;
use crate::threads::collector::Use;
use crate::threads::contention::{Process, all_tags, waits_of};
use crate::threads::report::{CallWaits, CallsInWindows, WaitedFor, Waits, WaitsByOrder};
use crate::threads::use_names::Names;
use lineup_coherence::PairCounts;
use lineup_model::region::{RegionId, Regions};
use lineup_recording::Reach;
use std::collections::{BTreeMap, BTreeSet};

/// Calls under way around one another, looked through for the innermost.
const MOST_NESTED: usize = 16;

/// The largest number of data listed for each region.
const MOST_DATA: usize = 12;

/// A call of a region, as a kind: whether it executes more instructions than usual.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Within {
    region: RegionId,
    is_tail: bool,
}

/// Calls that lie in windows.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Reaches {
    /// By CPU, in order.
    all: Vec<Reach>,
    /// More instructions than these are unusual.
    unusual: BTreeMap<RegionId, f64>,
    /// Windows of which something was kept.
    windows: BTreeSet<u64>,
}

impl Reaches {
    /// Sorts the calls. `unusual` are the counts of instructions beyond which calls are a region's tail; regions
    /// without one are not reported.
    pub(crate) fn new(mut all: Vec<Reach>, unusual: BTreeMap<RegionId, f64>) -> Reaches {
        all.retain(|reach| unusual.contains_key(&reach.region));
        all.sort_unstable();
        Reaches { all, unusual, windows: BTreeSet::new() }
    }

    /// A window is kept. Some of the recorded windows are left out at the end.
    pub(super) fn see_window(&mut self, window: u64) {
        self.windows.insert(window);
    }

    /// Between the passes, drops calls that lie partly in windows that were left out.
    pub(super) fn settle(&mut self) {
        let windows = &self.windows;
        self.all.retain(|reach| reach.windows().all(|window| windows.contains(&window)));
    }

    fn kind(&self, reach: &Reach) -> Option<Within> {
        let above = self.unusual.get(&reach.region)?;
        Some(Within { region: reach.region, is_tail: reach.instructions as f64 > *above })
    }

    /// The innermost call that an access on a CPU, at this level of interrupts, belongs to.
    pub(super) fn at(&self, cpu: u32, level: u32, at: u64) -> Option<Within> {
        let after = self.all.partition_point(|reach| (reach.cpu, reach.from) <= (cpu, at));
        let near = self.all[..after].iter().rev().take(MOST_NESTED);
        let is_around = |reach: &&Reach| reach.cpu == cpu && reach.level == level && at < reach.to;
        near.filter(is_around).max_by_key(|reach| reach.from).and_then(|reach| self.kind(reach))
    }

    /// The waits of each region's calls.
    pub(super) fn told(
        &self,
        processes: &[Process],
        uses: &[Use],
        regions: &Regions,
        namer: &mut Namer<'_>,
    ) -> Vec<CallsInWindows> {
        let mut calls: BTreeMap<Within, u64> = BTreeMap::new();
        self.all
            .iter()
            .filter_map(|reach| self.kind(reach))
            .for_each(|kind| *calls.entry(kind).or_default() += 1);
        let mut names = Names::new(uses);
        let region = |(region, above): (&RegionId, &f64)| {
            let of = |is_tail| {
                let kind = Within { region: *region, is_tail };
                CallWaits {
                    calls: calls.get(&kind).copied().unwrap_or(0),
                    waits: waits(processes, uses, kind),
                }
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
        self.unusual.iter().filter_map(region).collect()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_belongs_to_the_innermost_call_of_its_own_level() {
        let reach = |region, level, from, to, instructions| Reach {
            cpu: 0,
            from,
            to,
            region: RegionId(region),
            sequence: from,
            level,
            instructions,
        };
        let all = vec![
            reach(0, 1, 10, 40, 900),
            reach(1, 1, 20, 30, 50),
            reach(0, 2, 24, 26, 100),
            reach(2, 1, 32, 36, 9),
        ];
        let reaches = Reaches::new(all, [(RegionId(0), 500.0), (RegionId(1), 60.0)].into_iter().collect());
        let at = |level, at| reaches.at(0, level, at).map(|within| (within.region.0, within.is_tail));
        assert_eq!(
            [9, 10, 20, 30, 33, 40].map(|place| at(1, place)),
            [
                None,
                Some((0, true)),
                Some((1, false)),
                Some((0, true)),
                // A region without a tail is not reported.
                Some((0, true)),
                None
            ]
        );
        assert_eq!((at(2, 25), at(0, 25), reaches.at(1, 1, 15)), (Some((0, false)), None, None));
        let mut left = reaches.clone();
        left.settle();
        assert_eq!(left.all, []);
        left = reaches.clone();
        left.see_window(0);
        left.settle();
        assert_eq!(left.all, reaches.all);
    }
}
