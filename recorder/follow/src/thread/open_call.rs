//! Open calls of regions on a thread.

use lineup_recording::CallHead;
use std::collections::BTreeSet;

/// A call of a region under way.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) head: CallHead,
    /// Index of its first access in the thread's accesses.
    pub(super) first_access: usize,
    /// The thread's counts when it began: later counts are the call's.
    pub(super) before: Counted,
    /// Granules of code that were executed in it and in calls that ended in it, but not yet those of open calls in it.
    pub(super) granules: BTreeSet<u64>,
    /// Goes into the recording; else only its instructions are counted.
    pub(super) kept: bool,
}

/// Counts for all open calls at once: each block is counted once, at any depth of recursion.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) instructions: u64,
    pub(super) binding_instructions: u64,
    pub(super) missed_blocks: u64,
    /// Accesses that were not kept.
    pub(super) dropped: u64,
}

/// The dynamic linker at work inside a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    /// Activations open when it began.
    pub(super) depth: usize,
    /// The linker was reached; otherwise control is still in the stub.
    pub(super) begun: bool,
}
