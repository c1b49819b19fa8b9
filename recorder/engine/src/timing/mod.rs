//! Timing calls: stamps at entries and ends, and changes of the caches before some calls.

pub(crate) mod ends;
pub(crate) mod open_calls;
pub(crate) mod stamps;
pub(crate) mod trials;
