//! The recorder's knowledge of a machine's instructions and system calls: one [`InstructionSet`] per machine.

mod aarch64;
mod arm;
mod instruction_set;
mod x86;

use instruction_set::InstructionSet;
pub(crate) use lineup_follow::flow::{Flow, Insn};
use lineup_model::machine::CodeMachine;

/// The instruction set of a machine.
pub(crate) fn of(machine: CodeMachine) -> &'static dyn InstructionSet {
    match machine {
        CodeMachine::X86_64 => &x86::X86_64,
        CodeMachine::I386 => &x86::I386,
        CodeMachine::AArch64 => &aarch64::A64,
        CodeMachine::Arm => &arm::Arm32,
    }
}

/// True when a block of a 32-bit Arm program is Thumb, from the addresses and bytes of its instructions. `text` is the
/// emulator's disassembly of the last one, asked for only where the bytes could be either.
pub(crate) fn is_thumb(insns: &[(u64, &[u8])], text: impl FnOnce() -> String) -> bool {
    if insns.iter().any(|(pc, bytes)| bytes.len() == 2 || pc % 4 == 2) {
        return true;
    }
    // The first half of a long Thumb instruction begins with 11101, 11110 or 11111.
    if insns.iter().any(|(_, bytes)| bytes.get(1).is_none_or(|high| high >> 3 < 0b11101)) {
        return false;
    }
    let Some([_, _, _, last]) = insns.last().map(|(_, bytes)| *bytes) else { return false };
    let text = text();
    let mnemonic = text.split_whitespace().next().unwrap_or_default();
    // A32 has its condition in the upper four bits: 1110 always, 1111 for BLX with a label, else as the mnemonic says.
    match mnemonic {
        _ if mnemonic.ends_with(".w") => true,
        "blx" => last >> 4 != 0b1111,
        "bl" => last >> 4 != 0b1110,
        _ if mnemonic.starts_with('b') => false,
        _ => last >> 4 != 0b1110,
    }
}

/// Bytes in a page, the smallest there are.
const PAGE_BYTES: u64 = 4096;

