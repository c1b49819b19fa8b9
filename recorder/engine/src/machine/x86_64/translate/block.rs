//! A block that is being written.

use super::reading::{Read, read};
use super::step::{Ending, Piece, Step};
use crate::machine::x86_64::assembly::{Code, Gpr, JRCXZ, RCX};
use crate::machine::x86_64::slot_registers::SlotRegisters;
use crate::machine::{Mark, Task, Translated};
use crate::threads::slots::{at, reason};
use iced_x86::{Encoder, Instruction};

use crate::machine::x86_64::general_registers::FULL_REGISTERS;

/// The most instructions in a block.
const MOST_INSTRUCTIONS: usize = 48;

/// Code for a lookup that found nothing.
pub(crate) struct Stub {
    /// The jump that leads there.
    pub(super) from: Vec<usize>,
    /// Place where the block continues.
    pub(super) back: usize,
    /// The next instruction.
    pub(super) pc: u64,
    /// `None` for the block's code.
    pub(super) piece: Option<Piece>,
}

pub(super) struct Block<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) code: Code,
    pub(super) out: Translated,
    pub(super) steps: Vec<Step>,
    pub(super) ending: Ending,
    /// End of the block in the program.
    pub(super) end: u64,
    pub(super) log: Gpr,
    pub(super) scratch: Gpr,
    /// `rcx` is borrowed as well.
    pub(super) holds_counter: bool,
    /// The first instruction saves the processor's state, or loads it.
    pub(super) begins_with_state: bool,
    /// The first instruction may begin a restartable sequence.
    pub(super) begins_sequence: bool,
    /// Words of the log so far.
    pub(super) words: usize,
    pub(super) stubs: Vec<Stub>,
}

/// Translates the block at the task's address.
pub(crate) fn translate(task: &Task<'_>) -> Translated {
    let mut most = MOST_INSTRUCTIONS;
    loop {
        match translate_at_most(task, most) {
            Ok(translated) => return translated,
            // A single instruction may have enough free registers.
            Err(whole) if most > 1 => most = whole.max(1),
            Err(_) => most = 0,
        }
    }
}

/// As [`translate`], with this many instructions at most. An error gives the number that can be moved with the free
/// registers.
fn translate_at_most(task: &Task<'_>, most: usize) -> Result<Translated, usize> {
    let Read {
        steps,
        ending,
        lost,
        log,
        scratch,
        holds_counter,
        begins_with_state,
        begins_sequence,
        definition,
    } = read(task, most);
    let end = steps.last().map_or(task.pc, |step| step.instruction.next_ip());
    let mut block = Block {
        task,
        code: Code::default(),
        out: Translated { definition, ..Translated::default() },
        steps,
        ending,
        end,
        log,
        scratch,
        holds_counter,
        begins_with_state,
        begins_sequence,
        words: 1,
        stubs: Vec::new(),
    };
    block.out.unlogged.extend(lost);
    block.write()?;
    block.out.borrowed = (log.0, scratch.0);
    let length = block.out.definition.code.len() as u64;
    block.out.range = task.pc..task.pc + length.max(1);
    block.out.next = task.pc + length;
    block.out.code = block.code.bytes;
    Ok(block.out)
}

