//! Instructions that access some elements of a vector alone: by the bits of a mask register, by the highest bits of a
//! vector's elements, or by a vector of indices. The registers that select the elements are logged unchanged.

use crate::machine::x86_64::assembly::{Code, Gpr};
use crate::machine::x86_64::processor_state::UNIT;
use iced_x86::{Instruction, MemorySize, Mnemonic, OpKind, Register, UsedMemory};
use lineup_recording::native::{Form, Gather};

/// The accessed elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Elements {
    /// The form of the logged value.
    pub(crate) form: Form,
    pub(crate) element_bytes: u8,
    /// A gather's indices.
    pub(super) indices: Option<Vector>,
    pub(super) mask: Mask,
}

/// A vector register as an instruction names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Vector {
    pub(super) register: Register,
    pub(super) manner: Manner,
}

/// The instructions that store vectors. A processor with the logged instruction has these as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Manner {
    Old,
    Vex,
    Evex,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mask {
    /// A mask register, by its number, and whether it is for more than 16 elements.
    Bits {
        number: u8,
        is_long: bool,
    },
    Vector(Vector),
    /// The thread's word of this number, see [`crate::threads::slots::Slots::state`].
    State(u8),
}

impl Elements {
    /// Selected by the thread's word of this number.
    pub(crate) fn of_state(word: u8) -> Elements {
        let element_bytes = UNIT as u8;
        Elements { form: Form::Masked, element_bytes, indices: None, mask: Mask::State(word) }
    }

    /// `None` when it cannot be determined; `Some(None)` when all elements are accessed.
    pub(crate) fn of(
        instruction: &Instruction,
        memory: &UsedMemory,
        size: MemorySize,
    ) -> Option<Option<Elements>> {
        if memory.vsib_size() != 0 {
            return gather(instruction, memory, size).map(Some);
        }
        if let Some(mask) = masking_vector(instruction) {
            let element_bytes = u8::try_from(element_bytes(instruction.mnemonic(), size)).ok()?;
            let words = u8::try_from(size.size() / 8).ok()?;
            let form = Form::Lanes(words);
            return Some(Some(Elements { form, element_bytes, indices: None, mask: Mask::Vector(mask) }));
        }
        if !instruction.has_op_mask() {
            return Some(None);
        }
        masked(instruction, size).map(Some)
    }
}

impl Elements {
    /// Whether a mask register's bits select them, for elements that follow each other in memory.
    pub(crate) fn has_bits_alone(&self) -> bool {
        self.form == Form::Masked
    }

    /// Adds an instruction that moves such a mask.
    pub(crate) fn move_bits(&self, code: &mut Code, to: Gpr) {
        if let Mask::Bits { number, is_long } = self.mask {
            move_mask(code, to, number, is_long);
        }
    }
}

/// The size of an element under a mask in a vector, in bytes.
fn element_bytes(mnemonic: Mnemonic, size: MemorySize) -> usize {
    use Mnemonic::{Maskmovdqu, Maskmovq, Vmaskmovdqu};
    if matches!(mnemonic, Maskmovq | Maskmovdqu | Vmaskmovdqu) { 1 } else { size.element_size() }
}

/// By the bits of a mask register.
fn masked(instruction: &Instruction, size: MemorySize) -> Option<Elements> {
    let element_bytes = u8::try_from(size.element_size()).ok().filter(|bytes| *bytes > 0)?;
    let number = (instruction.op_mask() as u32).checked_sub(Register::K0 as u32)? as u8;
    let in_memory = size.size() / usize::from(element_bytes);
    let in_register = lanes(instruction, element_bytes);
    let form = match in_memory {
        _ if is_packing(instruction.mnemonic()) => Form::Packed,
        1 if is_spread(instruction) => Form::Spread(u8::try_from(in_register).ok()?),
        _ => Form::Masked,
    };
    let is_long = in_memory.max(in_register) > 16;
    Some(Elements { form, element_bytes, indices: None, mask: Mask::Bits { number, is_long } })
}

