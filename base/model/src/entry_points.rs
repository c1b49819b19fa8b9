//! A kernel's entry points, and the facts that distinguish its calls, interrupts and tasks.

use std::ops::Range;

/// The facts about a kernel that a recorder needs to distinguish its calls, interrupts and tasks. All addresses are
/// link addresses and also runtime addresses: a recorded kernel is booted where it was linked.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct EntryPoints {
    /// The function whose first call starts the recording and whose second call ends it.
    pub marker: u64,
    /// Lowest address of kernel code and data.
    pub kernel_start: u64,
    /// Size and alignment of a kernel stack in bytes; they distinguish the stacks of tasks.
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

/// The offsets at which a task's name is found in a guest's memory, from the beginning of a `task_struct`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TaskStruct {
    /// The member that the stack-switching function loads first from the next task and stores first to the previous
    /// one.
    pub stack_pointer: u64,
    /// The task's number.
    pub pid: u64,
    /// Its name, in 16 bytes.
    pub name: u64,
    /// Physical addresses of the guest that lie in the emulator's file of its memory, one behind the other from its
    /// start.
    pub memory: Range<u64>,
}
