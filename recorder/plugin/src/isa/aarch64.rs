//! 64-bit Arm, after the encodings of the Arm Architecture Reference Manual.

use super::instruction_set::{InstructionSet, word};
use crate::syscalls::{Call, ThreadBaseArgument, look_up};
use crate::system::privileged::{FlagAccess, Privileged, Returned, Written};
use lineup_follow::flow::{Flow, Insn};

/// The stack pointer in the place of a base register, and the link register.
const SP64: u32 = 31;
const LR64: u32 = 30;

/// The interrupt flag in `daif`.
const FLAG: u32 = 0x80;

const SYSTEM_CALLS: &[(i64, Call)] = &[
    (134, Call::SetHandler),
    (139, Call::HandlerReturns),
    (215, Call::Unmap),
    (216, Call::Unmap),
    (222, Call::Map),
    (221, Call::Exec),
    (281, Call::ExecAt),
    (220, Call::Clone),
    (93, Call::Exit),
    (94, Call::ExitGroup),
    (129, Call::Kill),
    (130, Call::Kill),
    (131, Call::ThreadKill),
];

pub(super) struct A64;

impl InstructionSet for A64 {
    fn decode(&self, bytes: &[u8], _is_thumb: bool) -> Insn {
        word(bytes).map_or(Insn::PLAIN, decode)
    }

    fn only_leaves(&self, bytes: &[u8], _is_thumb: bool) -> bool {
        // SVC and its like, BRK, HLT; BR, BLR, RET
        matches!(bytes, [_, _, _, 0xd4 | 0xd6 | 0xd7])
    }

    fn system_call(&self, number: i64) -> Option<Call> {
        look_up(SYSTEM_CALLS, number)
    }

    fn clone_sets_base(&self) -> ThreadBaseArgument {
        ThreadBaseArgument::Fourth
    }

    /// `msr daifset` and `daifclr` with the interrupt bit, and `eret`: Arm's manual, C6.2.
    fn privileged(&self, bytes: &[u8]) -> Option<Privileged> {
        const INTERRUPT_BIT: u32 = 0x200;
        match word(bytes)? {
            0xd69f_03e0 => Some(Privileged::InterruptReturn),
            word if word & INTERRUPT_BIT == 0 => None,
            word if word & 0xffff_f0ff == 0xd503_40df => Some(Privileged::InterruptsOff),
            word if word & 0xffff_f0ff == 0xd503_40ff => Some(Privileged::InterruptsOn),
            _ => None,
        }
    }

    fn flag_access(&self, bytes: &[u8]) -> Option<FlagAccess> {
        let word = word(bytes)?;
        match word & 0xffff_ffe0 {
            0xd53b_4220 => Some(FlagAccess::Read), // mrs xN, daif
            0xd51b_4220 => Some(FlagAccess::Write { register: word & 31 }), // msr daif, xN
            _ => None,
        }
    }

    fn written(&self, register: u32, before: &mut dyn Iterator<Item = &[u8]>) -> Written {
        const ZERO: u32 = 31;
        if register == ZERO {
            return Written::Constant { is_on: true };
        }
        // A store names its source in the same place and does not write it.
        let is_store = |word: u32| word & 0x0a40_0000 == 0x0800_0000;
        let mut words = before.filter_map(word);
        match words.find(|word| word & 31 == register && !is_store(*word)) {
            // mov wN, #… and mov xN, #…
            Some(word) if word & 0x7fe0_0000 == 0x5280_0000 => {
                Written::Constant { is_on: word >> 5 & FLAG == 0 }
            }
            // and xN, xM, #0x3c0: the bits of a saved processor state
            Some(word) if word & 0xffff_fc00 == 0x927a_0c00 => Written::AtEntry,
            _ => Written::Saved,
        }
    }

    /// Lower exception levels have vectors of their own; a kernel's next instruction is in memory.
    fn shown_by_vector(&self, pc: u64) -> Option<Returned> {
        match pc {
            _ if pc & 0x47f == 0x400 => Some(Returned::ToProgram),
            _ if pc & 0x7ff == 0x280 => Some(Returned::WithInterruptsOn),
            _ => None,
        }
    }
}

fn insn(flow: Flow, multiple: bool, on_stack: bool) -> Insn {
    Insn { flow, repeats: false, multiple, on_stack }
}

fn returns_when(condition: bool) -> Flow {
    if condition { Flow::Return } else { Flow::Indirect }
}

