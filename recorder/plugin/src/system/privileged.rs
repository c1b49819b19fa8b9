//! Instructions that only kernels use. The instruction sets recognise them by their bytes.

use super::flag::Mask;

/// The effect of an instruction that only kernels use.
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

/// The value written to the interrupt flag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Written {
    /// On or off.
    Constant { is_on: bool },
    /// The value when the exception came.
    AtEntry,
    /// A saved value.
    Saved,
}

/// An instruction that reads or writes the interrupt flag through a register: its effect shows in the instructions
/// around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlagAccess {
    Read,
    Write { register: u32 },
}

/// The information that a vector directly after a return from an exception gives on the return.
pub(crate) enum Returned {
    ToProgram,
    WithInterruptsOn,
}
