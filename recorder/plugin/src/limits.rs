//! Bounds that every part of the recorder keeps to.

/// Virtual CPUs, and so threads at one time, that are recorded at most.
pub(crate) const MAX_THREADS: usize = 4096;

/// The size at which a thread hands its block over, in bytes.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;
