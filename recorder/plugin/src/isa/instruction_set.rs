//! The recorder's knowledge of one machine's instructions.

use crate::syscalls::{Call, ThreadBaseArgument};
use crate::system::privileged::{FlagAccess, Privileged, Returned, Written};
use lineup_follow::flow::Insn;

/// The recorder's knowledge of a machine beyond its [`lineup_model::machine::Description`]. To add a machine, implement
/// it in a file of its own and name it in [`super::of`].
pub(crate) trait InstructionSet: Sync {
    /// Decodes an instruction. `is_thumb` gives the instruction set of its block, see [`super::is_thumb`].
    fn decode(&self, bytes: &[u8], is_thumb: bool) -> Insn;

    /// True for instructions that leave their block for the kernel or for a register's address, and access no memory.
    /// Such an instruction must get no callback for memory: QEMU 7.2 keeps the callback for the next access by a
    /// helper, and frees it when the first thread is started.
    fn only_leaves(&self, bytes: &[u8], is_thumb: bool) -> bool;

    /// True when the bytes are only the beginning of an instruction. Never on machines whose instructions do not cross
    /// pages.
    fn is_cut_off(&self, _bytes: &[u8]) -> bool {
        false
    }

    /// The meaning of a system call's number.
    fn system_call(&self, number: i64) -> Option<Call>;

    /// The argument of `clone` that holds the new thread's base.
    fn clone_sets_base(&self) -> ThreadBaseArgument;

    /// The effect of an instruction that only kernels use; `None` for ordinary ones.
    fn privileged(&self, bytes: &[u8]) -> Option<Privileged>;

    /// The direction in which an instruction moves the interrupt flag between the processor's state and a register;
    /// `None` for all others.
    fn flag_access(&self, _bytes: &[u8]) -> Option<FlagAccess> {
        None
    }

    /// The value written to the flag from a register, by the block's instructions before, the last one first. Only
    /// constants and values from an exception's frame are distinguished from saved values.
    fn written(&self, _register: u32, _before: &mut dyn Iterator<Item = &[u8]>) -> Written {
        Written::Saved
    }

    /// The information that an exception's vector gives on the code that it came from.
    fn shown_by_vector(&self, _pc: u64) -> Option<Returned> {
        None
    }
}

/// The word of an instruction of four bytes.
pub(super) fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}
