//! Ranges of the engine's code that a signal may arrive in.

use std::ops::Range;

/// Ranges of the code that signals are checked for.
pub(crate) struct Signals {
    /// Puts the mask back, see [`crate::machine::Gates::unmask`].
    pub(crate) unmask: u64,
    /// The part of it in which signals are delivered.
    pub(crate) delivering: Range<u64>,
    /// The part of the gate that leads back to the cache.
    pub(crate) going_back: Range<u64>,
    /// All of the cache.
    pub(crate) cache: Range<u64>,
    /// The code that patched entries jump to.
    pub(crate) entry: Range<u64>,
}
