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

/// How the name of a task is found in a guest's memory: distances are from the beginning of a `task_struct`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TaskStruct {
    /// What the function that changes stacks loads first of the task that it changes to, and stores first of the other.
    pub stack_pointer: u64,
    /// The task's number.
    pub pid: u64,
    /// Its name, in 16 bytes.
    pub name: u64,
    /// Physical addresses of the guest that lie in the emulator's file of its memory, one behind the other from its start.
    pub memory: Range<u64>,
}