/// True when an instruction that is listed with a block is not executed in it. On x86 a block ends before an
/// instruction that lies across pages, unless that is its first; QEMU 7.2 lists it all the same, with bytes of the
/// first page, and once more, whole, in a block of its own. It reads an address or a constant as a whole: when that
/// lies across pages, bytes of the first page are not listed either.
pub(crate) fn is_only_listed(machine: CodeMachine, index: usize, pc: u64, bytes: &[u8]) -> bool {
    const LONGEST_BYTES: u64 = 15;
    let reaches_pages_end = pc % PAGE_BYTES + LONGEST_BYTES > PAGE_BYTES;
    index > 0 && reaches_pages_end && of(machine).is_cut_off(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syscalls::Call;

    #[test]
    fn each_machine_has_its_own_numbers() {
        let meaning = |machine, number| of(machine).system_call(number);
        assert_eq!(meaning(CodeMachine::X86_64, 59), Some(Call::Exec));
        assert_eq!(meaning(CodeMachine::AArch64, 221), Some(Call::Exec));
        assert_eq!(meaning(CodeMachine::Arm, 11), Some(Call::Exec));
        assert_eq!(meaning(CodeMachine::X86_64, 11), Some(Call::Unmap));
        assert_eq!(meaning(CodeMachine::AArch64, 139), Some(Call::HandlerReturns));
        assert_eq!(meaning(CodeMachine::X86_64, 158), Some(Call::SetBase));
        assert_eq!(meaning(CodeMachine::I386, 243), Some(Call::SetDescriptor));
        assert_eq!(meaning(CodeMachine::Arm, 243), None);
        assert_eq!(meaning(CodeMachine::X86_64, 0), None);
    }

    fn thumb(pc: u64, words: &[&[u8]], text: &str) -> bool {
        let places = words.iter().scan(pc, |pc, bytes| {
            let here = *pc;
            *pc += bytes.len() as u64;
            Some((here, *bytes))
        });
        is_thumb(&places.collect::<Vec<_>>(), || text.to_owned())
    }

    #[test]
    fn a_short_instruction_or_an_odd_half_word_is_thumb() {
        assert!(thumb(0x1000, &[&[0x10, 0xb5], &[0x00, 0xf0, 0x01, 0xf8]], "bl"));
        assert!(thumb(0x1002, &[&[0x00, 0xf0, 0x01, 0xf8]], "bl"));
    }

    #[test]
    fn what_no_long_thumb_instruction_begins_with_is_a32() {
        assert!(!thumb(0x1000, &[&[0x10, 0x40, 0x2d, 0xe9]], "push"));
    }

    #[test]
    fn what_only_leaves_its_block_is_known() {
        let leaves = |machine, bytes: &[u8]| of(machine).only_leaves(bytes, false);
        for bytes in [&[0x0f, 0x05][..], &[0xcd, 0x80], &[0x0f, 0x34], &[0x0f, 0x0b], &[0xcc]] {
            assert!(leaves(CodeMachine::X86_64, bytes), "{bytes:x?}");
        }
        assert!(!leaves(CodeMachine::X86_64, &[0xc3]) && !leaves(CodeMachine::X86_64, &[0x0f, 0x0b, 0x00]));
        assert!(leaves(CodeMachine::AArch64, &[0x01, 0x00, 0x00, 0xd4])); // svc #0
        assert!(leaves(CodeMachine::AArch64, &[0x00, 0x00, 0x20, 0xd4])); // brk #0
        assert!(leaves(CodeMachine::AArch64, &[0xc0, 0x03, 0x5f, 0xd6])); // ret
        assert!(!leaves(CodeMachine::AArch64, &[0xfd, 0x7b, 0xc1, 0xa8])); // ldp x29, x30, [sp], #16
        assert!(leaves(CodeMachine::Arm, &[0x1e, 0xff, 0x2f, 0xe1])); // bx lr
        assert!(!leaves(CodeMachine::Arm, &[0x10, 0x80, 0xbd, 0xe8])); // pop {r4, pc}
        assert!(of(CodeMachine::Arm).only_leaves(&[0x70, 0x47], true)); // bx lr
        assert!(leaves(CodeMachine::Arm, &[0x00, 0x00, 0x00, 0xef])); // svc 0
        assert!(leaves(CodeMachine::Arm, &[0xf0, 0x00, 0xf0, 0xe7])); // udf #0
        assert!(leaves(CodeMachine::Arm, &[0x70, 0x00, 0x20, 0xe1])); // bkpt #0
        assert!(!leaves(CodeMachine::Arm, &[0x10, 0x40, 0x2d, 0xe9])); // push {r4, lr}
        assert!(of(CodeMachine::Arm).only_leaves(&[0x00, 0xdf], true)); // svc 0
        assert!(!of(CodeMachine::Arm).only_leaves(&[0x00, 0xf0, 0x01, 0xef], true)); // long Thumb instructions are none
    }

    #[test]
    fn an_instruction_across_pages_is_listed_before_it_is_executed() {
        let lea = [0x49, 0x8d, 0x96, 0x00, 0x02, 0x00, 0x00]; // lea 0x200(%r14), %rdx
        let is_only_listed =
            |index, pc, bytes: &[u8]| super::is_only_listed(CodeMachine::X86_64, index, pc, bytes);
        // The four bytes of the distance are read at once.
        assert!(is_only_listed(4, 0x1ffa, &lea[..3]) && is_only_listed(4, 0x1ffe, &lea[..2]));
        assert!(!is_only_listed(0, 0x1ffa, &lea) && !is_only_listed(4, 0x1ff9, &lea));
        assert!(!is_only_listed(4, 0x1100, &lea[..3]) && !is_only_listed(4, 0x2000, &lea));
    }

    #[test]
    fn a_lone_branch_is_told_by_its_condition() {
        assert!(!thumb(0x1000, &[&[0xf2, 0xff, 0xff, 0xeb]], "bl #0xfd0"));
        assert!(thumb(0x1000, &[&[0xff, 0xf7, 0xf2, 0xff]], "bl #0xfe8"));
        assert!(!thumb(0x1000, &[&[0xf2, 0xff, 0xff, 0xfa]], "blx #0xfd0"));
        assert!(thumb(0x1000, &[&[0xff, 0xf7, 0xf2, 0xef]], "blx #0xfe8"));
        assert!(!thumb(0x1000, &[&[0xf6, 0xff, 0xff, 0x1a]], "bne #0xfe0"));
        assert!(thumb(0x1000, &[&[0x7f, 0xf4, 0xf6, 0xaf]], "bne.w #0xff0"));
        assert!(thumb(0x1000, &[&[0x5d, 0xf8, 0x04, 0xfb]], "ldr pc, [sp], #4"));
        assert!(!thumb(0x1000, &[&[0x04, 0xf0, 0x9d, 0xe4]], "pop {pc}"));
    }
}
