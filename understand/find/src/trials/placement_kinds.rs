//! Placements of the heap's small objects, and the results of their trials: plain values.

use crate::stalls::page_stalls::PageCosts;
use crate::stalls::run_alone::RunAlone;
use serde::Serialize;

/// A placement of the heap's small objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlacementKind {
    /// As it is.
    AsIs,
    /// A pool for each size, without headers.
    PoolsBySize,
    /// The same on huge pages.
    PoolsBySizeHuge,
    /// A pool for each place of the code that allocates, and each size.
    PoolsBySite,
    /// The same on huge pages.
    PoolsBySiteHuge,
    /// Huge pages for the heap, with the objects as they are.
    HugePages,
    /// Objects of a size in the order of their first visit. No allocator knows that order.
    FirstVisit,
}

impl PlacementKind {
    /// All others than that of the run.
    pub(super) const TRIED: [PlacementKind; 6] = [
        PlacementKind::PoolsBySize,
        PlacementKind::PoolsBySite,
        PlacementKind::HugePages,
        PlacementKind::PoolsBySizeHuge,
        PlacementKind::PoolsBySiteHuge,
        PlacementKind::FirstVisit,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            PlacementKind::AsIs => "as it is",
            PlacementKind::PoolsBySize => "pools by size, without headers",
            PlacementKind::PoolsBySizeHuge => "pools by size, huge pages",
            PlacementKind::PoolsBySite => "pools by site, without headers",
            PlacementKind::PoolsBySiteHuge => "pools by site, huge pages",
            PlacementKind::HugePages => "huge pages for the heap",
            PlacementKind::FirstVisit => "objects in the order of their first visit",
        }
    }

    /// Whether `lineup study --placement` can make it.
    pub fn can_be_made(self) -> bool {
        !matches!(self, PlacementKind::AsIs | PlacementKind::FirstVisit)
    }

    /// Whether objects have `malloc`'s headers.
    pub(super) fn has_headers(self) -> bool {
        matches!(self, PlacementKind::AsIs | PlacementKind::HugePages)
    }

    pub(super) fn is_huge(self) -> bool {
        use PlacementKind::{HugePages, PoolsBySiteHuge, PoolsBySizeHuge};
        matches!(self, HugePages | PoolsBySiteHuge | PoolsBySizeHuge)
    }
}

/// A placement that was tried on the windows of the run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlacementTrial {
    /// The placement.
    pub kind: PlacementKind,
    /// Whether `lineup study --placement` can make it.
    pub can_be_made: bool,
    /// Lines of data fetched into the first level, in the windows.
    pub l1_misses: u64,
    /// Those from memory.
    pub l2_misses: u64,
    /// Misses of the first level of translations, in the windows.
    pub dtlb_l1_misses: u64,
    /// Those that missed the second level as well.
    pub dtlb_l2_misses: u64,
    /// Pages that the objects seen in the windows lie on.
    pub pages: u64,
    /// The whole run's stalls for caches and translations.
    pub stall_cycles: f64,
    /// The cycles of the run's first touches but for large objects', and of finding the pool of each object where that
    /// depends on its site.
    pub touch_cycles: f64,
    /// The share of both that it saves.
    pub gain: f64,
    /// Bytes of memory that it takes more than `malloc`, an estimate; below 0 where it takes less.
    pub more_bytes: i64,
}

/// The savings of other placements of the heap's small objects.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Placements {
    /// Small objects seen in the windows.
    pub objects: u64,
    /// Instructions of the run.
    pub instructions: u64,
    /// First touches of pages in the run; 0 where they were not counted.
    pub first_touches: u64,
    /// Those of large objects, which stay with the program's allocator.
    pub large_pages: u64,
    /// The share of the run's stalls for data that is of instructions which the windows hardly have. Gains count them as
    /// unchanged.
    pub unobserved: f64,
    /// The windows as they were.
    pub as_is: PlacementTrial,
    /// The placements that were tried, the largest gain first.
    pub trials: Vec<PlacementTrial>,
    /// The gains of the best one that can be made under each cache, in the order of
    /// [`crate::Findings::configurations`]; empty where none saves as much as a finding has to.
    pub gains: Vec<f64>,
    /// The next command; empty where none saves as much.
    pub next: String,
}

/// The allocator of a placement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocator {
    /// The program's, with pools in front of it or without. The C library gives memory back.
    Own,
    /// The program's, with settings to keep freed memory.
    Keeping,
    /// Another one. It serves large objects as well, and keeps freed memory.
    Other,
}

