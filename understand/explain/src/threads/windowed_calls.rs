//! Calls of a kernel's functions in windows that keep the order of all CPUs.

use lineup_model::region::RegionId;
use lineup_recording::Reach;
use std::collections::{BTreeMap, BTreeSet};

/// Calls under way around one another, looked through for the innermost.
const MOST_NESTED: usize = 16;

/// A call of a region, as a kind: whether it executes more instructions than usual.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Within {
    pub(super) region: RegionId,
    pub(super) is_tail: bool,
}

/// Calls that lie in windows.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Reaches {
    /// By CPU, in order.
    pub(super) all: Vec<Reach>,
    /// More instructions than these are unusual.
    pub(super) unusual: BTreeMap<RegionId, f64>,
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

    pub(super) fn kind(&self, reach: &Reach) -> Option<Within> {
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
