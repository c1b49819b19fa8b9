//! Bounds that every part of the recorder keeps to.

/// Virtual CPUs, and so threads at one time, that are recorded at most.
pub(crate) const MAX_THREADS: usize = 4096;

/// A thread hands its block over when it holds so much.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;
