//! Instructions of a kernel that programs do not have, from their bytes.

use super::flag::Mask;
use lineup_model::abi::Machine;

/// What an instruction does that only kernels do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Privileged {
    /// Turns interrupts off.
    InterruptsOff,
    /// Turns interrupts on.
    InterruptsOn,
    /// Returns from an interrupt or exception, to a kernel or a program.
    InterruptReturn,
    /// Returns from a system call to a program.
    SystemCallReturn,
    /// Reads the interrupt flag into a register, to turn interrupts off and restore it later.
    FlagSave(Mask),
    /// Writes the interrupt flag.
    FlagWrite(Written),
}

/// What is written to the interrupt flag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Written {
    /// On or off.
    Constant { is_on: bool },
    /// What it was when the exception came.
    AtEntry,
    /// What was saved.
    Saved,
}

/// An instruction that reads or writes the interrupt flag through a register: what it does shows in those around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlagAccess {
    Read,
    Write { register: u32 },
}

/// What an instruction does; `None` for ordinary ones.
pub(crate) fn decode(machine: Machine, bytes: &[u8]) -> Option<Privileged> {
    match machine {
        Machine::X86_64 | Machine::I386 => x86(bytes),
        Machine::AArch64 => a64(word(bytes)?),
        Machine::Arm => a32(word(bytes)?),
    }
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// How an instruction moves the interrupt flag between the processor's state and a register; `None` for all others.
pub(crate) fn flag_access(machine: Machine, bytes: &[u8]) -> Option<FlagAccess> {
    let word = word(bytes)?;
    let (low, register) = (word & 0xffff_ffe0, word & 31);
    match machine {
        Machine::AArch64 if low == 0xd53b_4220 => Some(FlagAccess::Read), // mrs xN, daif
        Machine::AArch64 if low == 0xd51b_4220 => Some(FlagAccess::Write { register }), // msr daif, xN
        Machine::Arm if word & 0xffff_0fff == 0xe10f_0000 => Some(FlagAccess::Read), // mrs rN, cpsr
        Machine::Arm if word & 0xffff_fff0 == 0xe121_f000 => Some(FlagAccess::Write { register }), // msr cpsr_c, rN
        _ => None,
    }
}

/// What is written to the flag from a register, by the block's instructions before, the last one first. Only constants
/// and what is taken from an exception's frame are told from what was saved.
pub(crate) fn written<'a>(
    machine: Machine,
    register: u32,
    before: impl Iterator<Item = &'a [u8]>,
) -> Written {
    const ZERO: u32 = 31;
    if machine != Machine::AArch64 {
        return Written::Saved;
    }
    if register == ZERO {
        return Written::Constant { is_on: true };
    }
    // A store names a register in the same place and does not write it.
    let is_store = |word: u32| word & 0x0a40_0000 == 0x0800_0000;
    let mut words = before.filter_map(word);
    match words.find(|word| word & 31 == register && !is_store(*word)) {
        // mov wN, #… and mov xN, #…
        Some(word) if word & 0x7fe0_0000 == 0x5280_0000 => {
            Written::Constant { is_on: word >> 5 & A64_FLAG == 0 }
        }
        // and xN, xM, #0x3c0: the bits of a saved processor state
        Some(word) if word & 0xffff_fc00 == 0x927a_0c00 => Written::AtEntry,
        _ => Written::Saved,
    }
}

/// The interrupt flag in `daif`.
const A64_FLAG: u32 = 0x80;

/// After the opcode maps of Intel's manual, volume 2, appendix A.
fn x86(bytes: &[u8]) -> Option<Privileged> {
    match bytes {
        [0xfa] => Some(Privileged::InterruptsOff),
        [0xfb] => Some(Privileged::InterruptsOn),
        [0xcf] | [0x48, 0xcf] => Some(Privileged::InterruptReturn),
        [0x0f, 0x07 | 0x35] | [0x48, 0x0f, 0x07 | 0x35] => Some(Privileged::SystemCallReturn),
        _ => None,
    }
}

/// `msr daifset` and `daifclr` with the interrupt bit, and `eret`: Arm's manual, C6.2.
fn a64(word: u32) -> Option<Privileged> {
    const INTERRUPT_BIT: u32 = 0x200;
    match word {
        0xd69f_03e0 => Some(Privileged::InterruptReturn),
        _ if word & 0xffff_f0ff == 0xd503_40df && word & INTERRUPT_BIT != 0 => {
            Some(Privileged::InterruptsOff)
        }
        _ if word & 0xffff_f0ff == 0xd503_40ff && word & INTERRUPT_BIT != 0 => Some(Privileged::InterruptsOn),
        _ => None,
    }
}

