//! Code that a block goes through when it uses a line that is not the most recently used one of its set: the modelled
//! cache uses the lines, and misses are logged.

use crate::machine::LineUser;
use crate::machine::x86_64::assembly::{Address, Code, Gpr, RAX, RCX};
use crate::threads::slots::at;
use crate::whole_program::level;
use lineup_recording::native::noted;

const RDX: Gpr = Gpr(2);
const RSI: Gpr = Gpr(6);
const RDI: Gpr = Gpr(7);
const R8: Gpr = Gpr(8);
const R9: Gpr = Gpr(9);

/// The registers that are kept, besides `rax` and the flags.
const KEPT: [Gpr; 3] = [RDX, RSI, RDI];
/// Registers that the longer path needs besides.
const KEPT_LONGER: [Gpr; 2] = [R8, R9];
/// Place of the note.
const NOTED: i32 = 7;

/// Short jumps.
const EQUAL: &[u8] = &[0x74];
const NOT_EQUAL: u8 = 0x75;

impl LineUser {
    fn slot(self, distance: i32) -> i32 {
        self.slots + distance
    }

    fn kept(self, number: i32) -> i32 {
        self.slot(at!(own.sieve.kept) + 8 * number)
    }

    pub(crate) fn code(self) -> Vec<u8> {
        let mut code = Code::default();
        self.keep(&mut code);
        if self.level.ways > 0 {
            if self.has_windows {
                self.end_stretch(&mut code);
            }
            self.first_and_last(&mut code);
            if !self.notes_all {
                let others = self.use_again(&mut code);
                self.give_back(&mut code);
                others.into_iter().for_each(|jump| code.land(jump));
            }
            self.use_lines(&mut code);
        }
        self.give_back(&mut code);
        code.bytes
    }

