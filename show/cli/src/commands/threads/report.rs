//! The values that `lineup threads` shows.

use lineup_explain::threads::BetweenThreads;
use serde::Serialize;

/// The printed JSON.
#[derive(Serialize)]
pub(crate) struct Page<'a> {
    pub(crate) schema: &'static str,
    pub(crate) recording: String,
    pub(crate) wait_cycles: u64,
    /// The number of calls whose recording lacks accesses.
    pub(crate) calls_cut: Option<u64>,
    #[serde(flatten)]
    pub(crate) between: &'a BetweenThreads,
}