/// The C library gives memory at the end of its heap back from this size on; huge pages are given back whole.
const LEAST_GIVEN_BACK_PAGES: u64 = 32;
/// Page faults above those that the model knows, for a program's start.
const FAULTS_OF_A_START: u64 = 300;

/// Of the instructions of a run, a processor executes so many a cycle where nothing stalls.
const INSTRUCTIONS_PER_CYCLE: u64 = 3;
/// Pages of 4 KiB in a huge one.
const SMALL_IN_HUGE: u64 = 512;
/// The least and the largest share of modelled stalls that a run is taken to wait for. Of the programs that were measured,
/// those that wait for memory most waited for a quarter; cycles beyond that are of slow instructions.
const WAITED: (f64, f64) = (0.05, 0.3);

/// A run, as far as the worth of placements depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub(super) instructions: u64,
    pub(super) first_touches: u64,
    pub(super) large_pages: u64,
    pub(super) alone: RunAlone,
    pub(super) costs: PageCosts,
}

/// Cycles that a placement saves.
struct Saved {
    cycles: f64,
    /// All that the run waits for.
    of: f64,
}

impl Conditions {
    /// The share of stalls that a placement saves with the program's allocator.
    pub(super) fn gain(&self, as_is: &PlacementTrial, placed: &PlacementTrial) -> f64 {
        let saved = self.saved(as_is, placed, Allocator::Own);
        saved.cycles / saved.of.max(1.0)
    }

    /// * A processor overlaps stalls with each other and with work. Only a part of the modelled ones are waited for: the
    ///   cycles of the run beyond its instructions and page faults, at most three tenths of them.
    /// * Page faults beyond the first touches are of memory that was given back: the recording counts a page once.
    fn saved(&self, as_is: &PlacementTrial, placed: &PlacementTrial, allocator: Allocator) -> Saved {
        let again = match self.first_touches {
            0 => 0,
            known => self.alone.page_faults.saturating_sub(known + known / 10 + FAULTS_OF_A_START),
        };
        let small = |count: u64| (count * u64::from(self.costs.first_touch_cycles)) as f64;
        let huge = |count: u64| (count * u64::from(self.costs.huge_first_touch_cycles)) as f64;
        let again_as_is = small(again);
        let again_placed = match (allocator, placed.kind) {
            (Allocator::Keeping | Allocator::Other, _) => 0.0,
            (Allocator::Own, PlacementKind::HugePages) => huge(again / LEAST_GIVEN_BACK_PAGES),
            (Allocator::Own, _) => again_as_is,
        };
        let large_as_is = small(self.large_pages);
        let on_huge = huge(self.large_pages.div_ceil(SMALL_IN_HUGE)).min(large_as_is);
        let large_placed = match (placed.kind.is_huge(), allocator) {
            (false, _) => large_as_is,
            (true, Allocator::Other) => on_huge,
            (true, Allocator::Own | Allocator::Keeping) => f64::midpoint(on_huge, large_as_is),
        };
        let others = |trial: &PlacementTrial, large: f64, again: f64| trial.touch_cycles + large + again;
        let others_as_is = others(as_is, large_as_is, again_as_is);
        let waited = match self.alone.cycles {
            0 => WAITED.1,
            cycles => {
                let working = (self.instructions / INSTRUCTIONS_PER_CYCLE) as f64;
                let waiting = cycles as f64 - working - others_as_is;
                (waiting / as_is.stall_cycles.max(1.0)).clamp(WAITED.0, WAITED.1)
            }
        };
        let of = waited * as_is.stall_cycles + others_as_is;
        let placed = waited * placed.stall_cycles + others(placed, large_placed, again_placed);
        Saved { cycles: of - placed, of }
    }
}

impl Placements {
    /// The share of its time that the run would save in the model, under a placement by an allocator. `alone` is a run
    /// of the program at its own speed. `None` for a placement that was not tried.
    pub fn saved_time(
        &self,
        (kind, allocator): (PlacementKind, Allocator),
        alone: RunAlone,
        costs: PageCosts,
    ) -> Option<f64> {
        let placed = match kind {
            PlacementKind::AsIs => &self.as_is,
            _ => self.trials.iter().find(|trial| trial.kind == kind)?,
        };
        let Placements { instructions, first_touches, large_pages, .. } = *self;
        let conditions = Conditions { instructions, first_touches, large_pages, alone, costs };
        let saved = conditions.saved(&self.as_is, placed, allocator);
        Some(saved.cycles / saved.of.max(alone.cycles as f64).max(1.0))
    }

