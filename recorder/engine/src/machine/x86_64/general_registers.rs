//! General registers: their numbers and names, and the one that holds the log in superblocks.

use super::assembly::Gpr;
use iced_x86::Register;

/// The register that holds the log in superblocks.
pub(crate) const LOG: Gpr = Gpr(15);

/// The general register that a register is part of.
pub(crate) fn gpr(register: Register) -> Option<Gpr> {
    (register.is_gpr()).then(|| Gpr((register.full_register() as u32 - Register::RAX as u32) as u8))
}

/// General registers of 64 bits, by number.
pub(crate) const FULL_REGISTERS: [Register; 16] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RSP,
    Register::RBP,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];
