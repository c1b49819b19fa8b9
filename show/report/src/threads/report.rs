//! The values that `lineup threads` shows.

use lineup_explain::threads::BetweenThreads;
use serde::Serialize;

/// The report, and its JSON form.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ThreadsReport<'a> {
    /// `lineup.threads/1`.
    pub schema: &'static str,
    /// The recording.
    pub recording: String,
    /// Cycles that one wait is taken to cost.
    pub wait_cycles: u64,
    /// The number of calls whose recording lacks accesses.
    pub calls_cut: Option<u64>,
    #[serde(flatten)]
    /// The analysis.
    pub between: &'a BetweenThreads,
}
