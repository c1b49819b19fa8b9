//! The places where a 64-bit Arm kernel saves its interrupt flag.
//!
//! Until 6.3, `local_irq_save` reads the flag and turns interrupts off only if they are on, often far away in the
//! function. Only the code that follows a read of the flag, on the path where the flag is on, shows whether the read is
//! such a save.

use crate::image::KernelImage;
use crate::kallsyms::KernelSymbols;
use crate::scan::u32_at;
use lineup_model::abi::Machine;

/// Instructions followed at most from a read of the flag.
const MAX_STEPS: usize = 16;

/// Images are linked at multiples of this.
const IMAGE_ALIGNMENT: u64 = 2 << 20;

/// The interrupt flag in `daif`, as a bit number, and in the operand of `msr daifset`.
const FLAG_BIT: u32 = 7;
const SET_FLAG: u32 = 0x200;

/// Saves that turn interrupts off only if they are on: the address that reads the flag, and the one that turns
/// interrupts off. Empty for other machines, and for an ELF file, which these machines do not boot.
pub fn conditional(kernel: &KernelImage, symbols: &KernelSymbols) -> Vec<(u64, u64)> {
    // The image begins at `_text`, which its own table leaves out, and text a page or more behind.
    let start = symbols.named("_stext").next().map(|symbol| symbol.address & !(IMAGE_ALIGNMENT - 1));
    let Some(start) = start.filter(|_| kernel.machine == Machine::AArch64 && !kernel.is_elf()) else {
        return Vec::new();
    };
    let code = &kernel.vmlinux;
    let address = |at: usize| start.wrapping_add(at as u64);
    let reads = (0..code.len()).step_by(4).filter_map(|at| Some((at, read_register(u32_at(code, at)?)?)));
    reads.filter_map(|(at, register)| Some((address(at), address(masks_at(code, at, register)?)))).collect()
}

/// The register that `mrs xN, daif` reads the flag into.
fn read_register(word: u32) -> Option<u32> {
    (word & 0xffff_ffe0 == 0xd53b_4220).then_some(word & 31)
}

/// Follows the code after a read of the flag, on the path where interrupts are on, to the instruction that turns them
/// off. `None` when the search ends before it, or when nothing on the path depends on the flag.
fn masks_at(code: &[u8], read_at: usize, register: u32) -> Option<usize> {
    let mut at = read_at.checked_add(4)?;
    // The registers that hold the read value, one bit each.
    let mut copies: u32 = 1 << register;
    let holds = |copies: u32, register: u32| copies >> (register & 31) & 1 == 1;
    // The register that holds the flag alone.
    let mut flag_in: Option<u32> = None;
    let mut is_conditional = false;
    for _ in 0..MAX_STEPS {
        let word = u32_at(code, at)?;
        let next = at.checked_add(4)?;
        at = match word {
            _ if word & 0xffff_f0ff == 0xd503_40df && word & SET_FLAG != 0 => {
                return is_conditional.then_some(at);
            }
            // mov wD, wM and mov xD, xM
            _ if word & 0x7fe0_ffe0 == 0x2a00_03e0 && holds(copies, word >> 16) => {
                copies |= 1 << (word & 31);
                next
            }
            // and wD, wN, #0x80
            _ if word & 0xffff_fc00 == 0x1219_0000 && holds(copies, word >> 5) => {
                flag_in = Some(word & 31);
                next
            }
            // cbz and cbnz
            _ if word & 0x7e00_0000 == 0x3400_0000 => {
                flag_in.filter(|flag| *flag == word & 31)?;
                is_conditional = true;
                if word & 1 << 24 == 0 { jump(at, word >> 5, 19)? } else { next }
            }
            // tbz and tbnz
            _ if word & 0x7e00_0000 == 0x3600_0000 => {
                if !holds(copies, word) || word >> 19 & 31 != FLAG_BIT {
                    return None;
                }
                is_conditional = true;
                if word & 1 << 24 == 0 { jump(at, word >> 5, 14)? } else { next }
            }
            // b, and bl to a copy of `local_irq_disable` that the compiler did not inline
            _ if word & 0xfc00_0000 == 0x1400_0000 => jump(at, word, 26)?,
            _ if word & 0xfc00_0000 == 0x9400_0000 && is_conditional => jump(at, word, 26)?,
            _ if leaves(word) => return None,
            _ => next,
        };
    }
    None
}

