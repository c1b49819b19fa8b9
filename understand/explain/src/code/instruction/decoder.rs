//! Decoding and calling conventions, by instruction set.

use super::effects::{Convention, Instruction, InstructionSet};
use super::{aarch64, arm, x86};
use crate::error::ExplainError;

/// Decodes `bytes`, which start at link address `address`. Bytes that are no instruction are skipped.
pub fn decode(set: InstructionSet, address: u64, bytes: &[u8]) -> Result<Vec<Instruction>, ExplainError> {
    match set {
        InstructionSet::X86_64 => Ok(x86::decode(x86::Mode::Bits64, address, bytes)),
        InstructionSet::I386 => Ok(x86::decode(x86::Mode::Bits32, address, bytes)),
        InstructionSet::AArch64 => aarch64::decode(address, bytes),
        InstructionSet::A32 => arm::decode(address, bytes, false),
        InstructionSet::Thumb => arm::decode(address, bytes, true),
    }
}

impl Convention {
    /// The standard convention of an instruction set (System V, AAPCS64, AAPCS).
    pub fn of(set: InstructionSet) -> Self {
        match set {
            InstructionSet::X86_64 => x86::CONVENTION_64,
            InstructionSet::I386 => x86::CONVENTION_32,
            InstructionSet::AArch64 => aarch64::CONVENTION,
            InstructionSet::A32 | InstructionSet::Thumb => arm::CONVENTION,
        }
    }
}
