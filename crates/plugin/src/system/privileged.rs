//! Instructions of a kernel that programs do not have, from their bytes.

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

/// `cpsid i`, `cpsie i`, and the returns `ldm ..., {..., pc}^`, `rfe` and `movs pc, lr`: Arm's manual, F5.1.
fn a32(word: u32) -> Option<Privileged> {
    match word {
        _ if word & 0xffff_ff1f == 0xf10c_0000 && word & 0x80 != 0 => Some(Privileged::InterruptsOff),
        _ if word & 0xffff_ff1f == 0xf108_0000 && word & 0x80 != 0 => Some(Privileged::InterruptsOn),
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
        assert_eq!(a32(0xf10c_0080), Some(InterruptsOff)); // cpsid i
        assert_eq!(a32(0xf108_0080), Some(InterruptsOn)); // cpsie i
        assert_eq!(a32(0xe8fd_ffff), Some(InterruptReturn)); // ldm sp!, {r0-pc}^
        assert_eq!(a32(0xe8bd_8010), None); // pop {r4, pc}
    }
}
