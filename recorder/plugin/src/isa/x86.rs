//! x86, after the opcode maps of Intel's manual, volume 2, appendix A.

use super::instruction_set::InstructionSet;
use crate::syscalls::{Call, OF_BOTH_OLD, ThreadBaseArgument, look_up};
use crate::system::privileged::Privileged;
use iced_x86::{Decoder, DecoderError, DecoderOptions};
use lineup_follow::flow::Insn;

/// 64-bit and 32-bit x86, which differ little in the instructions that end a block.
pub(super) struct X86 {
    bits: u32,
    system_calls: &'static [&'static [(i64, Call)]],
    clone_sets_base: ThreadBaseArgument,
}

pub(super) const X86_64: X86 = X86 {
    bits: 64,
    system_calls: &[&[
        (13, Call::SetHandler),
        (15, Call::HandlerReturns),
        (11, Call::Unmap),
        (25, Call::Unmap),
        (9, Call::Map),
        (59, Call::Exec),
        (322, Call::ExecAt),
        (57, Call::Fork),
        (58, Call::Fork),
        (56, Call::Clone),
        (158, Call::SetBase),
        (60, Call::Exit),
        (231, Call::ExitGroup),
        (62, Call::Kill),
        (200, Call::Kill),
        (234, Call::ThreadKill),
    ]],
    clone_sets_base: ThreadBaseArgument::Fifth,
};

pub(super) const I386: X86 = X86 {
    bits: 32,
    system_calls: &[
        &[(358, Call::ExecAt), (243, Call::SetDescriptor), (252, Call::ExitGroup), (270, Call::ThreadKill)],
        OF_BOTH_OLD,
    ],
    clone_sets_base: ThreadBaseArgument::FourthDescribes,
};

impl InstructionSet for X86 {
    fn decode(&self, bytes: &[u8], _is_thumb: bool) -> Insn {
        lineup_follow::flow::of_x86(bytes)
    }

    fn only_leaves(&self, bytes: &[u8], _is_thumb: bool) -> bool {
        // SYSCALL, SYSENTER, UD2; INT; INT3, HLT
        matches!(bytes, [0x0f, 0x05 | 0x34 | 0x0b] | [0xcd, _] | [0xcc | 0xf4])
    }

    fn is_cut_off(&self, bytes: &[u8]) -> bool {
        let mut decoder = Decoder::new(self.bits, bytes, DecoderOptions::NONE);
        decoder.decode().is_invalid() && decoder.last_error() == DecoderError::NoMoreBytes
    }

    fn system_call(&self, number: i64) -> Option<Call> {
        self.system_calls.iter().find_map(|table| look_up(table, number))
    }

    fn clone_sets_base(&self) -> ThreadBaseArgument {
        self.clone_sets_base
    }

    fn privileged(&self, bytes: &[u8]) -> Option<Privileged> {
        match bytes {
            [0xfa] => Some(Privileged::InterruptsOff),
            [0xfb] => Some(Privileged::InterruptsOn),
            [0xcf] | [0x48, 0xcf] => Some(Privileged::InterruptReturn),
            [0x0f, 0x07 | 0x35] | [0x48, 0x0f, 0x07 | 0x35] => Some(Privileged::SystemCallReturn),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_instruction_is_not_one() {
        let lea = [0x48, 0x8d, 0x40, 0x01]; // lea 1(%rax), %rax
        assert!(!X86_64.is_cut_off(&lea));
        assert!((0..4).all(|bytes| X86_64.is_cut_off(&lea[..bytes])));
        assert!(!X86_64.is_cut_off(&[0xc3]));
    }

    #[test]
    fn what_only_kernels_do() {
        use Privileged::*;
        assert_eq!(X86_64.privileged(&[0xfa]), Some(InterruptsOff));
        assert_eq!(X86_64.privileged(&[0xfb]), Some(InterruptsOn));
        assert_eq!(X86_64.privileged(&[0x48, 0xcf]), Some(InterruptReturn));
        assert_eq!(X86_64.privileged(&[0x48, 0x0f, 0x07]), Some(SystemCallReturn));
        assert_eq!(X86_64.privileged(&[0xc3]), None);
    }
}