fn decode(word: u32) -> Insn {
    let base = (word >> 5) & 31;
    let flow = if word >> 26 == 0b10_0101
        || word & 0xfeff_f800 == 0xd63f_0800
        || word & 0xffff_fc1f == 0xd63f_0000
    {
        Flow::Call // BL, BLRA*, BLR
    } else if word & 0xffff_fc1f == 0xd65f_0000 || word & 0xffff_fbff == 0xd65f_0bff {
        Flow::Return // RET, RETA*
    } else if word & 0xffff_fc1f == 0xd61f_0000 {
        returns_when(base == LR64) // BR
    } else if word & 0xfeff_f800 == 0xd61f_0800 {
        Flow::Indirect // BRA*
    } else {
        return memory_a64(word, base);
    };
    insn(flow, false, false)
}

/// Loads and stores have bit 27 set and bit 25 clear. Pairs have `101` in bits 29 to 27; bit 26 distinguishes
/// vector from general registers.
fn memory_a64(word: u32, base: u32) -> Insn {
    if word & 0x0a00_0000 != 0x0800_0000 {
        return Insn::PLAIN;
    }
    let general_pair = word & 0x3c00_0000 == 0x2800_0000;
    insn(Flow::Plain, general_pair, base == SP64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_flow() {
        let flow = |word| decode(word).flow;
        assert_eq!(flow(0x9400_0010), Flow::Call); // bl
        assert_eq!(flow(0xd63f_0020), Flow::Call); // blr x1
        assert_eq!(flow(0xd73f_0822), Flow::Call); // blraa x1, x2
        assert_eq!(flow(0xd65f_03c0), Flow::Return); // ret
        assert_eq!(flow(0xd65f_0bff), Flow::Return); // retaa
        assert_eq!(flow(0xd65f_0fff), Flow::Return); // retab
        assert_eq!(flow(0xd61f_0220), Flow::Indirect); // br x17
        assert_eq!(flow(0xd61f_03c0), Flow::Return); // br x30
        assert_eq!(flow(0x1400_0010), Flow::Plain); // b
    }

    #[test]
    fn memory() {
        let stack_pair = decode(0xa9bf_7bfd); // stp x29, x30, [sp, #-16]!
        assert!(stack_pair.multiple && stack_pair.on_stack);
        assert!(!decode(0xad00_0400).multiple); // stp q0, q1, [x0]
        assert!(decode(0xf940_07e0).on_stack); // ldr x0, [sp, #8]
        assert!(!decode(0xf940_0400).on_stack); // ldr x0, [x0, #8]
    }

    #[test]
    fn what_only_kernels_do() {
        use Privileged::*;
        let a64 = |word: u32| A64.privileged(&word.to_le_bytes());
        assert_eq!(a64(0xd503_42df), Some(InterruptsOff)); // msr daifset, #2
        assert_eq!(a64(0xd503_43df), Some(InterruptsOff)); // msr daifset, #3
        assert_eq!(a64(0xd503_42ff), Some(InterruptsOn)); // msr daifclr, #2
        assert_eq!(a64(0xd503_48df), None); // msr daifset, #8: debug exceptions
        assert_eq!(a64(0xd69f_03e0), Some(InterruptReturn));
        assert_eq!(a64(0xd65f_03c0), None); // ret
    }

    #[test]
    fn the_flag_moves_through_registers() {
        let a64 = |word: u32| A64.flag_access(&word.to_le_bytes());
        assert_eq!(a64(0xd53b_4233), Some(FlagAccess::Read)); // mrs x19, daif
        assert_eq!(a64(0xd51b_4233), Some(FlagAccess::Write { register: 19 })); // msr daif, x19
        assert_eq!(a64(0xd538_4100), None); // mrs x0, sp_el0
    }

    #[test]
    fn constants_and_frames_are_told_from_what_was_saved() {
        let written = |register: u32, before: &[u32]| {
            let bytes: Vec<[u8; 4]> = before.iter().rev().map(|word| word.to_le_bytes()).collect();
            A64.written(register, &mut bytes.iter().map(|bytes| &bytes[..]))
        };
        assert_eq!(written(31, &[]), Written::Constant { is_on: true }); // xzr
        assert_eq!(written(0, &[0xd280_1800]), Written::Constant { is_on: false }); // mov x0, #0xc0
        assert_eq!(written(0, &[0xd280_1800, 0xf900_0020]), Written::Constant { is_on: false }); // str x0, [x1]
        assert_eq!(written(0, &[0xd280_1800, 0xf940_0020]), Written::Saved); // ldr x0, [x1]
        assert_eq!(written(0, &[0xf940_8660, 0x927a_0c00]), Written::AtEntry); // and x0, x0, #0x3c0
        assert_eq!(written(1, &[0xd280_1800]), Written::Saved);
    }
}
