//! Contention between threads for cache lines.

pub(crate) mod contention;
pub(crate) mod line_fights;
pub(crate) mod lock_waits;
pub(crate) mod shared_words;
