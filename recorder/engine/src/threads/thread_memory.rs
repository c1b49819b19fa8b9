//! Memory of a thread, which another may get.

use crate::whole_program::sieve;

/// A thread's memory, which another thread may get when the first is gone.
pub(crate) struct Retired {
    pub(super) owner: u64,
    pub(super) memory: ThreadMemory,
}

/// Addresses of a thread's memory.
#[derive(Clone, Copy)]
pub(crate) struct ThreadMemory {
    pub(super) stack: usize,
    pub(super) table: usize,
    /// When the whole program is recorded.
    pub(super) sieve: Option<(u64, sieve::CachedLines)>,
}
