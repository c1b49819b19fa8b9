//! Jumps that count `rcx`, or look at it.

use iced_x86::Code as Opcode;

/// The opcode of a jump that counts `rcx`, or looks at it.
pub(crate) fn counted_opcode(code: Opcode) -> Option<&'static [u8]> {
    match code {
        Opcode::Loopne_rel8_64_RCX => Some(&[0xe0]),
        Opcode::Loope_rel8_64_RCX => Some(&[0xe1]),
        Opcode::Loop_rel8_64_RCX => Some(&[0xe2]),
        Opcode::Jrcxz_rel8_64 => Some(&[0xe3]),
        Opcode::Jecxz_rel8_64 => Some(&[0x67, 0xe3]),
        _ => None,
    }
}

/// A jump that counts `rcx`, or looks at it.
pub(crate) fn is_counted(code: Opcode) -> bool {
    counted_opcode(code).is_some()
}
