//! The instructions of a block, each with its logging.

use super::accesses::{AddressForm, Plans};
use iced_x86::Instruction;

/// Accesses that are looked up as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Counted from one.
    pub(crate) number: u8,
    /// Place of its first access.
    pub(crate) place: AddressForm,
    /// From there to the first byte of all.
    pub(crate) low: i8,
    /// From there to the last byte of all.
    pub(crate) span: u16,
}

/// An instruction and its logging.
pub(crate) struct Step {
    pub(super) instruction: Instruction,
    pub(super) plans: Plans,
    /// The pieces that begin with it, when the whole program is recorded.
    pub(super) pieces: Vec<Piece>,
    /// No flag's value matters before it.
    pub(super) has_idle_flags: bool,
    /// Place of the address that it jumps to, when that is in memory.
    pub(super) target: Option<AddressForm>,
}

/// The end of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// Control continues with the next instruction.
    Falls,
    /// The last instruction passes control on.
    Flow,
    /// The next instruction cannot be translated.
    Lost,
}
