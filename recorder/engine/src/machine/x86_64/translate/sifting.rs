//! Whole programs: code by which a block counts itself and looks up the lines that it uses, see
//! [`crate::whole_program::sieve`].
//!
//! The register that otherwise holds the log's end holds the thread's sieve. The sieve's lowest bits are the shift
//! count for the other register, which holds an address, so the shift needs no further register. `rcx` is needed where
//! flags matter: it is borrowed for the whole block when no instruction uses it.

use super::accesses::AddressForm;
use super::block::{Block, Stub};
use super::step::{Piece, Step};
use crate::machine::Whole;
use crate::machine::x86_64::assembly::{Address, JRCXZ, RCX};
use crate::machine::x86_64::slot_registers::SlotRegisters;
use crate::threads::slots::{at, reason};
use crate::whole_program::level::Level;
use iced_x86::Instruction;
use lineup_recording::native::{noted, sieve};

/// The condition of a jump when not equal, or not zero.
const NOT_EQUAL: u8 = 5;

/// The byte of a line's number that is its place in a table.
fn place_of(line: u64) -> i32 {
    8 * (line & (sieve::PLACES as u64 - 1)) as i32
}

impl Block<'_> {
    /// The program's registers in slots while the block runs.
    pub(crate) fn held(&self) -> SlotRegisters {
        if self.holds_counter { SlotRegisters::Both } else { SlotRegisters::Borrowed }
    }

    /// Distance of a part of the sieve from where the register points.
    fn part(&self, whole: &Whole, distance: usize) -> i32 {
        distance as i32 - whole.levels.data.line_shift as i32
    }

    /// Borrows the registers, looks the block's code up and counts the block.
    pub(crate) fn begin_sifting(&mut self, whole: &Whole) {
        let (first, second) = (self.slot(at!(first)), self.slot(at!(second)));
        self.code.store_slot(first, self.log);
        self.code.store_slot(second, self.scratch);
        self.code.store_slot(self.slot(at!(counter)), RCX);
        self.mark(Some(self.task.pc), SlotRegisters::Both);
        self.code.load_slot(self.log, self.slot(at!(own.sieve.current)));
        let has_idle_flags = self.steps.first().is_some_and(|step| step.has_idle_flags);
        let level = whole.levels.code;
        let lines = self.task.pc >> level.line_shift..=(self.end - 1) >> level.line_shift;
        let table = self.part(whole, sieve::CODE);
        let misses = lines.map(|line| self.look_up_line(line, table, has_idle_flags)).collect();
        self.stub(misses, None);
        self.count(whole, has_idle_flags);
        if !self.holds_counter {
            self.code.load_slot(RCX, self.slot(at!(counter)));
        }
    }

    /// A jump that is taken when this line is not the most recently used one of its set. Changes `rcx`.
    fn look_up_line(&mut self, line: u64, table: i32, has_idle_flags: bool) -> usize {
        self.code.move_value(self.scratch, line);
        let place = Address { base: Some(self.log), index: None, distance: table + place_of(line) };
        if has_idle_flags {
            self.code.with_memory(0x03, self.scratch.0, place); // add scratch, [place]
            return self.code.jump_if(NOT_EQUAL);
        }
        self.code.with_memory(0x8b, RCX.0, place);
        self.jump_unless_minus()
    }

    /// A jump that is taken unless `rcx` is minus the register for addresses. Changes `rcx`, and no flag.
    fn jump_unless_minus(&mut self) -> usize {
        self.code.lea(RCX, Address { base: Some(RCX), index: Some((self.scratch, 1)), distance: 0 });
        let is_there = self.code.jump_short(JRCXZ);
        let miss = self.code.jump();
        self.code.land_short(is_there);
        miss
    }

    fn count(&mut self, whole: &Whole, has_idle_flags: bool) {
        let place = Address { base: Some(self.log), index: None, distance: self.part(whole, sieve::COUNTS) };
        if has_idle_flags {
            self.code.with_memory(0xff, 0, place); // inc qword ptr [place]
            self.out.count_holes.push(self.code.here() - 4);
            return;
        }
        self.code.with_memory(0x8b, self.scratch.0, place);
        self.out.count_holes.push(self.code.here() - 4);
        self.code.lea_plus(self.scratch, self.scratch, 1);
        self.code.with_memory(0x89, self.scratch.0, place);
        self.out.count_holes.push(self.code.here() - 4);
    }

    /// Looks up the pieces that begin with an instruction.
    pub(crate) fn sift(&mut self, step: &Step) {
        let Some(whole) = self.task.whole else { return };
        for piece in &step.pieces {
            let constant = match piece.place {
                AddressForm::Constant(address) => Some(lines_of(address, *piece, whole.levels.data)),
                _ => None,
            };
            if !self.holds_counter {
                self.code.store_slot(self.slot(at!(counter)), RCX);
                self.mark(Some(step.instruction.ip()), SlotRegisters::Both);
            }
            let table = self.part(whole, sieve::DATA);
            let misses = match constant {
                Some((first, last)) => {
                    (first..=last).map(|line| self.look_up_line(line, table, step.has_idle_flags)).collect()
                }
                None => vec![self.look_up_data(*piece, table, step.has_idle_flags)],
            };
            self.stub(misses, Some((*piece, &step.instruction)));
            if !self.holds_counter {
                self.code.load_slot(RCX, self.slot(at!(counter)));
                self.mark(Some(step.instruction.ip()), SlotRegisters::Borrowed);
            }
        }
    }

    /// A jump for a piece that lies on two lines, or on a line that is not the most recently used one of its set.
    fn look_up_data(&mut self, piece: Piece, table: i32, has_idle_flags: bool) -> usize {
        self.address_by_counter(piece.place, i32::from(piece.low));
        self.code.shift_right(RCX, self.scratch, self.log);
        self.code.put(&[0x0f, 0xb6, 0xc9]); // movzx ecx, cl
        self.code.load_indexed(RCX, self.log, RCX, table);
        if piece.span > 0 {
            self.code.lea_plus(self.scratch, self.scratch, i32::from(piece.span));
        }
        self.code.shift_right(self.scratch, self.scratch, self.log);
        if has_idle_flags {
            self.code.put(&[0x48 | (self.scratch.0 >> 3) << 2, 0x01, 0xc1 | (self.scratch.0 & 7) << 3]); // add rcx, scratch
            return self.code.jump_if(NOT_EQUAL);
        }
        self.jump_unless_minus()
    }

    /// Puts an address at this distance from a place into the register for addresses. `rcx` has the program's value,
    /// and may be changed.
    fn address_by_counter(&mut self, place: AddressForm, distance: i32) {
        if self.address_within(place, distance) {
            self.add_base(RCX);
        }
    }

    /// As [`Block::address_by_counter`], wherever `rcx` is.
    pub(crate) fn address_with_counter_kept(&mut self, place: AddressForm, pc: u64) {
        let counter = self.slot(at!(counter));
        if !self.holds_counter {
            self.code.store_slot(counter, RCX);
            self.mark(Some(pc), SlotRegisters::Both);
        }
        self.address_by_counter(place, 0);
        if !self.holds_counter {
            self.code.load_slot(RCX, counter);
            self.mark(Some(pc), SlotRegisters::Borrowed);
        }
    }

    fn stub(&mut self, from: Vec<usize>, piece: Option<(Piece, &Instruction)>) {
        let pc = piece.map_or(self.task.pc, |(_, instruction)| instruction.ip());
        self.stubs.push(Stub { from, back: self.code.here(), pc, piece: piece.map(|(piece, _)| piece) });
    }

    /// Writes the code for lookups that found nothing.
    pub(crate) fn write_stubs(&mut self) {
        for stub in std::mem::take(&mut self.stubs) {
            stub.from.iter().for_each(|hole| self.code.land(*hole));
            self.mark(Some(stub.pc), SlotRegisters::Both);
            match stub.piece {
                Some(piece) => self.note_piece(&stub, piece),
                None => self.note_fetch(&stub),
            }
        }
    }

    fn note_piece(&mut self, stub: &Stub, piece: Piece) {
        if !self.holds_counter {
            // The address may depend on it.
            self.code.load_slot(RCX, self.slot(at!(counter)));
        }
        self.address_by_counter(piece.place, 0);
        self.code.store_slot(self.slot(at!(own.sieve.address)), self.scratch);
        let (low, span) = (u64::from(piece.low as u8), u64::from(piece.span));
        let noted = u64::from(piece.number) << 32 | low << 40 | span << 48;
        self.go_through(stub, noted, at!(own.sieve.data));
    }

    /// The engine may be waiting for a block to begin.
    fn note_fetch(&mut self, stub: &Stub) {
        self.code.load_slot(RCX, self.slot(at!(own.sieve.called)));
        let is_not_called = self.code.jump_short(JRCXZ);
        let over = self.code.jump();
        self.code.land_short(is_not_called);
        // A signal handler may have interrupted the block and entered the engine since.
        self.code.load_slot(self.log, self.slot(at!(own.sieve.own)));
        self.code.move_value(self.scratch, self.task.pc);
        self.code.store_slot(self.slot(at!(own.sieve.address)), self.scratch);
        let span = self.end - 1 - self.task.pc;
        self.go_through(stub, u64::from(noted::FETCHED) << 32 | span << 48, at!(own.sieve.code));
        self.code.land(over);
        self.code.load_slot(RCX, self.slot(at!(counter)));
        self.code.load_slot(self.log, self.slot(at!(first)));
        self.code.load_slot(self.scratch, self.slot(at!(second)));
        self.mark(Some(self.task.pc), SlotRegisters::Nothing);
        self.leave_for(reason::FULL, self.task.pc);
    }

    /// Calls the code that notes the use, and returns.
    fn go_through(&mut self, stub: &Stub, noted: u64, way: i32) {
        self.code.lea_place(self.scratch, stub.back);
        self.code.store_slot(self.slot(at!(own.sieve.back)), self.scratch);
        self.code.move_wide(RCX, noted);
        self.out.definition_holes.push(self.code.here() - 8);
        self.code.jump_to_slot(self.slot(way));
    }

    /// A block that stands alone has a record of its own, in the thread's slots: a signal handler may run before it is
    /// complete.
    pub(crate) fn begin_record(&mut self) {
        // The first word of a thread's block is its own address.
        self.code.load_slot(self.log, 0);
        self.code.lea_plus(self.log, self.log, self.slot(at!(own.sieve.record)));
        self.code.move_wide(self.scratch, u64::from(noted::ALONE) << 32);
        self.out.definition_holes.push(self.code.here() - 8);
        self.code.store(self.log, 0, self.scratch);
        self.code.move_wide(self.scratch, 0);
        self.out.own_hole = Some(self.code.here() - 8);
        self.code.store_slot(self.slot(at!(own.sieve.definition)), self.scratch);
    }

    /// The record is complete: the engine reads it.
    pub(crate) fn end_record(&mut self) {
        let back = self.code.lea_hole(self.scratch);
        self.code.store_slot(self.slot(at!(own.sieve.back)), self.scratch);
        self.give_back(Some(self.end));
        self.leave_for(reason::ALONE, self.end);
        self.code.land(back);
        let jump = self.code.jump();
        self.links_to(&[(jump, self.end)]);
    }
}

/// The first and the last line of a piece whose first access is to an address.
fn lines_of(address: u64, piece: Piece, level: Level) -> (u64, u64) {
    let low = address.wrapping_add_signed(piece.low.into());
    (low >> level.line_shift, low.wrapping_add(piece.span.into()) >> level.line_shift)
}
