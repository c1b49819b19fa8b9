//! Hints, the reasons why others were left out, and the doubt that counts leave.

use crate::text::source_place::SourcePlace;
use lineup_stats::proportion::wilson;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// With fewer executions nothing is said.
pub const LEAST_EXECUTIONS: u64 = 10_000;
/// The share that the rarer way has at most.
pub const MOST_SHARE: f64 = 0.001;
/// The level of the share's interval.
pub const LEVEL: f64 = 0.99;

/// Texts with hints, and the hints that were left out.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Hints {
    /// Changed texts by their paths.
    pub edited: BTreeMap<String, String>,
    /// The hints in these texts.
    pub given: Vec<Hint>,
    /// Hints that the counts would have allowed, with the reasons why they were left out.
    pub refused: Vec<RefusedHint>,
}

/// A hint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Hint {
    /// Its place.
    pub at: SourcePlace,
    /// The words that were added, such as `unlikely`.
    pub hint: String,
    /// The condition or the function, as the source spells it.
    pub of: String,
    /// The counts.
    pub because: String,
}

/// A hint that was not given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RefusedHint {
    /// Its place.
    pub at: SourcePlace,
    /// The reason, in one sentence without its stop.
    pub because: String,
}

/// A text that takes the place of some bytes.
pub(super) struct Edit {
    pub(super) bytes: Range<usize>,
    pub(super) text: String,
}

/// Whether the share of `few` in `all` lies below [`MOST_SHARE`] beyond doubt.
pub(super) fn is_beyond_doubt(few: u64, all: u64) -> bool {
    all >= LEAST_EXECUTIONS && wilson(few, all, LEVEL).is_some_and(|[_, high]| high < MOST_SHARE)
}

/// Whether the share of `few` in `all` lies above [`MOST_SHARE`] beyond doubt.
pub(super) fn is_contradicted(few: u64, all: u64) -> bool {
    wilson(few, all, LEVEL).is_some_and(|[low, _]| low > MOST_SHARE)
}
