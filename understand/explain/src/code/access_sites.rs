//! The memory operands of instructions, and the known facts about their addresses.

use crate::code::abstract_value::Pointer;
use crate::types::catalog::Ty;
use lineup_model::access::AccessKind;

/// The memory operand of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Site {
    /// Load or store.
    pub kind: AccessKind,
    /// Bytes the operand covers; 0 when unknown.
    pub size_bytes: u32,
    /// The place of the accessed bytes.
    pub place: AccessTarget,
}

/// The known facts about an accessed address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AccessTarget {
    /// Nothing.
    Unknown,
    /// In an object of known type.
    Object(Pointer),
    /// On the stack; the local variable and the offset in it, when known.
    Stack(Option<LocalSpot>),
    /// At a fixed link address, or a known distance from it.
    Fixed,
    /// In the thread's block, this far from its base.
    Thread(i64),
}

/// A byte of a local variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct LocalSpot {
    /// Function and variable, by name number.
    pub variable: u32,
    /// The variable's type.
    pub ty: Ty,
    /// Offset in the variable.
    pub offset: u64,
}