/// The target of a branch at `at`, whose distance in instructions is the low `bits` of `field`, signed.
fn jump(at: usize, field: u32, bits: u32) -> Option<usize> {
    let distance = (field << (32 - bits)) as i32 >> (32 - bits);
    at.checked_add_signed(isize::try_from(distance).ok()?.checked_mul(4)?)
}

/// True for instructions that end the search: calls, returns, jumps through registers, other branches and traps, and
/// other uses of the flag.
fn leaves(word: u32) -> bool {
    word & 0xfc00_0000 == 0x9400_0000 // bl
        || word & 0xfe00_0000 == 0xd600_0000 // br, blr, ret, eret
        || word & 0xff00_0000 == 0x5400_0000 // b.cond
        || word & 0xff00_0000 == 0xd400_0000 // svc, brk
        || word & 0xffff_f0ff == 0xd503_40ff // msr daifclr
        || word & 0xffdf_ffe0 == 0xd51b_4220 // mrs, msr daif
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Container;
    use crate::symbol::KernelSymbol;

    const READ: u32 = 0xd53b_4220; // mrs x0, daif
    const FLAG: u32 = 0x1219_0001; // and w1, w0, #0x80
    const OFF: u32 = 0xd503_43df; // msr daifset, #3
    const RET: u32 = 0xd65f_03c0;
    const NOP: u32 = 0xd503_201f;
    const BASE: u64 = 0xffff_8000_0800_0000;

    fn found_in(machine: Machine, words: &[u32]) -> Vec<(u64, u64)> {
        let kernel = KernelImage {
            machine,
            container: Container::Arm64Image,
            compression: None,
            banner: String::new(),
            build_id: None,
            vmlinux: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        };
        let text = KernelSymbol { address: BASE + 0x1_0000, kind: 'T', name: "_stext".to_owned() };
        let saves = conditional(&kernel, &KernelSymbols::new(vec![text]));
        saves.into_iter().map(|(read, mask)| (read - BASE, mask - BASE)).collect()
    }

    fn found(words: &[u32]) -> Vec<(u64, u64)> {
        found_in(Machine::AArch64, words)
    }

    #[test]
    fn a_save_leads_to_the_instruction_that_turns_interrupts_off() {
        // cbz w1, +16; … over a branch of a static key
        let words = [NOP, READ, FLAG, 0x3400_0081, RET, NOP, NOP, 0x1400_0002, NOP, 0xd280_0c00, OFF, RET];
        assert_eq!(found(&words), [(4, 0x28)]);
        // cbnz w1, +8
        assert_eq!(found(&[READ, FLAG, 0x3500_0041, OFF, RET]), [(0, 12)]);
        // tbnz w0, #7, +8
        assert_eq!(found(&[READ, 0x3738_0040, OFF, RET]), [(0, 8)]);
        // mov w1, w0; and w0, w1, #0x80; cbnz w0, +8
        assert_eq!(found(&[READ, 0x2a00_03e1, 0x1219_0020, 0x3500_0040, OFF, RET]), [(0, 16)]);
        // bl +8
        assert_eq!(found(&[READ, FLAG, 0x3500_0041, 0x9400_0002, RET, OFF, RET]), [(0, 20)]);
        // Backwards: cbz w1, -8
        assert_eq!(found(&[OFF, READ, FLAG, 0x34ff_ffa1, RET]), [(4, 0)]);
    }

    #[test]
    fn a_read_that_only_looks_is_none() {
        assert_eq!(found(&[READ, FLAG, 0x3400_0041, NOP, 0xd421_0000, OFF]), [], "it warns");
        assert_eq!(found(&[READ, FLAG, 0x3400_0042, OFF, RET]), [], "another register decides");
        assert_eq!(found(&[READ, FLAG, RET, OFF]), []);
        assert_eq!(found(&[READ, OFF, RET]), [], "whatever the flag is");
    }

    #[test]
    fn code_that_is_cut_off_or_goes_round_or_is_another_machines_has_none() {
        assert_eq!(found(&[READ]), []);
        assert_eq!(found(&[READ, FLAG, 0x347f_ffe1]), []);
        assert_eq!(found(&[READ, 0x1400_0000]), []);
        assert_eq!(found_in(Machine::Arm, &[READ, FLAG, 0x3500_0041, OFF, RET]), []);
    }
}
