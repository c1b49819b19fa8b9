//! 32-bit Arm, A32 and Thumb, after the encodings of the Arm Architecture Reference Manual.

use super::instruction_set::{InstructionSet, word};
use crate::syscalls::{Call, OF_BOTH_OLD, ThreadBaseArgument, look_up};
use crate::system::privileged::{FlagAccess, Privileged, Returned, Written};
use lineup_follow::flow::{Flow, Insn};

/// The stack pointer, and the link register.
const SP: u32 = 13;
const LR: u32 = 14;

const SYSTEM_CALLS: &[(i64, Call)] = &[(387, Call::ExecAt), (248, Call::ExitGroup), (268, Call::ThreadKill)];

pub(super) struct Arm32;

impl InstructionSet for Arm32 {
    fn decode(&self, bytes: &[u8], is_thumb: bool) -> Insn {
        match *bytes {
            [a, b] => decode_thumb(u16::from_le_bytes([a, b]), 0),
            [a, b, c, d] if is_thumb => decode_thumb(u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])),
            _ => word(bytes).map_or(Insn::PLAIN, decode_a32),
        }
    }

    fn only_leaves(&self, bytes: &[u8], is_thumb: bool) -> bool {
        match bytes {
            // SVC, UDF, BKPT; BX, BLX and moves among all registers
            [_, 0xdf | 0xde | 0xbe | 0x44..=0x47] => true,
            &[a, b, c, d] if !is_thumb => {
                let word = u32::from_le_bytes([a, b, c, d]);
                let is_exchange = matches!(word & 0x0fff_fff0, 0x012f_ff10 | 0x012f_ff30 | 0x01a0_f000);
                let is_trap = matches!(word & 0xfff0_00f0, 0xe120_0070 | 0xe7f0_00f0);
                is_exchange || is_trap || (word & 0x0f00_0000 == 0x0f00_0000 && word >> 28 != 0xf)
            }
            _ => false,
        }
    }

    fn system_call(&self, number: i64) -> Option<Call> {
        look_up(SYSTEM_CALLS, number).or_else(|| look_up(OF_BOTH_OLD, number))
    }

    fn clone_sets_base(&self) -> ThreadBaseArgument {
        ThreadBaseArgument::Fourth
    }

    /// `cpsid i`, `cpsie i`, `msr cpsr_c` with a number, and the returns `ldm ..., {..., pc}^`, `rfe` and `movs pc,
    /// lr`: Arm's manual, F5.1.
    fn privileged(&self, bytes: &[u8]) -> Option<Privileged> {
        let word = word(bytes)?;
        match word {
            _ if word & 0xffff_ff1f == 0xf10c_0000 && word & 0x80 != 0 => Some(Privileged::InterruptsOff),
            _ if word & 0xffff_ff1f == 0xf108_0000 && word & 0x80 != 0 => Some(Privileged::InterruptsOn),
            _ if word & 0xffff_ff00 == 0xe321_f000 => {
                Some(Privileged::FlagWrite(Written::Constant { is_on: word & 0x80 == 0 }))
            }
            _ if word & 0x0e50_8000 == 0x0850_8000 => Some(Privileged::InterruptReturn),
            _ if word & 0xfe50_ffff == 0xf810_0a00 => Some(Privileged::InterruptReturn),
            0xe1b0_f00e => Some(Privileged::InterruptReturn),
            _ => None,
        }
    }

    fn flag_access(&self, bytes: &[u8]) -> Option<FlagAccess> {
        match word(bytes)? {
            word if word & 0xffff_0fff == 0xe10f_0000 => Some(FlagAccess::Read), // mrs rN, cpsr
            word if word & 0xffff_fff0 == 0xe121_f000 => {
                Some(FlagAccess::Write { register: word & 31 }) // msr cpsr_c, rN
            }
            _ => None,
        }
    }

    fn shown_by_vector(&self, pc: u64) -> Option<Returned> {
        match pc {
            0xffff_000c => Some(Returned::ToProgram),
            0xffff_0018 => Some(Returned::WithInterruptsOn),
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

fn decode_a32(word: u32) -> Insn {
    let base = (word >> 16) & 15;
    let unconditional = word >> 28 == 15;
    if word & 0xfe00_0000 == 0xfa00_0000 {
        return insn(Flow::Call, false, false); // BLX immediate
    }
    if unconditional {
        return Insn::PLAIN;
    }
    if word & 0x0f00_0000 == 0x0b00_0000 || word & 0x0fff_fff0 == 0x012f_ff30 {
        return insn(Flow::Call, false, false); // BL, BLX register
    }
    if word & 0x0fff_fff0 == 0x012f_ff10 {
        return insn(returns_when(word & 15 == LR), false, false); // BX
    }
    if word & 0x0fff_fff0 == 0x01a0_f000 {
        return insn(returns_when(word & 15 == LR), false, false); // MOV pc, register
    }
    if word & 0x0e00_0000 == 0x0800_0000 {
        // LDM and STM; a load with bit 15 set loads the pc.
        let loads_pc = word & 0x0010_8000 == 0x0010_8000;
        return insn(if loads_pc { returns_when(base == SP) } else { Flow::Plain }, true, base == SP);
    }
    if word & 0x0c00_0000 == 0x0400_0000 {
        // LDR and STR
        let loads_pc = word & 0x0010_f000 == 0x0010_f000;
        return insn(if loads_pc { returns_when(base == SP) } else { Flow::Plain }, false, base == SP);
    }
    // LDRD and STRD: 000x in bits 27 to 24 with 11x1 in bits 7 to 4 and the load bit clear.
    let double = word & 0x0e10_00d0 == 0x0000_00d0;
    insn(Flow::Plain, double, double && base == SP)
}

fn decode_thumb(first: u16, second: u16) -> Insn {
    let (first, second) = (u32::from(first), u32::from(second));
    if first >> 11 >= 0b11101 {
        return decode_thumb_wide(first, second);
    }
    let register = (first >> 3) & 15;
    match first {
        _ if first & 0xff87 == 0x4700 => insn(returns_when(register == LR), false, false), // BX
        _ if first & 0xff87 == 0x4780 => insn(Flow::Call, false, false),                   // BLX
        _ if first & 0xff87 == 0x4687 => insn(returns_when(register == LR), false, false), // MOV pc
        _ if first & 0xff00 == 0xbd00 => insn(Flow::Return, true, true),                   // POP with pc
        _ if first & 0xf600 == 0xb400 => insn(Flow::Plain, true, true),                    // PUSH, POP
        _ if first & 0xf000 == 0x9000 => insn(Flow::Plain, false, true),                   // LDR, STR on sp
        _ if first & 0xf000 == 0xc000 => insn(Flow::Plain, true, false),                   // LDM, STM
        _ => Insn::PLAIN,
    }
}

fn decode_thumb_wide(first: u32, second: u32) -> Insn {
    let base = first & 15;
    if first & 0xf800 == 0xf000 && (second & 0xd000 == 0xd000 || second & 0xd001 == 0xc000) {
        return insn(Flow::Call, false, false); // BL, BLX immediate
    }
    if first & 0xfe40 == 0xe800 {
        // LDM and STM
        let loads_pc = first & 0x10 != 0 && second & 0x8000 != 0;
        return insn(if loads_pc { returns_when(base == SP) } else { Flow::Plain }, true, base == SP);
    }
    if first & 0xfff0 == 0xe8d0 && second & 0xffe0 == 0xf000 {
        return insn(Flow::Indirect, false, false); // TBB, TBH
    }
    if first & 0xfe40 == 0xe840 {
        return insn(Flow::Plain, true, base == SP); // LDRD, STRD and the exclusives
    }
    if first & 0xff70 == 0xf850 && second & 0xf000 == 0xf000 {
        return insn(returns_when(base == SP), false, base == SP); // LDR pc
    }
    let loads_or_stores = first & 0xfe00 == 0xf800;
    insn(Flow::Plain, false, loads_or_stores && base == SP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a32_flow() {
        let flow = |word| decode_a32(word).flow;
        assert_eq!(flow(0xeb00_0001), Flow::Call); // bl
        assert_eq!(flow(0x1b00_0001), Flow::Call); // blne
        assert_eq!(flow(0xfa00_0001), Flow::Call); // blx label
        assert_eq!(flow(0xe12f_ff33), Flow::Call); // blx r3
        assert_eq!(flow(0xe12f_ff1e), Flow::Return); // bx lr
        assert_eq!(flow(0x012f_ff1e), Flow::Return); // bxeq lr
        assert_eq!(flow(0xe12f_ff13), Flow::Indirect); // bx r3
        assert_eq!(flow(0xe8bd_8010), Flow::Return); // pop {r4, pc}
        assert_eq!(flow(0xe49d_f004), Flow::Return); // pop {pc}
        assert_eq!(flow(0xe5bc_f000), Flow::Indirect); // ldr pc, [ip, #0]!: a stub
        assert_eq!(flow(0xe8bd_0010), Flow::Plain); // pop {r4}
        assert_eq!(flow(0xea00_0001), Flow::Plain); // b
    }

    #[test]
    fn a32_memory() {
        assert!(decode_a32(0xe92d_4010).multiple); // push {r4, lr}
        assert!(decode_a32(0xe92d_4010).on_stack);
        assert!(decode_a32(0xe1c0_20d0).multiple); // ldrd r2, [r0]
        assert!(!decode_a32(0xe590_0000).multiple); // ldr r0, [r0]
    }

    #[test]
    fn thumb_flow() {
        let flow = |first, second| decode_thumb(first, second).flow;
        assert_eq!(flow(0xf000, 0xf801), Flow::Call); // bl
        assert_eq!(flow(0xf000, 0xe802), Flow::Call); // blx label
        assert_eq!(flow(0x4798, 0), Flow::Call); // blx r3
        assert_eq!(flow(0x4770, 0), Flow::Return); // bx lr
        assert_eq!(flow(0xbd10, 0), Flow::Return); // pop {r4, pc}
        assert_eq!(flow(0xe8bd, 0x8010), Flow::Return); // ldmia.w sp!, {r4, pc}
        assert_eq!(flow(0xf85d, 0xfb04), Flow::Return); // ldr.w pc, [sp], #4
        assert_eq!(flow(0xf8dc, 0xf000), Flow::Indirect); // ldr.w pc, [ip]
        assert_eq!(flow(0xe8df, 0xf001), Flow::Indirect); // tbb [pc, r1]
        assert_eq!(flow(0x4718, 0), Flow::Indirect); // bx r3
        assert_eq!(flow(0xf000, 0xb801), Flow::Plain); // b.w
    }

    #[test]
    fn what_only_kernels_do() {
        use Privileged::*;
        let a32 = |word: u32| Arm32.privileged(&word.to_le_bytes());
        assert_eq!(a32(0xe321_f093), Some(FlagWrite(Written::Constant { is_on: false }))); // msr cpsr_c, #0x93
        assert_eq!(a32(0xf10c_0080), Some(InterruptsOff)); // cpsid i
        assert_eq!(a32(0xf108_0080), Some(InterruptsOn)); // cpsie i
        assert_eq!(a32(0xe8fd_ffff), Some(InterruptReturn)); // ldm sp!, {r0-pc}^
        assert_eq!(a32(0xe8bd_8010), None); // pop {r4, pc}
    }

    #[test]
    fn the_flag_moves_through_registers() {
        let a32 = |word: u32| Arm32.flag_access(&word.to_le_bytes());
        assert_eq!(a32(0xe10f_3000), Some(FlagAccess::Read)); // mrs r3, cpsr
        assert_eq!(a32(0xe121_f003), Some(FlagAccess::Write { register: 3 })); // msr cpsr_c, r3
        assert_eq!(a32(0xe14f_3000), None); // mrs r3, spsr
    }
}
