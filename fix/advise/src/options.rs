//! The user's options.

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::meaning::Meaning;
use crate::constraints::randomisation::Randomisation;
use crate::order_file::WrittenOrder;
use crate::proposal::Refusal;
use lineup_model::line::LineSize;

/// Options of advice.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// `--pin Type.member`: type and member that keeps its offset.
    pub pins: Vec<(String, String)>,
    /// `--keep Type`: types whose layout is an ABI.
    pub keeps: Vec<String>,
    /// `--lift Type` or `--lift Type.member`: types, or members of them, that comments do not hold.
    pub lifts: Vec<(String, Option<String>)>,
    /// `--line-size`: the line size that decides; 32, 64 or 128.
    pub primary: LineSize,
    /// Whether a type may grow to keep write-shared members away from read-mostly ones.
    pub allow_growth: bool,
    /// The constraints from a compiler's view of the sources.
    pub meaning: Meaning,
    /// `--least-share`: the share of a region's lines, from 0 to 1, that an edit has to save in some region to be in
    /// the patch.
    pub least_share: f64,
    /// `--most-moved`: the upper limit of moves of a member, or of members that move as one, in each type.
    pub most_moved: Option<usize>,
    /// `--order FILE`: orders to write unchanged; when there are any, nothing else is proposed.
    pub orders: Vec<WrittenOrder>,
    /// Whether the configuration of a kernel lets the compiler randomise layouts.
    pub randomisation: Randomisation,
    /// The prefetches to write: trials choose their places and distances.
    pub prefetches: Vec<WantedPrefetch>,
    /// The pools to write: trials choose them.
    pub pools: Vec<WantedPool>,
    /// Changes that were made and tried, and failed: they are refused for this reason.
    pub failed: Vec<FailedTrial>,
}

/// A prefetch to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WantedPrefetch {
    /// The loop, by its place in [`Meaning::chases`].
    pub chase: usize,
    /// Turns of the loop ahead, where the address has a distance.
    pub turns: Option<u32>,
}

/// A pool to write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WantedPool {
    /// The struct of C, by one of its names.
    pub type_name: String,
    /// Bytes of an object.
    pub size_bytes: u64,
    /// Blocks are huge pages.
    pub is_on_huge_pages: bool,
}

/// A change with which the program was worse or did something else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedTrial {
    /// The type or variable that was changed.
    pub owner: String,
    /// The observation.
    pub because: String,
}

impl Options {
    /// The refusal of a type or variable that was tried before.
    pub(crate) fn refusal_of(&self, owner: &str) -> Option<Refusal> {
        let failed = self.failed.iter().find(|failed| failed.owner == owner)?;
        let constraint = Binding::new(Constraint::TrialFailed).because(failed.because.clone());
        Some(Refusal { owner: owner.to_owned(), constraints: vec![constraint], lines: Vec::new() })
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            pins: Vec::new(),
            keeps: Vec::new(),
            lifts: Vec::new(),
            primary: LineSize::B64,
            allow_growth: false,
            meaning: Meaning::default(),
            least_share: 0.01,
            most_moved: None,
            orders: Vec::new(),
            randomisation: Randomisation::Unknown,
            prefetches: Vec::new(),
            pools: Vec::new(),
            failed: Vec::new(),
        }
    }
}
