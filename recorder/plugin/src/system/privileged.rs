//! What instructions of a kernel do that programs do not have. The instruction sets tell it from their bytes.

use super::flag::Mask;

/// What an instruction does that only kernels do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Privileged {
    /// Turns interrupts off.
    InterruptsOff,
    /// Turns interrupts on.
    InterruptsOn,
    /// Returns from an interrupt or exception, to a kernel or a program.
    InterruptReturn,
    /// Returns from a system call to a program.
    SystemCallReturn,
    /// Reads the interrupt flag into a register, to turn interrupts off and restore it later.
    FlagSave(Mask),
    /// Writes the interrupt flag.
    FlagWrite(Written),
}

/// What is written to the interrupt flag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Written {
    /// On or off.
    Constant { is_on: bool },
    /// What it was when the exception came.
    AtEntry,
    /// What was saved.
    Saved,
}

/// An instruction that reads or writes the interrupt flag through a register: what it does shows in those around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlagAccess {
    Read,
    Write { register: u32 },
}

/// What a vector that comes right after a return from an exception shows of it.
pub(crate) enum Returned {
    ToProgram,
    WithInterruptsOn,
}