/// One element in memory is used for each lane.
fn is_spread(instruction: &Instruction) -> bool {
    use Mnemonic::{Vbroadcastsd, Vbroadcastss, Vpbroadcastb, Vpbroadcastd, Vpbroadcastq, Vpbroadcastw};
    let spreads = [Vbroadcastsd, Vbroadcastss, Vpbroadcastb, Vpbroadcastd, Vpbroadcastq, Vpbroadcastw];
    instruction.is_broadcast() || spreads.contains(&instruction.mnemonic())
}

/// These put elements together.
fn is_packing(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Vpcompressb
            | Vpcompressw
            | Vpcompressd
            | Vpcompressq
            | Vcompressps
            | Vcompresspd
            | Vpexpandb
            | Vpexpandw
            | Vpexpandd
            | Vpexpandq
            | Vexpandps
            | Vexpandpd
    )
}

/// Bytes of the first register that the instruction names, of vectors.
fn register_bytes(instruction: &Instruction) -> Option<usize> {
    let registers =
        (0..instruction.op_count()).filter(|number| instruction.op_kind(*number) == OpKind::Register);
    let vector =
        |number| Some(instruction.op_register(number)).filter(|register| register.is_vector_register());
    registers.into_iter().find_map(vector).map(Register::size)
}

/// Elements of the instruction's vectors.
fn lanes(instruction: &Instruction, element_bytes: u8) -> usize {
    register_bytes(instruction).unwrap_or(64) / usize::from(element_bytes)
}

fn manner(instruction: &Instruction) -> Manner {
    match instruction.encoding() {
        iced_x86::EncodingKind::EVEX => Manner::Evex,
        iced_x86::EncodingKind::VEX => Manner::Vex,
        _ => Manner::Old,
    }
}

/// The vector that selects the elements of a move before AVX-512.
fn masking_vector(instruction: &Instruction) -> Option<Vector> {
    use Mnemonic::*;
    let register = match instruction.mnemonic() {
        // The destination, the mask, memory; or memory, the mask, the source.
        Vmaskmovps | Vmaskmovpd | Vpmaskmovd | Vpmaskmovq => instruction.op1_register(),
        // Memory, the source, the mask.
        Maskmovq | Maskmovdqu | Vmaskmovdqu => instruction.op2_register(),
        _ => return None,
    };
    Some(Vector { register, manner: manner(instruction) })
}

fn gather(instruction: &Instruction, memory: &UsedMemory, size: MemorySize) -> Option<Elements> {
    let element_bytes = u8::try_from(size.element_size()).ok().filter(|bytes| [4, 8].contains(bytes))?;
    let index_bytes = u8::try_from(memory.vsib_size()).ok()?;
    let register = memory.index();
    let by_index = register.size() / usize::from(index_bytes);
    let by_data = register_bytes(instruction)? / usize::from(element_bytes);
    let elements = u8::try_from(by_index.min(by_data)).ok()?;
    let manner = manner(instruction);
    let mask = match manner {
        Manner::Evex => {
            let number = (instruction.op_mask() as u32).checked_sub(Register::K0 as u32)? as u8;
            Mask::Bits { number, is_long: false }
        }
        _ => Mask::Vector(Vector { register: instruction.op2_register(), manner }),
    };
    let is_masked_by_vector = matches!(mask, Mask::Vector(_));
    let gather = Gather { elements, index_bytes, scale: memory.scale() as u8, is_masked_by_vector };
    let indices = Some(Vector { register, manner });
    Some(Elements { form: Form::Gather(gather), element_bytes, indices, mask })
}

