//! Where a kernel is entered, and what else tells its calls, interrupts and tasks apart.

use std::ops::Range;

/// What a recorder must know of a kernel to tell its calls, interrupts and tasks apart. Link addresses, which are
/// runtime addresses too: a kernel that is recorded is booted where it was linked.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct EntryPoints {
    /// The function whose first call starts the recording and whose second call ends it.
    pub marker: u64,
    /// Lowest address of kernel code and data.
    pub kernel_start: u64,
    /// Size and alignment of a kernel stack in bytes: what tells one task's stack from another's.
    pub stack_bytes: u64,
    /// Entries that hardware interrupts take.
    pub interrupts: Vec<u64>,
    /// Entries that exceptions take, and interrupts that cannot be masked.
    pub exceptions: Vec<u64>,
    /// Entries that system calls take.
    pub system_calls: Vec<u64>,
    /// The function that changes stacks from one task to another.
    pub task_switch: Range<u64>,
    /// Functions that wait for a lock by spinning.
    pub spins: Vec<Range<u64>>,
}
