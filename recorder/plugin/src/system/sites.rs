//! The targets of callbacks' pointers: runs of instructions on one line, and instructions that access data.

use super::privileged::Privileged;
use std::collections::HashMap;

/// The event when control reaches a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) enum Role {
    /// No event.
    #[default]
    Plain,
    /// A hardware interrupt began.
    Interrupt,
    /// An exception began.
    Exception,
    /// A system call began.
    SystemCall,
    /// Stacks are about to change from one task's to another's.
    Switch,
    /// The recording begins or ends.
    Marker,
    /// A program's code, not the kernel's.
    User,
}

/// A run of instructions of one block that lie on one line. Never freed: the emulator keeps pointers. Callbacks read it
/// each time the run begins: it lies on one line of the host's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(align(32))]
pub(crate) struct Run {
    pub(crate) pc: u64,
    pub(crate) size_bytes: u32,
    pub(crate) instructions: u32,
    /// A string instruction, executed again for every element.
    pub(crate) repeats: bool,
    /// Part of a function that spins for a lock.
    pub(crate) spins: bool,
    pub(crate) is_user: bool,
    /// The role of a block that begins here.
    pub(crate) role: Role,
    /// A block that a call may return to, on machines that keep the return address in a register.
    pub(crate) is_landing: bool,
    /// The region that begins here.
    pub(crate) entry: Option<u16>,
}

/// The meaning of an access besides its address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Meaning {
    /// No further meaning.
    Plain,
    /// A call stores its return address.
    Call,
    /// A return loads it.
    Return,
    /// A return from an interrupt reads its frame.
    InterruptReturn,
    /// A register is taken from the stack that a task switch changed to.
    SwitchedStack,
    /// The function that changes stacks uses the description of a task.
    Description,
    /// The stack is used, on machines whose task switch does not use the one it changed to.
    Stack,
}

/// An instruction that accesses data. Never freed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct DataSite {
    pub(crate) pc: u64,
    pub(crate) next_pc: u64,
    pub(crate) is_user: bool,
    /// A string instruction, which accesses its operand piece by piece.
    pub(crate) repeats: bool,
    pub(crate) meaning: Meaning,
}

/// The effect of an instruction that is noted when it is executed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Noted {
    /// An effect that only kernels use.
    Privileged(Privileged),
    /// Calls, on machines that keep the return address in a register.
    Call,
}

/// An instruction that is noted when it is executed. Never freed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct NotedSite {
    pub(crate) pc: u64,
    pub(crate) next_pc: u64,
    pub(crate) what: Noted,
}

/// All of them. The emulator translates the same code again and again: equal ones are made once.
#[derive(Default)]
pub(crate) struct Sites {
    runs: HashMap<Run, &'static Run>,
    data: HashMap<DataSite, &'static DataSite>,
    noted: HashMap<NotedSite, &'static NotedSite>,
}

impl Sites {
    pub(crate) fn run(&mut self, run: Run) -> &'static Run {
        self.runs.entry(run).or_insert_with(|| Box::leak(Box::new(run)))
    }

    pub(crate) fn data(&mut self, site: DataSite) -> &'static DataSite {
        self.data.entry(site).or_insert_with(|| Box::leak(Box::new(site)))
    }

    pub(crate) fn noted(&mut self, site: NotedSite) -> &'static NotedSite {
        self.noted.entry(site).or_insert_with(|| Box::leak(Box::new(site)))
    }
}
