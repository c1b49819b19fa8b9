//! The effects of an instruction on registers and memory, in terms common to all machines.

mod aarch64;
mod alignment;
mod arm;
mod atomic;
mod capstone_session;
mod decoder;
mod effects;
mod x86;

pub(crate) use alignment::asked_alignment;
pub use atomic::Atomic;
pub(crate) use atomic::atomic;
pub use decoder::decode;
pub use effects::{
    Address, CallTarget, Convention, Expression, Flow, Instruction, InstructionSet, Register, Touch,
};
