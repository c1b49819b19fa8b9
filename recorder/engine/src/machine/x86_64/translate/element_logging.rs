//! Logs the registers that select elements of a vector.

use super::block::Block;
use super::elements::{Elements, Manner, Mask, Vector, move_mask};
use crate::machine::x86_64::general_registers::FULL_REGISTERS;
use crate::threads::slots::at;
use iced_x86::{Code as Opcode, Encoder, Instruction, MemoryOperand};

impl Vector {
    fn words(self) -> usize {
        self.register.size() / 8
    }

    /// An instruction that stores the vector, to any address.
    fn store(self) -> Opcode {
        let bytes = self.register.size();
        match (self.manner, bytes) {
            (_, 8) => Opcode::Movq_mmm64_mm,
            (Manner::Old, _) => Opcode::Movdqu_xmmm128_xmm,
            (Manner::Vex, 16) => Opcode::VEX_Vmovdqu_xmmm128_xmm,
            (Manner::Vex, _) => Opcode::VEX_Vmovdqu_ymmm256_ymm,
            (Manner::Evex, 16) => Opcode::EVEX_Vmovdqu64_xmmm128_k1z_xmm,
            (Manner::Evex, 32) => Opcode::EVEX_Vmovdqu64_ymmm256_k1z_ymm,
            (Manner::Evex, _) => Opcode::EVEX_Vmovdqu64_zmmm512_k1z_zmm,
        }
    }
}

impl Block<'_> {
    /// Logs the selection of the next instruction's elements before the instruction, which may change it.
    pub(crate) fn log_elements(&mut self, elements: Elements) {
        if let Some(indices) = elements.indices {
            self.log_vector(indices);
        }
        match elements.mask {
            Mask::Vector(vector) => self.log_vector(vector),
            Mask::State(number) => {
                let state = self.slot(at!(state));
                self.code.load_slot(self.scratch, state + 8 * i32::from(number));
                let word = self.next_word();
                self.code.store(self.log, word, self.scratch);
            }
            Mask::Bits { number, is_long } => {
                move_mask(&mut self.code, self.scratch, number, is_long);
                let word = self.next_word();
                self.code.store(self.log, word, self.scratch);
            }
        }
    }

    fn log_vector(&mut self, vector: Vector) {
        let first = self.next_word();
        (1..vector.words()).for_each(|_| {
            self.next_word();
        });
        let base = FULL_REGISTERS[usize::from(self.log.0)];
        let place = MemoryOperand::with_base_displ(base, first.into());
        let mut encoder = Encoder::new(64);
        let store = Instruction::with2(vector.store(), place, vector.register);
        if store.is_ok_and(|store| encoder.encode(&store, 0).is_ok()) {
            self.code.put(&encoder.take_buffer());
        }
    }
}
