//! The few instructions that the engine adds to a program's, as bytes. None of them changes flags.

/// A general register, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gpr(pub(crate) u8);

pub(crate) const RAX: Gpr = Gpr(0);
pub(crate) const RCX: Gpr = Gpr(1);
pub(crate) const RDX: Gpr = Gpr(2);
pub(crate) const RSP: Gpr = Gpr(4);

impl Gpr {
    fn low(self) -> u8 {
        self.0 & 7
    }

    fn high(self) -> u8 {
        self.0 >> 3
    }
}

/// An address: base, index with its scale, distance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) base: Option<Gpr>,
    pub(crate) index: Option<(Gpr, u8)>,
    pub(crate) distance: i32,
}

/// Code under construction. It holds no address of its own, so it can be put anywhere.
#[derive(Default)]
pub(crate) struct Code {
    pub(crate) bytes: Vec<u8>,
}

impl Code {
    pub(crate) fn here(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn put_32(&mut self, value: i32) {
        self.put(&value.to_le_bytes());
    }

    /// An instruction with a register and a word of the thread's state.
    pub(crate) fn with_slot(&mut self, opcode: u8, register: Gpr, slot: i32) {
        self.put(&[0x64, 0x48 | register.high() << 2, opcode, register.low() << 3 | 4, 0x25]);
        self.put_32(slot);
    }

    pub(crate) fn store_slot(&mut self, slot: i32, register: Gpr) {
        self.with_slot(0x89, register, slot);
    }

    /// Stores the lower half of one of the first eight registers.
    pub(crate) fn store_slot_half_of(&mut self, slot: i32, register: Gpr) {
        self.put(&[0x64, 0x89, register.low() << 3 | 4, 0x25]);
        self.put_32(slot);
    }

    /// `rdtsc`: the time, in the lower halves of `rax` and `rdx`.
    pub(crate) fn read_time(&mut self) {
        self.put(&[0x0f, 0x31]);
    }

    pub(crate) fn load_slot(&mut self, register: Gpr, slot: i32) {
        self.with_slot(0x8b, register, slot);
    }

    /// Stores the lower half of a word of the thread's state.
    fn store_slot_half(&mut self, slot: i32, value: u32) {
        self.put(&[0x64, 0xc7, 0x04, 0x25]);
        self.put_32(slot);
        self.put(&value.to_le_bytes());
    }

    /// By two stores: a signal may find one of them done.
    pub(crate) fn store_slot_value(&mut self, slot: i32, value: u64) {
        self.store_slot_half(slot, value as u32);
        self.store_slot_half(slot + 4, (value >> 32) as u32);
    }

    /// Stores 0 in a word of the thread's state, by one instruction: no signal finds half of the old value.
    pub(crate) fn clear_slot(&mut self, slot: i32) {
        self.put(&[0x64, 0x48, 0xc7, 0x04, 0x25]);
        self.put_32(slot);
        self.put_32(0);
    }

    /// Loads a byte of the thread's state into `ecx`.
    pub(crate) fn load_slot_byte_to_rcx(&mut self, slot: i32) {
        self.put(&[0x64, 0x0f, 0xb6, 0x0c, 0x25]);
        self.put_32(slot);
    }

    pub(crate) fn load_low_16_to_rcx(&mut self, register: Gpr) {
        self.put(&[0x40 | register.high(), 0x0f, 0xb7, 0xc0 | 1 << 3 | register.low()]);
    }

    /// An instruction with a register and memory.
    pub(crate) fn with_memory(&mut self, opcode: u8, register: u8, address: Address) {
        let high = |register: Option<Gpr>| register.map_or(0, Gpr::high);
        let index = address.index.map(|(index, _)| index);
        self.put(&[0x48 | (register >> 3) << 2 | high(index) << 1 | high(address.base), opcode]);
        let register = (register & 7) << 3;
        let base = address.base.map(Gpr::low);
        // The shortest encoding: code in the cache is many times as long as the program's, and has to be
        // fetched.
        let near = i8::try_from(address.distance);
        let mode = match (base, near) {
            (None, _) | (Some(0..=4 | 6..), Ok(0)) => 0,
            (Some(_), Ok(_)) => 0x40,
            (Some(_), Err(_)) => 0x80,
        };
        match base.filter(|base| *base != RSP.0 && index.is_none()) {
            Some(base) => self.put(&[mode | register | base]),
            None => {
                let scale = address.index.map_or(0, |(_, scale)| scale.trailing_zeros() as u8);
                let sib = scale << 6 | index.map_or(4, Gpr::low) << 3 | base.unwrap_or(5);
                self.put(&[mode | register | 4, sib]);
            }
        }
        match (mode, near) {
            (0x40, Ok(near)) => self.put(&near.to_le_bytes()),
            (0, _) if base.is_some() => {}
            _ => self.put_32(address.distance),
        }
    }

    pub(crate) fn lea(&mut self, register: Gpr, address: Address) {
        self.with_memory(0x8d, register.0, address);
    }

    pub(crate) fn lea_plus(&mut self, register: Gpr, base: Gpr, distance: i32) {
        self.lea(register, Address { base: Some(base), index: None, distance });
    }

    pub(crate) fn load(&mut self, register: Gpr, base: Gpr, distance: i32) {
        self.with_memory(0x8b, register.0, Address { base: Some(base), index: None, distance });
    }

    pub(crate) fn store(&mut self, base: Gpr, distance: i32, register: Gpr) {
        self.with_memory(0x89, register.0, Address { base: Some(base), index: None, distance });
    }

    /// Stores a word whose upper half repeats the highest bit of `value`.
    pub(crate) fn store_value(&mut self, base: Gpr, distance: i32, value: i32) {
        self.with_memory(0xc7, 0, Address { base: Some(base), index: None, distance });
        self.put_32(value);
    }

    /// Stores half a word.
    pub(crate) fn store_value_half(&mut self, base: Gpr, distance: i8, value: u32) {
        self.put(&[0x40 | base.high(), 0xc7, 0x40 | base.low(), distance.cast_unsigned()]);
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn move_register(&mut self, to: Gpr, from: Gpr) {
        self.put(&[0x48 | from.high() << 2 | to.high(), 0x89, 0xc0 | from.low() << 3 | to.low()]);
    }

    pub(crate) fn move_value(&mut self, register: Gpr, value: u64) {
        match u32::try_from(value) {
            Ok(value) => {
                self.put(&[0x40 | register.high(), 0xb8 | register.low()]);
                self.put(&value.to_le_bytes());
            }
            Err(_) => {
                self.put(&[0x48 | register.high(), 0xb8 | register.low()]);
                self.put(&value.to_le_bytes());
            }
        }
    }

    /// As [`Code::move_value`], of the same length for all values: they are the last eight bytes.
    pub(crate) fn move_wide(&mut self, register: Gpr, value: u64) {
        self.put(&[0x48 | register.high(), 0xb8 | register.low()]);
        self.put(&value.to_le_bytes());
    }

    /// `shrx`: shifts by the lowest bits of a register.
    pub(crate) fn shift_right(&mut self, to: Gpr, from: Gpr, by: Gpr) {
        let second = 0x42 | u8::from(to.high() == 0) << 7 | u8::from(from.high() == 0) << 5;
        self.put(&[0xc4, second, 0x83 | (!by.0 & 0xf) << 3, 0xf7, 0xc0 | to.low() << 3 | from.low()]);
    }

    /// Loads a word of a table.
    pub(crate) fn load_indexed(&mut self, register: Gpr, base: Gpr, index: Gpr, distance: i32) {
        let place = Address { base: Some(base), index: Some((index, 8)), distance };
        self.with_memory(0x8b, register.0, place);
    }

    /// The address of a place in this code that was passed.
    pub(crate) fn lea_place(&mut self, register: Gpr, place: usize) {
        let hole = self.lea_hole(register);
        self.land_at(hole, place);
    }

    /// The address of a place that is filled in later, as that of a jump is.
    pub(crate) fn lea_hole(&mut self, register: Gpr) -> usize {
        self.put(&[0x48 | register.high() << 2, 0x8d, 0x05 | register.low() << 3]);
        self.hole()
    }

    pub(crate) fn push(&mut self, register: Gpr) {
        self.put(&[0x40 | register.high(), 0x50 | register.low()]);
    }

    pub(crate) fn jump_to_slot(&mut self, slot: i32) {
        self.put(&[0x64, 0xff, 0x24, 0x25]);
        self.put_32(slot);
    }

    /// A jump to an address that is stored after it.
    pub(crate) fn jump_far(&mut self, address: u64) {
        self.put(&[0xff, 0x25, 0, 0, 0, 0]);
        self.put(&address.to_le_bytes());
    }

    /// A jump whose distance is written later. Returns the distance's place. It lies within four aligned
    /// bytes when the code begins at a multiple of four, so that one store writes it.
    pub(crate) fn jump(&mut self) -> usize {
        self.align_after(1);
        self.put(&[0xe9]);
        self.hole()
    }

    /// As [`Code::jump`], taken under a condition (the lower half of the opcode).
    pub(crate) fn jump_if(&mut self, condition: u8) -> usize {
        self.align_after(2);
        self.put(&[0x0f, 0x80 | condition]);
        self.hole()
    }

    fn align_after(&mut self, bytes: usize) {
        while !(self.here() + bytes).is_multiple_of(4) {
            self.put(&[0x90]);
        }
    }

    /// A jump within the code, whose distance is written later. Returns the distance's place.
    pub(crate) fn jump_always_to_side(&mut self) -> usize {
        self.put(&[0xe9]);
        self.hole()
    }

    /// As [`Code::jump_always_to_side`], taken under a condition (the lower half of the opcode).
    pub(crate) fn jump_to_side(&mut self, condition: u8) -> usize {
        self.put(&[0x0f, 0x80 | condition]);
        self.hole()
    }

    pub(crate) fn hole(&mut self) -> usize {
        self.put(&[0; 4]);
        self.here() - 4
    }

    /// A short jump under a condition, the opcode. Returns the distance's place.
    pub(crate) fn jump_short(&mut self, opcode: &[u8]) -> usize {
        self.put(opcode);
        self.put(&[0]);
        self.here() - 1
    }

    /// A short jump of this kind leads here.
    pub(crate) fn land_short(&mut self, hole: usize) {
        let distance = self.here() - (hole + 1);
        debug_assert!(distance < 128);
        self.bytes[hole] = distance as u8;
    }

    /// A jump leads here.
    pub(crate) fn land(&mut self, hole: usize) {
        self.land_at(hole, self.here());
    }

    /// A jump leads to this place.
    pub(crate) fn land_at(&mut self, hole: usize, place: usize) {
        let distance = (place as i64 - (hole as i64 + 4)) as i32;
        self.bytes[hole..hole + 4].copy_from_slice(&distance.to_le_bytes());
    }
}

/// `jrcxz`.
pub(crate) const JRCXZ: &[u8] = &[0xe3];

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    /// The bytes as an assembler shows them.
    fn shown(make: impl FnOnce(&mut Code)) -> Vec<iced_x86::Instruction> {
        let mut code = Code::default();
        make(&mut code);
        Decoder::new(64, &code.bytes, DecoderOptions::NONE).iter().collect()
    }

    #[test]
    fn a_word_is_cleared_at_once() {
        let [store] = shown(|code| code.clear_slot(-352))[..] else { panic!("more than one instruction") };
        assert_eq!((store.code(), store.immediate32()), (iced_x86::Code::Mov_rm64_imm32, 0));
        assert_eq!(store.memory_displacement64() as i64, -352);
        assert_eq!(store.segment_prefix(), iced_x86::Register::FS);
    }

    #[test]
    fn every_register_is_reached() {
        for number in (0..16).filter(|number| *number != 4) {
            let register = Gpr(number);
            let all = shown(|code| {
                code.store_slot(-8, register);
                code.lea(register, Address { base: Some(RSP), index: Some((register, 8)), distance: -3 });
                code.load(register, register, 0);
                code.move_value(register, 0x1234_5678_9abc_def0);
                code.push(register);
                code.shift_right(register, register, register);
                code.load_indexed(register, register, register, 8);
                code.lea_place(register, 0);
                code.move_wide(register, 1);
            });
            assert_eq!(all.len(), 9, "{number}");
            let full = iced_x86::Register::RAX as u32 + u32::from(number);
            assert_eq!(all[0].op1_register() as u32, full);
            assert_eq!(all[0].segment_prefix(), iced_x86::Register::FS);
            assert_eq!(all[0].memory_displacement64() as i64, -8);
            assert_eq!((all[1].op0_register() as u32, all[1].memory_index() as u32), (full, full));
            assert_eq!((all[1].memory_base(), all[1].memory_index_scale()), (iced_x86::Register::RSP, 8));
            assert_eq!((all[2].op0_register() as u32, all[2].memory_base() as u32), (full, full));
            assert_eq!((all[3].op0_register() as u32, all[3].immediate64()), (full, 0x1234_5678_9abc_def0));
            assert_eq!(all[4].op0_register() as u32, full);
            assert_eq!(all[5].code(), iced_x86::Code::VEX_Shrx_r64_rm64_r64);
            let all_three = [all[5].op0_register(), all[5].op1_register(), all[5].op2_register()];
            assert_eq!(all_three.map(|register| register as u32), [full; 3]);
            assert_eq!((all[6].op0_register() as u32, all[6].memory_index_scale()), (full, 8));
            assert_eq!((all[7].op0_register() as u32, all[7].ip_rel_memory_address()), (full, 0));
            assert_eq!((all[8].op0_register() as u32, all[8].immediate64()), (full, 1));
        }
    }
}