/// Adds `kmovw` or `kmovq`.
pub(super) fn move_mask(code: &mut Code, to: Gpr, number: u8, is_long: bool) {
    let high = if to.0 < 8 { 0x80 } else { 0 };
    let (second, third) = if is_long { (0x61, 0x80 | 0x7b) } else { (0x61, 0x78) };
    code.put(&[0xc4, second | high, third, 0x93, 0xc0 | (to.0 & 7) << 3 | number]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::x86_64::general_registers::gpr;
    use iced_x86::{Code as Opcode, Encoder, MemoryOperand};
    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

    fn decoded(bytes: &[u8]) -> Instruction {
        let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        assert!(!instruction.is_invalid());
        instruction
    }

    fn elements(instruction: Instruction) -> Option<Elements> {
        let mut factory = InstructionInfoFactory::new();
        let memory = *factory.info(&instruction).used_memory().first().expect("an access");
        Elements::of(&instruction, &memory, instruction.memory_size()).expect("it can be told")
    }

    #[test]
    fn masks_are_moved_to_any_register() {
        for (is_long, expected) in [(false, Opcode::VEX_Kmovw_r32_kr), (true, Opcode::VEX_Kmovq_r64_kr)] {
            for register in (0..16).filter(|register| *register != 4) {
                let mut code = Code::default();
                move_mask(&mut code, Gpr(register), 3, is_long);
                let instruction = decoded(&code.bytes);
                assert_eq!(instruction.code(), expected);
                assert_eq!(gpr(instruction.op0_register()), Some(Gpr(register)));
                assert_eq!(instruction.op1_register(), Register::K3);
            }
        }
    }

    const VECTORS: [[Register; 3]; 3] = [
        [Register::XMM1, Register::XMM2, Register::XMM3],
        [Register::YMM1, Register::YMM2, Register::YMM3],
        [Register::ZMM1, Register::ZMM2, Register::ZMM3],
    ];

    /// A gather, or a scatter, with vectors of these numbers of bytes, if there is one.
    fn gather_of(opcode: Opcode, data: [Register; 3], indices: Register) -> Option<Instruction> {
        let name = format!("{opcode:?}");
        let place = MemoryOperand::new(Register::RSI, indices, 4, 8, 1, false, Register::None);
        let mut made = if name.starts_with("VEX") {
            Instruction::with3(opcode, data[0], place, data[2]).ok()?
        } else if name.contains("scatter") {
            Instruction::with2(opcode, place, data[0]).ok()?
        } else {
            Instruction::with2(opcode, data[0], place).ok()?
        };
        if name.starts_with("EVEX") {
            made.set_op_mask(Register::K2);
        }
        let mut encoder = Encoder::new(64);
        encoder.encode(&made, 0).ok()?;
        Some(decoded(&encoder.take_buffer()))
    }

    #[test]
    fn every_gather_and_scatter_has_as_many_elements_as_both_its_vectors_have() {
        let mut seen = 0;
        for opcode in Opcode::values() {
            let name = format!("{opcode:?}");
            let is_one = (name.contains("gather") || name.contains("scatter")) && !name.contains("erpf");
            for (data, indices) in VECTORS.iter().flat_map(|data| VECTORS.map(|all| (*data, all[1]))) {
                let made = if is_one { gather_of(opcode, data, indices) } else { None };
                let Some(found) = made.and_then(elements) else { continue };
                let Form::Gather(gather) = found.form else { panic!("{name}: {found:?}") };
                let most = |register: Register, bytes: u8| register.size() / usize::from(bytes);
                let elements = most(indices, gather.index_bytes).min(most(data[0], found.element_bytes));
                assert_eq!(usize::from(gather.elements), elements, "{name}");
                assert_eq!(8 * gather.index_words(), indices.size(), "{name}");
                let mask_words = if name.starts_with("VEX") { data[0].size() / 8 } else { 1 };
                assert_eq!((gather.mask_words(found.element_bytes), gather.scale), (mask_words, 4), "{name}");
                seen += 1;
            }
        }
        // AVX2 has eight names with two sizes, AVX-512 sixteen with three.
        assert_eq!(seen, 8 * 2 + 16 * 3);
    }

    #[test]
    fn what_every_lane_takes_is_accessed_when_any_is() {
        // vaddps zmm21{k3}, zmm21, [rax - 96]{1to16}; vbroadcastss ymm21{k3}, [rax - 96].
        for (bytes, lanes) in [
            (&[0x62, 0xe1, 0x54, 0x53, 0x58, 0x68, 0xe8][..], 16),
            (&[0x62, 0xe2, 0x7d, 0x2b, 0x18, 0x68, 0xe8], 8),
        ] {
            let found = elements(decoded(bytes)).expect("elements");
            assert_eq!((found.form, found.element_bytes), (Form::Spread(lanes), 4));
            assert_eq!(found.mask, Mask::Bits { number: 3, is_long: false });
        }
    }
}
