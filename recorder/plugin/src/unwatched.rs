//! Counts of blocks that have no callback.

use crate::ffi::{Api, BlockCount, INLINE_ADD, PerCpu, Tb};
use std::ffi::c_uint;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count that the emulator's own code adds to.
pub(crate) enum Unwatched {
    /// One number for all.
    Shared {
        add: unsafe extern "C" fn(*mut Tb, std::ffi::c_int, *mut std::ffi::c_void, u64),
        count: Box<AtomicU64>,
    },
    /// A number for each virtual CPU.
    PerCpu {
        add: unsafe extern "C" fn(*mut Tb, std::ffi::c_int, PerCpu, u64),
        get: unsafe extern "C" fn(PerCpu, c_uint) -> u64,
        counts: PerCpu,
    },
}

// SAFETY: the emulator keeps the numbers of its virtual CPUs for as long as it runs, and each is read by its own CPU.
unsafe impl Send for Unwatched {}
// SAFETY: as above.
unsafe impl Sync for Unwatched {}

impl Unwatched {
    pub(crate) fn new(api: &Api) -> Unwatched {
        match api.block_count {
            BlockCount::Shared(add) => Unwatched::Shared { add, count: Box::default() },
            BlockCount::PerCpu { new_board, add, get } => {
                // SAFETY: any size is allowed; the board is never freed.
                let board = unsafe { new_board(size_of::<u64>()) };
                Unwatched::PerCpu { add, get, counts: PerCpu { board, offset: 0 } }
            }
        }
    }

    /// Adds `much` at each execution of a block from now on.
    ///
    /// # Safety
    /// `tb` must be the block under translation, and `self` live as long as the process.
    pub(crate) unsafe fn count(&self, tb: *mut Tb, much: u64) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Unwatched::Shared { add, count } => add(tb, INLINE_ADD, count.as_ptr().cast(), much),
                Unwatched::PerCpu { add, counts, .. } => add(tb, INLINE_ADD, *counts, much),
            }
        }
    }

    /// True when each virtual CPU has a number of its own.
    pub(crate) fn is_per_cpu(&self) -> bool {
        matches!(self, Unwatched::PerCpu { .. })
    }

    /// The sum: of this virtual CPU where the emulator counts for each, else of all.
    pub(crate) fn seen(&self, vcpu: c_uint) -> u64 {
        match self {
            Unwatched::Shared { count, .. } => count.load(Ordering::Relaxed),
            // SAFETY: the emulator calls us with the numbers of its virtual CPUs, each of which has a count.
            Unwatched::PerCpu { get, counts, .. } => unsafe { get(*counts, vcpu) },
        }
    }
}
