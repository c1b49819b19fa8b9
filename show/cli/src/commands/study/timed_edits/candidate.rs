//! The programs that a study of timed edits compares.

use lineup_advise::options::{WantedPool, WantedPrefetch};

/// A program to try.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Candidate {
    /// Its prefetches.
    pub(crate) prefetches: Vec<WantedPrefetch>,
    /// Its pools.
    pub(crate) pools: Vec<WantedPool>,
    /// Its edits in words.
    pub(crate) words: String,
}

/// The candidates, and a sentence on each loop or type that has none.
#[derive(Default, Debug)]
pub(crate) struct Candidates {
    pub(crate) list: Vec<Candidate>,
    pub(crate) refused: Vec<String>,
}
