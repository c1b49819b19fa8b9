//! The Arm instruction sets, after the encodings of the Arm Architecture Reference Manual.

use super::{Flow, Insn};

/// The stack pointer of A32 and Thumb, and the link register.
const SP: u32 = 13;
const LR: u32 = 14;
/// The stack pointer of A64 where a base register is meant.
const SP64: u32 = 31;
const LR64: u32 = 30;

fn insn(flow: Flow, multiple: bool, on_stack: bool) -> Insn {
    Insn { flow, repeats: false, multiple, on_stack }
}

fn returns_when(condition: bool) -> Flow {
    if condition { Flow::Return } else { Flow::Indirect }
}

pub(super) fn decode_a64(word: u32) -> Insn {
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

/// Loads and stores have bit 27 set and bit 25 clear. Pairs have `101` in bits 29 to 27; bit 26 tells
/// vector from general registers.
fn memory_a64(word: u32, base: u32) -> Insn {
    if word & 0x0a00_0000 != 0x0800_0000 {
        return Insn::PLAIN;
    }
    let general_pair = word & 0x3c00_0000 == 0x2800_0000;
    insn(Flow::Plain, general_pair, base == SP64)
}

pub(super) fn decode_a32(word: u32) -> Insn {
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

pub(super) fn decode_thumb(first: u16, second: u16) -> Insn {
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
    fn a64_flow() {
        let flow = |word| decode_a64(word).flow;
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
    fn a64_memory() {
        let stack_pair = decode_a64(0xa9bf_7bfd); // stp x29, x30, [sp, #-16]!
        assert!(stack_pair.multiple && stack_pair.on_stack);
        assert!(!decode_a64(0xad00_0400).multiple); // stp q0, q1, [x0]
        assert!(decode_a64(0xf940_07e0).on_stack); // ldr x0, [sp, #8]
        assert!(!decode_a64(0xf940_0400).on_stack); // ldr x0, [x0, #8]
    }

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
}
