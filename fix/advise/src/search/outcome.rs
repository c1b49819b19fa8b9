//! The order that a search found.

use crate::layout::granules::ONE;
use crate::proposal::FurtherMoves;
use crate::search::score::Score;
use crate::usage::Usage;
use lineup_model::region::RegionId;

/// The best order found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    pub(crate) order: Vec<usize>,
    pub(crate) score: Score,
    /// True when no allowed order needs fewer lines.
    pub(crate) is_proven: bool,
    /// Of an order of few moves: the gain of more.
    pub(crate) further: Option<Further>,
}

/// The gain of the best order found over one of few moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Further {
    /// Moves more than those of the small patch.
    pub(crate) moves: usize,
    /// The region that gains most.
    pub(crate) region: RegionId,
    /// Its lines per call, in units of 2^-20.
    pub(crate) lines: u64,
}

impl Further {
    /// The same for a report.
    pub(crate) fn of(self, usage: &Usage) -> FurtherMoves {
        let region = usage.regions.get(self.region).map(|region| region.name.clone()).unwrap_or_default();
        FurtherMoves { moves: self.moves as u64, region, lines_per_call: self.lines as f64 / ONE as f64 }
    }
}
