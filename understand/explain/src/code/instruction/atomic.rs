//! Instructions that change memory in one step that no other processor comes between.

use super::effects::InstructionSet;
use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};

/// The effect of such an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Atomic {
    /// Stores a value unconditionally.
    Swaps,
    /// Stores a value if the old one is as expected, or sets a bit and returns its old value.
    Tests,
    /// Anything else: sums, and the halves of changes that other machines make with two instructions.
    Other,
}

/// The effect of an atomic instruction, or of the half of one: an exclusive load or store. `bytes` begin with it and
/// may continue behind it. `None` for all others.
pub(crate) fn atomic(set: InstructionSet, bytes: &[u8]) -> Option<Atomic> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let is_other = match set {
        InstructionSet::X86_64 => return x86(64, bytes),
        InstructionSet::I386 => return x86(32, bytes),
        InstructionSet::AArch64 => word(0).is_some_and(a64),
        InstructionSet::A32 => word(0).is_some_and(a32),
        // The first half of a Thumb instruction stands at the lower address.
        InstructionSet::Thumb => word(0).is_some_and(|word| thumb(word.rotate_left(16))),
    };
    is_other.then_some(Atomic::Other)
}

fn x86(bits: u32, bytes: &[u8]) -> Option<Atomic> {
    let instruction = Decoder::new(bits, bytes, DecoderOptions::NONE).decode();
    let is_memory = |operand| instruction.op_kind(operand) == OpKind::Memory;
    match instruction.mnemonic() {
        Mnemonic::Xchg => (is_memory(0) || is_memory(1)).then_some(Atomic::Swaps),
        _ if !instruction.has_lock_prefix() => None,
        Mnemonic::Cmpxchg | Mnemonic::Bts => Some(Atomic::Tests),
        _ => Some(Atomic::Other),
    }
}

fn a64(word: u32) -> bool {
    let is_exclusive = word & 0x3f80_0000 == 0x0800_0000;
    let is_compare_and_swap = word & 0x3fa0_0000 == 0x08a0_0000;
    let is_operation = word & 0x3b20_0c00 == 0x3820_0000;
    is_exclusive || is_compare_and_swap || is_operation
}

fn a32(word: u32) -> bool {
    word & 0x0f80_0ff0 == 0x0180_0f90 || word & 0x0fb0_0ff0 == 0x0100_0090
}

fn thumb(word: u32) -> bool {
    let is_of_words = word & 0xffe0_0000 == 0xe840_0000;
    let is_of_other_sizes = word & 0xffe0_00c0 == 0xe8c0_0040;
    is_of_words || is_of_other_sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_locks_are_taken_with_is_atomic_and_plain_accesses_are_not() {
        let x86 = |bytes: &[u8]| atomic(InstructionSet::X86_64, bytes);
        assert_eq!(x86(&[0xf0, 0x0f, 0xb1, 0x17, 0x90]), Some(Atomic::Tests), "lock cmpxchg %edx,(%rdi)");
        assert_eq!(x86(&[0x66, 0x87, 0x47, 0x02]), Some(Atomic::Swaps), "xchg %ax,2(%rdi)");
        assert_eq!(x86(&[0xf0, 0xff, 0x07]), Some(Atomic::Other), "lock incl (%rdi)");
        assert_eq!(x86(&[0x65, 0xff, 0x05, 1, 0, 0, 0]), None, "incl %gs:…");
        assert_eq!(x86(&[0xc6, 0x07, 0x00]), None, "movb $0,(%rdi)");
        assert_eq!(x86(&[0x48, 0x87, 0xc3]), None, "xchg %rax,%rbx");
        let is_atomic = |set, bytes: &[u8]| atomic(set, bytes).is_some();
        let a64 = |word: u32| is_atomic(InstructionSet::AArch64, &word.to_le_bytes());
        assert!(a64(0x885f_fc01) && a64(0x8802_7c03), "ldaxr w1,[x0]; stxr w2,w3,[x0]");
        assert!(a64(0x88e1_fc02) && a64(0xb821_0002), "casal w1,w2,[x0]; ldadd w1,w2,[x0]");
        assert!(!a64(0x089f_fc1f) && !a64(0xb940_0001), "stlrb wzr,[x0]; ldr w1,[x0]");
        let a32 = |word: u32| is_atomic(InstructionSet::A32, &word.to_le_bytes());
        assert!(a32(0xe190_3f9f) && a32(0xe180_2f91) && !a32(0xe590_3000), "ldrex; strex; ldr");
        let thumb = |bytes: &[u8]| is_atomic(InstructionSet::Thumb, bytes);
        assert!(thumb(&[0x50, 0xe8, 0x00, 0x3f]), "ldrex r3,[r0]");
        assert!(!thumb(&[0xd0, 0xf8, 0x00, 0x30]) && !thumb(&[0xdf, 0xe8, 0x00, 0xf0]), "ldr.w; tbb");
        assert!(!is_atomic(InstructionSet::X86_64, &[]) && !is_atomic(InstructionSet::AArch64, &[1, 2]));
    }
}
