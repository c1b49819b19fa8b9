//! x86-64, after the opcode maps of Intel's manual, volume 2, appendix A.

use super::{Flow, Insn};
use iced_x86::{Decoder, DecoderError, DecoderOptions};
use lineup_model::abi::Machine;

/// True when the bytes are the beginning of an instruction and no more; never on other machines.
pub(super) fn is_cut_off(machine: Machine, bytes: &[u8]) -> bool {
    let bits = match machine {
        Machine::X86_64 => 64,
        Machine::I386 => 32,
        Machine::AArch64 | Machine::Arm => return false,
    };
    let mut decoder = Decoder::new(bits, bytes, DecoderOptions::NONE);
    decoder.decode().is_invalid() && decoder.last_error() == DecoderError::NoMoreBytes
}

pub(super) fn decode(bytes: &[u8]) -> Insn {
    let mut repeat = false;
    let mut rest = bytes;
    loop {
        match rest {
            [0xf2 | 0xf3, tail @ ..] => {
                repeat = true;
                rest = tail;
            }
            [0x66 | 0x67 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x40..=0x4f, tail @ ..] => rest = tail,
            _ => break,
        }
    }
    let (flow, on_stack) = match rest {
        [0xe8, ..] => (Flow::Call, true),
        [0xc2 | 0xc3 | 0xca | 0xcb, ..] => (Flow::Return, true),
        [0xff, modrm, ..] => match (modrm >> 3) & 7 {
            2 | 3 => (Flow::Call, true),
            4 | 5 => (Flow::Indirect, false),
            // push with a memory operand
            _ => (Flow::Plain, false),
        },
        // push and pop of a register
        [0x50..=0x5f, ..] => (Flow::Plain, true),
        _ => (Flow::Plain, false),
    };
    let string = matches!(rest.first(), Some(0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf));
    Insn { flow, repeats: repeat && string, multiple: false, on_stack }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(bytes: &[u8]) -> Flow {
        decode(bytes).flow
    }

    #[test]
    fn calls_returns_and_jumps_are_told_apart() {
        assert_eq!(flow(&[0xe8, 1, 2, 3, 4]), Flow::Call);
        assert_eq!(flow(&[0xff, 0xd0]), Flow::Call); // call *%rax
        assert_eq!(flow(&[0x41, 0xff, 0xd4]), Flow::Call); // call *%r12
        assert_eq!(flow(&[0xff, 0x15, 0, 0, 0, 0]), Flow::Call); // call *0(%rip)
        assert_eq!(flow(&[0xff, 0x25, 0, 0, 0, 0]), Flow::Indirect); // jmp *0(%rip)
        assert_eq!(flow(&[0xf2, 0xff, 0x25, 0, 0, 0, 0]), Flow::Indirect); // bnd jmp *0(%rip)
        assert_eq!(flow(&[0xc3]), Flow::Return);
        assert_eq!(flow(&[0xf3, 0xc3]), Flow::Return); // rep ret
        assert_eq!(flow(&[0xff, 0x30]), Flow::Plain); // push (%rax)
        assert_eq!(flow(&[0xeb, 0x10]), Flow::Plain);
        assert_eq!(flow(&[0x0f, 0x84, 0, 0, 0, 0]), Flow::Plain);
    }

    #[test]
    fn repeated_string_instructions_are_known() {
        assert!(decode(&[0xf3, 0xa4]).repeats); // rep movsb
        assert!(decode(&[0xf3, 0x48, 0xa5]).repeats); // rep movsq
        assert!(!decode(&[0xa4]).repeats);
        assert!(!decode(&[0xf3, 0xc3]).repeats);
    }

    #[test]
    fn the_beginning_of_an_instruction_is_not_one() {
        let lea = [0x48, 0x8d, 0x40, 0x01]; // lea 1(%rax), %rax
        assert!(!is_cut_off(Machine::X86_64, &lea));
        assert!((0..4).all(|bytes| is_cut_off(Machine::X86_64, &lea[..bytes])));
        assert!(!is_cut_off(Machine::X86_64, &[0xc3]));
        assert!(!is_cut_off(Machine::AArch64, &lea[..2]), "has no such blocks");
    }
}