    /// The best one that can be made, if it is a finding.
    pub fn best(&self) -> Option<&PlacementTrial> {
        let mut can = self.trials.iter().filter(|trial| trial.can_be_made);
        can.next().filter(|_| !self.next.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stalls::page_stalls::CostSource;

    fn trial(kind: PlacementKind, stall_cycles: f64, touch_cycles: f64) -> PlacementTrial {
        PlacementTrial {
            kind,
            can_be_made: kind.can_be_made(),
            l1_misses: 0,
            l2_misses: 0,
            dtlb_l1_misses: 0,
            dtlb_l2_misses: 0,
            pages: 0,
            stall_cycles,
            touch_cycles,
            gain: 0.0,
            more_bytes: 0,
        }
    }

    /// 1,000 stalls and 1,000 first touches of 1 cycle; pools save a tenth of both.
    fn placements() -> Placements {
        Placements {
            objects: 1,
            instructions: 3000,
            first_touches: 1000,
            large_pages: 0,
            unobserved: 0.0,
            as_is: trial(PlacementKind::AsIs, 1000.0, 1000.0),
            trials: vec![
                trial(PlacementKind::PoolsBySize, 900.0, 900.0),
                trial(PlacementKind::HugePages, 1000.0, 100.0),
            ],
            gains: Vec::new(),
            next: String::new(),
        }
    }

    const COSTS: PageCosts = PageCosts {
        first_touch_cycles: 1,
        huge_first_touch_cycles: 320,
        dtlb_l1_cycles: 7,
        dtlb_l2_cycles: 30,
        source: CostSource::Given,
    };

    fn saved(kind: PlacementKind, allocator: Allocator, cycles: u64, page_faults: u64) -> f64 {
        let alone = RunAlone { cycles, page_faults };
        placements().saved_time((kind, allocator), alone, COSTS).expect("it was tried")
    }

    fn is_near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn stalls_count_as_far_as_the_run_alone_waited_for_them() {
        use Allocator::Own;
        use PlacementKind::{HugePages, PoolsBySite, PoolsBySize};
        // Nothing is known of the run alone: three tenths of 1,000 stalls, and 1,000 first touches.
        assert!(is_near(saved(PoolsBySize, Own, 0, 0), 0.1));
        assert!(is_near(saved(HugePages, Own, 0, 0), 900.0 / 1300.0));
        // 1,000 cycles of work, 1,000 of first touches, and 200 more: a fifth of the stalls is waited for.
        assert!(is_near(saved(PoolsBySize, Own, 2200, 0), (20.0 + 100.0) / 2200.0));
        assert!(is_near(saved(HugePages, Own, 2200, 0), 900.0 / 2200.0));
        // Slow instructions.
        assert!(is_near(saved(PoolsBySize, Own, 3000, 0), (30.0 + 100.0) / 3000.0));
        // The processor did not wait at all: a twentieth stays.
        assert!(is_near(saved(PoolsBySize, Own, 1500, 0), (5.0 + 100.0) / 1500.0));
        let alone = RunAlone::default();
        assert_eq!(placements().saved_time((PoolsBySite, Own), alone, COSTS), None);
    }

    #[test]
    fn memory_that_is_given_back_is_touched_again_unless_the_allocator_keeps_it() {
        use Allocator::{Keeping, Other, Own};
        use PlacementKind::{AsIs, HugePages, PoolsBySize};
        // A tenth more than the first touches, and those of a start, are none.
        assert!(is_near(saved(AsIs, Keeping, 0, 1400), 0.0));
        let faults = 1400 + 640;
        assert!(is_near(saved(AsIs, Keeping, 0, faults), 640.0 / 1940.0));
        assert!(is_near(saved(AsIs, Own, 0, faults), 0.0));
        assert!(is_near(saved(PoolsBySize, Other, 0, faults), 770.0 / 1940.0));
        // Each time that 32 pages are given back, a huge page is, for as much as 320 touches.
        assert!(is_near(saved(HugePages, Own, 0, faults), (1940.0 - 400.0 - 20.0 * 320.0) / 1940.0));
    }

    #[test]
    fn large_objects_are_on_huge_pages_of_another_allocator_and_half_of_them_on_the_c_librarys() {
        use Allocator::{Other, Own};
        use PlacementKind::PoolsBySizeHuge;
        let mut placements = placements();
        placements.large_pages = 1024;
        placements.trials.push(trial(PoolsBySizeHuge, 1000.0, 1000.0));
        let saved = |allocator| {
            placements
                .saved_time((PoolsBySizeHuge, allocator), RunAlone::default(), COSTS)
                .expect("it was tried")
        };
        assert!(is_near(saved(Other), (1024.0 - 640.0) / 2324.0));
        assert!(is_near(saved(Own), (1024.0 - 640.0) / 2.0 / 2324.0));
    }
}
