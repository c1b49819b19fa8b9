//! Instructions that fault if their operand in memory does not lie at a multiple of its size.

use super::effects::InstructionSet;
use iced_x86::{Decoder, DecoderOptions, EncodingKind, Mnemonic, OpKind};

/// The alignment that the instruction requires of its operand in memory. `bytes` begin with it and may continue behind
/// it. Only x86 is covered.
pub(crate) fn asked_alignment(set: InstructionSet, bytes: &[u8]) -> Option<u64> {
    let bits = match set {
        InstructionSet::X86_64 => 64,
        InstructionSet::I386 => 32,
        _ => return None,
    };
    let instruction = Decoder::new(bits, bytes, DecoderOptions::NONE).decode();
    if !(0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory) {
        return None;
    }
    let operand_bytes = instruction.memory_size().size() as u64;
    match instruction.mnemonic() {
        Mnemonic::Movaps
        | Mnemonic::Movapd
        | Mnemonic::Movdqa
        | Mnemonic::Movntps
        | Mnemonic::Movntpd
        | Mnemonic::Movntdq
        | Mnemonic::Movntdqa
        | Mnemonic::Cmpxchg16b
        | Mnemonic::Vmovaps
        | Mnemonic::Vmovapd
        | Mnemonic::Vmovdqa
        | Mnemonic::Vmovdqa32
        | Mnemonic::Vmovdqa64
        | Mnemonic::Vmovntps
        | Mnemonic::Vmovntpd
        | Mnemonic::Vmovntdq
        | Mnemonic::Vmovntdqa => Some(operand_bytes),
        Mnemonic::Movups
        | Mnemonic::Movupd
        | Mnemonic::Movdqu
        | Mnemonic::Lddqu
        | Mnemonic::Pcmpestri
        | Mnemonic::Pcmpestrm
        | Mnemonic::Pcmpistri
        | Mnemonic::Pcmpistrm => None,
        // Older instructions on whole vectors ask for it as well, such as `addps (%rdi),%xmm0`.
        _ => (instruction.encoding() == EncodingKind::Legacy && operand_bytes == 16).then_some(16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_forms_ask_for_what_they_move_and_others_for_nothing() {
        let x86 = |bytes: &[u8]| asked_alignment(InstructionSet::X86_64, bytes);
        assert_eq!(x86(&[0x0f, 0x28, 0x47, 0x10]), Some(16), "movaps 16(%rdi),%xmm0");
        assert_eq!(x86(&[0x66, 0x0f, 0x7f, 0x07, 0x90]), Some(16), "movdqa %xmm0,(%rdi)");
        assert_eq!(x86(&[0xc5, 0xfc, 0x28, 0x07]), Some(32), "vmovaps (%rdi),%ymm0");
        assert_eq!(x86(&[0xf0, 0x48, 0x0f, 0xc7, 0x0f]), Some(16), "lock cmpxchg16b (%rdi)");
        assert_eq!(x86(&[0x0f, 0x58, 0x07]), Some(16), "addps (%rdi),%xmm0");
        assert_eq!(x86(&[0x0f, 0x10, 0x07]), None, "movups (%rdi),%xmm0");
        assert_eq!(x86(&[0xc5, 0xfc, 0x10, 0x07]), None, "vmovups (%rdi),%ymm0");
        assert_eq!(x86(&[0xc5, 0xfc, 0x58, 0x07]), None, "vaddps (%rdi),%ymm0,%ymm0");
        assert_eq!(x86(&[0xf3, 0x0f, 0x10, 0x07]), None, "movss (%rdi),%xmm0");
        assert_eq!(x86(&[0x0f, 0x28, 0xc1]), None, "movaps %xmm1,%xmm0");
        assert_eq!(x86(&[0x48, 0x8b, 0x07]), None, "mov (%rdi),%rax");
        assert_eq!(asked_alignment(InstructionSet::AArch64, &[0x00, 0x00, 0xc0, 0x3d]), None, "ldr q0,[x0]");
    }
}