/// `cpsid i`, `cpsie i`, `msr cpsr_c` with a number, and the returns `ldm ..., {..., pc}^`, `rfe` and `movs pc, lr`: Arm's manual, F5.1.
fn a32(word: u32) -> Option<Privileged> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use Privileged::*;

    #[test]
    fn x86_by_its_bytes() {
        let decode = |bytes: &[u8]| decode(Machine::X86_64, bytes);
        assert_eq!(decode(&[0xfa]), Some(InterruptsOff));
        assert_eq!(decode(&[0xfb]), Some(InterruptsOn));
        assert_eq!(decode(&[0x48, 0xcf]), Some(InterruptReturn));
        assert_eq!(decode(&[0x48, 0x0f, 0x07]), Some(SystemCallReturn));
        assert_eq!(decode(&[0xc3]), None);
    }

    #[test]
    fn arm_by_its_words() {
        let a64 = |word: u32| decode(Machine::AArch64, &word.to_le_bytes());
        assert_eq!(a64(0xd503_42df), Some(InterruptsOff)); // msr daifset, #2
        assert_eq!(a64(0xd503_43df), Some(InterruptsOff)); // msr daifset, #3
        assert_eq!(a64(0xd503_42ff), Some(InterruptsOn)); // msr daifclr, #2
        assert_eq!(a64(0xd503_48df), None); // msr daifset, #8: debug exceptions
        assert_eq!(a64(0xd69f_03e0), Some(InterruptReturn));
        assert_eq!(a64(0xd65f_03c0), None); // ret
        let a32 = |word: u32| decode(Machine::Arm, &word.to_le_bytes());
        assert_eq!(a32(0xe321_f093), Some(FlagWrite(Written::Constant { is_on: false }))); // msr cpsr_c, #0x93
        assert_eq!(a32(0xf10c_0080), Some(InterruptsOff)); // cpsid i
        assert_eq!(a32(0xf108_0080), Some(InterruptsOn)); // cpsie i
        assert_eq!(a32(0xe8fd_ffff), Some(InterruptReturn)); // ldm sp!, {r0-pc}^
        assert_eq!(a32(0xe8bd_8010), None); // pop {r4, pc}
    }

    #[test]
    fn the_flag_moves_through_registers() {
        let a64 = |word: u32| flag_access(Machine::AArch64, &word.to_le_bytes());
        assert_eq!(a64(0xd53b_4233), Some(FlagAccess::Read)); // mrs x19, daif
        assert_eq!(a64(0xd51b_4233), Some(FlagAccess::Write { register: 19 })); // msr daif, x19
        assert_eq!(a64(0xd538_4100), None); // mrs x0, sp_el0
        let a32 = |word: u32| flag_access(Machine::Arm, &word.to_le_bytes());
        assert_eq!(a32(0xe10f_3000), Some(FlagAccess::Read)); // mrs r3, cpsr
        assert_eq!(a32(0xe121_f003), Some(FlagAccess::Write { register: 3 })); // msr cpsr_c, r3
        assert_eq!(a32(0xe14f_3000), None); // mrs r3, spsr
    }

    #[test]
    fn constants_and_frames_are_told_from_what_was_saved() {
        let written = |register: u32, before: &[u32]| {
            let bytes: Vec<[u8; 4]> = before.iter().rev().map(|word| word.to_le_bytes()).collect();
            super::written(Machine::AArch64, register, bytes.iter().map(|bytes| &bytes[..]))
        };
        assert_eq!(written(31, &[]), Written::Constant { is_on: true }); // xzr
        assert_eq!(written(0, &[0xd280_1800]), Written::Constant { is_on: false }); // mov x0, #0xc0
        assert_eq!(written(0, &[0xd280_1800, 0xf900_0020]), Written::Constant { is_on: false }); // str x0, [x1]
        assert_eq!(written(0, &[0xd280_1800, 0xf940_0020]), Written::Saved); // ldr x0, [x1]
        assert_eq!(written(0, &[0xf940_8660, 0x927a_0c00]), Written::AtEntry); // and x0, x0, #0x3c0
        assert_eq!(written(1, &[0xd280_1800]), Written::Saved);
    }
}
