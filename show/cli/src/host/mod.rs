//! The machine that this program runs on.

pub(crate) mod caches;
pub(crate) mod facts;
