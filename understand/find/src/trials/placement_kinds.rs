//! Placements of the heap's small objects, and the results of their trials: plain values.

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
    /// The share of the stalls for caches and translations that it saves.
    pub gain: f64,
    /// Bytes of memory that it takes more than `malloc`, an estimate; below 0 where it takes less.
    pub more_bytes: i64,
}

/// The savings of other placements of the heap's small objects.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Placements {
    /// Small objects seen in the windows.
    pub objects: u64,
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

impl Placements {
    /// The best one that can be made, if it is a finding.
    pub fn best(&self) -> Option<&PlacementTrial> {
        let mut can = self.trials.iter().filter(|trial| trial.can_be_made);
        can.next().filter(|_| !self.next.is_empty())
    }
}