    /// Keeps `rax`, the flags and the other registers.
    fn keep(self, code: &mut Code) {
        code.store_slot(self.kept(0), RAX);
        code.put(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
        code.store_slot(self.kept(1), RAX);
        for (number, register) in (2..).zip(KEPT) {
            code.store_slot(self.kept(number), register);
        }
        code.store_slot(self.kept(NOTED), RCX);
    }

    fn give_back(self, code: &mut Code) {
        for (number, register) in (2..).zip(KEPT) {
            code.load_slot(register, self.kept(number));
        }
        code.load_slot(RAX, self.kept(1));
        code.put(&[0x04, 0x7f, 0x9e]); // add al, 127; sahf
        code.load_slot(RAX, self.kept(0));
        code.jump_to_slot(self.slot(at!(own.sieve.back)));
    }

    /// Uses a line that is in the same way as last time, the most common case. Returns the jumps that are taken for
    /// other lines, with nothing changed, and for several lines.
    fn use_again(self, code: &mut Code) -> Vec<usize> {
        let mut others = Vec::new();
        code.put(&[0x48, 0x39, 0xc8]); // cmp rax, rcx
        others.push(code.jump_if(NOT_EQUAL & 0xf));
        code.load_slot(RDI, self.slot(self.rows));
        self.to_row(code);
        self.to_way_hint(code, RDX);
        code.put(&[0x0f, 0xb7, 0x94, 0x57]); // movzx edx, word ptr [rdi + 2 * rdx + WAYS]
        code.put(&level::WAYS.to_le_bytes());
        code.lea(RDX, Address { base: Some(RSI), index: Some((RDX, 8)), distance: 8 });
        code.put(&[0x48, 0x39, 0x02]); // cmp [rdx], rax
        others.push(code.jump_if(NOT_EQUAL & 0xf));
        self.set_time(code, RCX);
        code.load(RCX, RSI, 0);
        code.store(RSI, 0, RAX);
        self.change_table(code);
        others
    }

    /// The row of the line in `rax`, with all rows at `rdi`, to `rsi`.
    fn to_row(self, code: &mut Code) {
        code.put(&[0x89, 0xc6, 0x81, 0xe6]); // mov esi, eax; and esi, sets - 1
        code.put(&(self.level.sets as u32 - 1).to_le_bytes());
        code.put(&[0x48, 0x69, 0xf6]); // imul rsi, rsi, row_bytes
        code.put(&(8 * self.level.row() as u32).to_le_bytes());
        code.put(&[0x48, 0x01, 0xfe]); // add rsi, rdi
    }

    /// One of the first eight registers: the index of the noted way of the line in `rax`.
    fn to_way_hint(self, code: &mut Code, register: Gpr) {
        code.put(&[0x89, 0xc0 | register.0, 0x81, 0xe0 | register.0]); // mov register, eax; and register, ...
        code.put(&(level::NOTED_WAYS as u32 - 1).to_le_bytes());
    }

    /// Marks the way at `rdx` as used now. All rows are at `rdi`.
    fn set_time(self, code: &mut Code, register: Gpr) {
        code.load(register, RDI, -8);
        code.lea_plus(register, register, 1);
        code.store(RDI, -8, register);
        code.store(RDX, self.to_times(), register);
    }

    /// Makes blocks find the line in `rax` in place of that in `rcx`. Changes `rax`, `rdx` and `rdi`.
    fn change_table(self, code: &mut Code) {
        code.load_slot(RDI, self.slot(at!(own.sieve.tables)));
        let place = Address { base: Some(RDI), index: Some((RDX, 8)), distance: self.table };
        code.put(&[0x0f, 0xb6, 0xd1]); // movzx edx, cl
        code.with_memory(0xc7, 0, place); // mov qword ptr [place], 0
        code.put(&[0; 4]);
        code.put(&[0x0f, 0xb6, 0xd0]); // movzx edx, al
        code.put(&[0x48, 0xf7, 0xd8]); // neg rax
        code.with_memory(0x89, RAX.0, place);
    }

    /// Uses the lines from that in `rax` on, and logs the misses.
    fn use_lines(self, code: &mut Code) {
        for (number, register) in (2 + KEPT.len() as i32..).zip(KEPT_LONGER) {
            code.store_slot(self.kept(number), register);
        }
        // The lines that missed; in a window there is a bit from the start.
        match self.notes_all {
            true => code.put(&[0x41, 0xb8, 1, 0, 0, 0]), // mov r8d, 1
            false => code.put(&[0x45, 0x31, 0xc0]),      // xor r8d, r8d
        }
        let next_line = code.here();
        self.use_line(code);
        code.with_slot(0x3b, RAX, self.slot(at!(scratch))); // cmp rax, [scratch]
        let was_last = code.jump_short(EQUAL);
        code.put(&[0x48, 0xff, 0xc0]); // inc rax
        let again = code.jump();
        code.land_at(again, next_line);
        code.land_short(was_last);
        code.put(&[0x45, 0x85, 0xc0]); // test r8d, r8d
        let none = code.jump_if(EQUAL[0] & 0xf);
        self.note(code);
        code.land(none);
        for (number, register) in (2 + KEPT.len() as i32..).zip(KEPT_LONGER) {
            code.load_slot(register, self.kept(number));
        }
    }

    /// The first line to `rax`, the last to the slot `scratch`.
    fn first_and_last(self, code: &mut Code) {
        code.load_slot(RAX, self.slot(at!(own.sieve.address)));
        code.move_register(RDX, RCX);
        code.put(&[0x48, 0xc1, 0xe2, 16, 0x48, 0xc1, 0xfa, 56]); // shl rdx, 16; sar rdx, 56
        code.put(&[0x48, 0x01, 0xd0]); // add rax, rdx
        code.put(&[0x48, 0xc1, 0xe9, 48, 0x48, 0x01, 0xc1]); // shr rcx, 48; add rcx, rax
        let shift = self.level.line_shift as u8;
        code.put(&[0x48, 0xc1, 0xe8, shift, 0x48, 0xc1, 0xe9, shift]); // shr rax, shift; shr rcx, shift
        code.store_slot(self.slot(at!(scratch)), RCX);
    }

    /// Has the cache use the line with the number in `rax`: that is the most recently used one of its set then. A bit
    /// more in `r8`: whether it missed.
    fn use_line(self, code: &mut Code) {
        code.put(&[0x45, 0x01, 0xc0]); // add r8d, r8d
        code.load_slot(RDI, self.slot(self.rows));
        self.to_row(code);
        code.load(RCX, RSI, 0);
        code.put(&[0x48, 0x39, 0xc1]); // cmp rcx, rax
        let is_most_recent = code.jump_if(EQUAL[0] & 0xf);
        code.store(RSI, 0, RAX);
        self.change_table(code);
        code.put(&[0x48, 0xf7, 0xd8]); // neg rax
        self.find(code);
        code.put(&[0x48, 0x85, 0xd2]); // test rdx, rdx
        let was_there = code.jump_if(NOT_EQUAL & 0xf);
        code.put(&[0x41, 0x83, 0xc8, 1]); // or r8d, 1
        self.find_oldest(code);
        code.store(RDX, 0, RAX);
        code.land(was_there);
        code.load_slot(RDI, self.slot(self.rows));
        self.set_time(code, RSI);
        self.to_way_hint(code, RSI);
        code.put(&[0x4c, 0x29, 0xca, 0x48, 0xc1, 0xea, 3]); // sub rdx, r9; shr rdx, 3
        code.lea_plus(RDX, RDX, self.level.ways as i32);
        code.put(&[0x66, 0x89, 0x94, 0x77]); // mov [rdi + 2 * rsi + WAYS], dx
        code.put(&level::WAYS.to_le_bytes());
        code.land(is_most_recent);
    }

    /// From where a way's line is to its time.
    fn to_times(self) -> i32 {
        8 * self.level.ways as i32
    }

    /// Finds the line in `rax` in the row at `rsi` and puts its place into `rdx`, or 0 when it is absent. It tests all
    /// ways, without a jump that could be mispredicted.
    fn find(self, code: &mut Code) {
        code.put(&[0x31, 0xd2]); // xor edx, edx
        self.each_way(code, |code, distance| {
            code.lea_plus(RCX, RDI, distance);
            code.put(&[0x48, 0x39, 0x01]); // cmp [rcx], rax
            code.put(&[0x48, 0x0f, 0x44, 0xd1]); // cmove rdx, rcx
        });
    }

    /// Puts the place of the least recently used line of the row at `rsi` into `rdx`.
    fn find_oldest(self, code: &mut Code) {
        code.put(&[0x48, 0x83, 0xc9, 0xff]); // or rcx, -1
        self.each_way(code, |code, distance| {
            code.load(RSI, RDI, distance + self.to_times());
            code.put(&[0x48, 0x39, 0xf1]); // cmp rcx, rsi
            code.put(&[0x48, 0x0f, 0x47, 0xce]); // cmova rcx, rsi
            code.lea_plus(RSI, RDI, distance);
            code.put(&[0x48, 0x0f, 0x47, 0xd6]); // cmova rdx, rsi
        });
    }

    /// Does the same with each way of the row at `rsi`, which lies this far from `rdi`. Puts the end of the ways into
    /// `r9`.
    fn each_way(self, code: &mut Code, what: impl Fn(&mut Code, i32)) {
        const MOST_AT_ONCE: i32 = 16;
        let ways = self.level.ways as i32;
        let at_once = if ways <= MOST_AT_ONCE { ways } else { 1 };
        code.lea_plus(RDI, RSI, 8);
        code.lea_plus(R9, RDI, 8 * ways);
        let next = code.here();
        (0..at_once).for_each(|way| what(code, 8 * way));
        if at_once < ways {
            code.lea_plus(RDI, RDI, 8 * at_once);
            code.put(&[0x4c, 0x39, 0xcf]); // cmp rdi, r9
            jump_back(code, NOT_EQUAL, next);
        }
    }

    /// Logs the misses. When the log is full then, the next block is to hand over.
    fn note(self, code: &mut Code) {
        let own_bits = 64 - noted::BITS_AT as u8;
        code.load_slot(RCX, self.kept(NOTED));
        code.put(&[0x48, 0xc1, 0xe1, own_bits, 0x48, 0xc1, 0xe9, own_bits]); // shl rcx, own_bits; shr rcx, own_bits
        code.put(&[0x49, 0xc1, 0xe0, noted::BITS_AT as u8, 0x4c, 0x09, 0xc1]); // shl r8, bits_at; or rcx, r8
        code.load_slot(RDX, self.slot(at!(log)));
        code.store(RDX, 0, RCX);
        if self.words == 2 {
            code.load_slot(RAX, self.slot(at!(own.sieve.address)));
            code.store(RDX, 8, RAX);
        }
        code.lea_plus(RDX, RDX, 8 * self.words);
        code.store_slot(self.slot(at!(log)), RDX);
        code.put(&[0xf7, 0xc2, 0, 0, 0xff, 0]); // test edx, 0xff0000
        let has_room = code.jump_short(EQUAL);
        self.call(code);
        code.land_short(has_room);
    }

    /// The next block is to hand over.
    fn call(self, code: &mut Code) {
        code.store_slot_value(self.slot(at!(own.sieve.called)), 1);
        code.load_slot(RSI, self.slot(at!(own.sieve.nothing)));
        code.store_slot(self.slot(at!(own.sieve.current)), RSI);
    }

    /// Counts down to the end of the stretch. Then the next block is to hand over.
    fn end_stretch(self, code: &mut Code) {
        let left = self.slot(at!(own.sieve.left)).to_le_bytes();
        code.put(&[0x64, 0x48, 0x83, 0x2c, 0x25]); // sub qword ptr fs:[left], 1
        code.put(&left);
        code.put(&[1]);
        let goes_on = code.jump_short(&[NOT_EQUAL]);
        self.call(code);
        code.land_short(goes_on);
    }
}

fn jump_back(code: &mut Code, opcode: u8, to: usize) {
    let distance = to as i64 - (code.here() as i64 + 2);
    debug_assert!(distance >= -128);
    code.put(&[opcode, distance as u8]);
}