impl Block<'_> {
    pub(super) fn slot(&self, distance: i32) -> i32 {
        self.task.slots + distance
    }

    pub(super) fn write(&mut self) -> Result<(), usize> {
        self.mark(Some(self.task.pc), SlotRegisters::Nothing);
        self.out.definition.start = self.task.pc;
        self.out.definition.lengths = self.steps.iter().map(|step| step.instruction.len() as u8).collect();
        let length = usize::try_from(self.end - self.task.pc).unwrap_or(0);
        self.out.definition.code = self.task.bytes[..length].to_vec();
        match (self.task.is_entry, self.task.whole.is_some()) {
            (true, true) => self.hand_over_and_back(),
            (true, false) => self.leave_for(reason::INNER, self.task.pc),
            (false, _) if self.begins_with_state => self.leave_for(reason::STATE, self.task.pc),
            (false, _) => {}
        }
        self.out.body = self.code.here();
        if self.begins_sequence {
            self.leave_for(reason::SEQUENCE, self.task.pc);
        }
        self.out.plain = self.code.here();
        if self.ending == Ending::Lost {
            self.leave_for(reason::LOST, self.task.pc);
            return Ok(());
        }
        match self.task.whole {
            Some(whole) => self.begin_sifting(whole),
            None => self.begin(),
        }
        if self.out.definition.stands_alone {
            self.begin_record();
        }
        let steps = std::mem::take(&mut self.steps);
        let (last, body) = match self.ending {
            Ending::Flow => steps.split_last().map_or((None, &steps[..]), |(last, body)| (Some(last), body)),
            Ending::Falls | Ending::Lost => (None, &steps[..]),
        };
        for (number, step) in body.iter().enumerate() {
            if !self.step(number as u8, step) {
                return Err(number);
            }
        }
        match last {
            Some(last) => self.finish(body.len() as u8, last),
            None if self.out.definition.stands_alone => self.end_record(),
            None => {
                self.give_back(Some(self.end));
                let jump = self.code.jump();
                self.links_to(&[(jump, self.end)]);
            }
        }
        self.write_stubs();
        Ok(())
    }

    /// From here on the program is at `pc`.
    pub(super) fn mark(&mut self, pc: Option<u64>, held: SlotRegisters) {
        self.out.marks.push(Mark { offset: self.code.here(), pc, held });
    }

    /// Hands over to the engine, with the program's registers.
    pub(super) fn leave_for(&mut self, reason: u64, pc: u64) {
        let (reason_slot, pc_slot, gate) = (self.slot(at!(reason)), self.slot(at!(pc)), self.slot(at!(gate)));
        self.code.store_slot_value(pc_slot, pc);
        self.code.store_slot_value(reason_slot, reason);
        self.code.jump_to_slot(gate);
    }

    /// An allocator may be called here, or its call may return. The engine gets the address where the block continues,
    /// so that it need not look it up. Code that the program may have changed is looked up.
    pub(super) fn hand_over_and_back(&mut self) {
        let (counter, back) = (self.slot(at!(counter)), self.slot(at!(own.sieve.back)));
        if self.task.is_changeable {
            self.code.store_slot_value(back, 0);
            self.leave_for(reason::ALLOCATION, self.task.pc);
            return;
        }
        self.code.store_slot(counter, RCX);
        self.mark(Some(self.task.pc), SlotRegisters::Counter);
        let body = self.code.lea_hole(RCX);
        self.code.store_slot(back, RCX);
        self.code.load_slot(RCX, counter);
        self.mark(Some(self.task.pc), SlotRegisters::Nothing);
        self.leave_for(reason::ALLOCATION, self.task.pc);
        self.code.land(body);
    }

    /// Ensures room in the log, borrows the registers and logs that the block runs.
    pub(super) fn begin(&mut self) {
        let (log_slot, counter) = (self.slot(at!(log)), self.slot(at!(counter)));
        self.code.store_slot(counter, RCX);
        self.mark(Some(self.task.pc), SlotRegisters::Counter);
        // The third byte of the pointer counts the bytes beyond a chunk's room, which begins at a multiple of 2^24.
        self.code.load_slot_byte_to_rcx(log_slot + 2);
        let has_room = self.code.jump_short(JRCXZ);
        self.code.load_slot(RCX, counter);
        self.mark(Some(self.task.pc), SlotRegisters::Nothing);
        self.leave_for(reason::FULL, self.task.pc);
        self.code.land_short(has_room);
        self.mark(Some(self.task.pc), SlotRegisters::Counter);
        self.code.load_slot(RCX, counter);
        self.mark(Some(self.task.pc), SlotRegisters::Nothing);
        self.code.store_slot(self.slot(at!(first)), self.log);
        self.code.store_slot(self.slot(at!(second)), self.scratch);
        self.mark(Some(self.task.pc), SlotRegisters::Borrowed);
        self.code.load_slot(self.log, log_slot);
        self.code.store_value(self.log, 0, 0);
        self.out.definition_holes.push(self.code.here() - 4);
    }

    /// Distance of the next word of the log from the beginning of the block's record.
    pub(super) fn next_word(&mut self) -> i32 {
        self.words += 1;
        8 * (self.words as i32 - 1)
    }

    /// The block's record is complete.
    pub(super) fn commit(&mut self) {
        if self.task.whole.is_some() {
            return;
        }
        self.code.lea_plus(self.log, self.log, 8 * self.words as i32);
        self.code.store_slot(self.slot(at!(log)), self.log);
    }

    /// All registers have the program's values again.
    pub(super) fn restore(&mut self) {
        self.code.load_slot(self.log, self.slot(at!(first)));
        self.code.load_slot(self.scratch, self.slot(at!(second)));
        if self.holds_counter {
            self.code.load_slot(RCX, self.slot(at!(counter)));
        }
    }

    pub(super) fn give_back(&mut self, pc: Option<u64>) {
        self.commit();
        self.restore();
        self.mark(pc, SlotRegisters::Nothing);
    }

    /// An instruction that passes control to the next. False when there are too few free registers for it.
    pub(super) fn step(&mut self, number: u8, step: &Step) -> bool {
        self.mark(Some(step.instruction.ip()), self.held());
        self.sift(step);
        let stores = self.log_before(number, step);
        if !self.copy(&step.instruction) {
            return false;
        }
        self.mark(Some(step.instruction.next_ip()), self.held());
        for (address, value) in stores {
            self.code.load(self.scratch, self.log, address);
            self.code.load(self.scratch, self.scratch, 0);
            self.code.store(self.log, value, self.scratch);
        }
        for (register, word) in step.plans.repeated_ends() {
            let word = 8 * (self.words - step.plans.words()) as i32 + word;
            self.code.store(self.log, word, register);
        }
        true
    }

    /// The program's instruction; one that names its memory relative to its own place gets the address in a register.
    pub(super) fn copy(&mut self, instruction: &Instruction) -> bool {
        if !instruction.is_ip_rel_memory_operand() {
            let start = (instruction.ip() - self.task.pc) as usize;
            self.code.put(&self.task.bytes[start..start + instruction.len()]);
            return true;
        }
        let mut moved = *instruction;
        self.code.move_value(self.scratch, instruction.ip_rel_memory_address());
        moved.set_memory_base(FULL_REGISTERS[usize::from(self.scratch.0)]);
        moved.set_memory_displacement64(0);
        moved.set_memory_displ_size(0);
        let mut encoder = Encoder::new(64);
        let is_encoded = encoder.encode(&moved, instruction.ip()).is_ok();
        if is_encoded {
            self.code.put(&encoder.take_buffer());
        }
        is_encoded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::sequence::Zones;

    #[test]
    fn what_needs_other_registers_than_its_block_leaves_is_a_block_of_its_own() {
        // sbb dh, [rip + 0x100]; cmp esi, edi; or ebx, ebp; add ecx, eax; ret: no register is free that goes with dh.
        let bytes = [0x1a, 0x35, 0, 1, 0, 0, 0x39, 0xfe, 0x09, 0xeb, 0x01, 0xc1, 0xc3];
        let translated = translate(&Task {
            bytes: &bytes,
            pc: 0x1000,
            slots: -512,
            is_entry: false,
            is_changeable: false,
            at: 0,
            whole: None,
            zones: &Zones::default(),
        });
        assert_eq!(translated.definition.lengths, [6]);
        assert_eq!(translated.links.iter().map(|link| link.target).collect::<Vec<_>>(), [0x1006]);
        assert_eq!(translated.unlogged, []);
    }
}
