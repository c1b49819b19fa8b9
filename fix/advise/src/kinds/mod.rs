//! Kinds of fixes: each proposes, guards and describes one sort of edit or suggestion.

pub mod hints;
pub mod pool;
pub mod prefetch;

pub(crate) mod alignment;
pub(crate) mod cold_part;
pub(crate) mod gather;
pub(crate) mod immediate_values;
pub(crate) mod narrow;
pub(crate) mod order;
pub(crate) mod parting;
pub(crate) mod saving_share;
pub(crate) mod sketch;
pub(crate) mod split;
pub(crate) mod thread_copies;
