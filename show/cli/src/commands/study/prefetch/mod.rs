//! Prefetches in loops that chase pointers: candidates, trials, changed sources.

mod candidates;
pub(super) mod changed_sources;
pub(super) mod prefetched;
pub(super) mod run;
pub(super) mod stalling;

pub(super) use run::write_details;
