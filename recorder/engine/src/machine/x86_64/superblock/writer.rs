//! A superblock that is being written.

use super::helpers::Helpers;
use super::reading::{End, Path, Step, read};
use super::renaming;
use super::side_exit::SideExit;
use super::values::Values;
use crate::machine::x86_64::assembly::{Code, Gpr, JRCXZ, RCX, RSP};
use crate::machine::x86_64::general_registers::{FULL_REGISTERS, LOG};
use crate::machine::x86_64::slot_registers::{Logging, SlotRegisters};
use crate::machine::x86_64::translate::accesses::AddressForm;
use crate::machine::x86_64::translate::counted_jumps::is_counted;
use crate::machine::x86_64::translate::pieces::{STATUS, sets_all};
use crate::machine::{Mark, Route, Source, Task, Translated, Whole};
use crate::threads::slots::{at, reason};
use iced_x86::{Encoder, Instruction};
use lineup_recording::native::record;
use lineup_recording::native::superblock::{Part, Superblock};

pub(super) struct Writer<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) whole: &'a Whole,
    pub(super) route: &'a Route,
    pub(super) code: Code,
    pub(super) out: Translated,
    pub(super) values: Values,
    pub(super) made: Superblock,
    /// The part that is being written.
    pub(super) open: Part,
    /// Words of the record so far.
    pub(super) words: u8,
    pub(super) state: Logging,
    pub(super) exits: Vec<SideExit>,
    /// Constants to be put after the code, and the places of their distances.
    pub(super) constants: Vec<(usize, u64)>,
}

/// Translates the superblock at the task's address. `None` when it cannot follow the route.
pub(crate) fn translate(
    task: &Task<'_>,
    whole: &Whole,
    source: Source<'_>,
    route: &Route,
) -> Option<Translated> {
    let path = read(task, source, &route.turns);
    if route.turns.last().is_some_and(|last| path.parts <= usize::from(*last) + 1) {
        return None;
    }
    let low = path.steps.iter().map(|step| step.instruction.ip()).min().unwrap_or(task.pc);
    let high = path.steps.iter().map(|step| step.instruction.next_ip()).max().unwrap_or(task.pc);
    let mut writer = Writer {
        task,
        whole,
        route,
        code: Code::default(),
        out: Translated { range: low..high.max(task.pc + 1), ..Translated::default() },
        values: Values::new(),
        made: Superblock::default(),
        open: Part { start: task.pc, ..Part::default() },
        words: 1,
        state: Logging {
            instructions: 0,
            is_open: true,
            own: None,
            first: None,
            second: None,
            has_counter: false,
        },
        exits: Vec::new(),
        constants: Vec::new(),
    };
    writer.out.next = path.steps.last().map_or(task.pc, |step| step.instruction.next_ip());
    writer.write(&path);
    writer.out.code = writer.code.bytes;
    writer.out.superblock = Some(writer.made).filter(|_| path.end != End::Lost);
    Some(writer.out)
}

impl Writer<'_> {
    pub(super) fn slot(&self, distance: i32) -> i32 {
        self.task.slots + distance
    }

    pub(super) fn mark(&mut self, pc: u64) {
        let held = SlotRegisters::Logging(self.state);
        self.out.marks.push(Mark { offset: self.code.here(), pc: Some(pc), held });
    }

    pub(super) fn mark_native(&mut self, pc: u64) {
        self.out.marks.push(Mark { offset: self.code.here(), pc: Some(pc), held: SlotRegisters::Nothing });
    }

    /// Hands over to the engine, with the program's registers.
    pub(super) fn leave_for(&mut self, reason: u64, pc: u64) {
        let (reason_slot, pc_slot, gate) = (self.slot(at!(reason)), self.slot(at!(pc)), self.slot(at!(gate)));
        self.code.store_slot_value(pc_slot, pc);
        self.code.store_slot_value(reason_slot, reason);
        self.code.jump_to_slot(gate);
    }

    /// From here on the log has its register.
    pub(super) fn take_log(&mut self, pc: u64) {
        self.mark_native(pc);
        self.code.store_slot(self.slot(at!(own.logged)), LOG);
        let state = Logging { is_open: false, ..self.state };
        self.out.marks.push(Mark { offset: self.code.here(), pc: Some(pc), held: SlotRegisters::Logged });
        self.code.load_slot(LOG, self.slot(at!(log)));
        let held = SlotRegisters::Logging(Logging { instructions: 0, is_open: true, ..state });
        self.out.marks.push(Mark { offset: self.code.here(), pc: Some(pc), held });
        self.code.store_value_half(LOG, 0, 0);
        self.code.store_value_half(LOG, 4, record::STACK);
        self.code.store(LOG, 8, RSP);
        self.code.lea_plus(LOG, LOG, 8 * record::STACK_WORDS as i32);
        self.out.marks.push(Mark {
            offset: self.code.here(),
            pc: Some(pc),
            held: SlotRegisters::Logging(state),
        });
    }

    /// From here on all registers have the program's values. No record is open.
    pub(super) fn give_log_back(&mut self, pc: u64) {
        self.code.store_slot(self.slot(at!(log)), LOG);
        self.out.marks.push(Mark { offset: self.code.here(), pc: Some(pc), held: SlotRegisters::Logged });
        self.code.load_slot(LOG, self.slot(at!(own.logged)));
        self.mark_native(pc);
    }

    pub(super) fn write(&mut self, path: &Path) {
        self.out.unlogged.extend(path.lost.clone());
        let pc = self.task.pc;
        self.mark_native(pc);
        if self.task.is_changeable {
            self.leave_for(reason::INNER, pc);
        }
        self.out.body = self.code.here();
        if path.end == End::Lost {
            self.leave_for(reason::LOST, pc);
            self.begin_again(pc);
            return;
        }
        if path.begins_sequence {
            self.leave_for(reason::SEQUENCE, pc);
        }
        self.out.plain = self.code.here();
        self.take_log(pc);
        if self.task.is_changeable || path.begins_sequence {
            self.see_to_room(path, pc);
            self.write_steps(path);
            self.begin_again(pc);
            return;
        }
        self.align();
        self.out.inner = self.code.here();
        self.see_to_room(path, pc);
        self.write_steps(path);
    }

    /// Entry of superblocks that hand over to the engine first, for others: with the log in its register.
    pub(super) fn begin_again(&mut self, pc: u64) {
        self.align();
        self.out.inner = self.code.here();
        self.give_log_back(pc);
        let jump = self.code.jump();
        self.code.land_at(jump, 0);
    }

    /// Code that is redirected once it is forgotten begins at a multiple of eight bytes.
    pub(super) fn align(&mut self) {
        while !self.code.here().is_multiple_of(8) {
            self.code.put(&[0x90]);
        }
    }

    /// Ensures room in the log for the record, and for some more.
    pub(super) fn see_to_room(&mut self, path: &Path, pc: u64) {
        self.state.is_open = false;
        self.mark(pc);
        if has_idle_flags(path) {
            // test r15d, the bit that is set when the chunk is full; eight bytes, see `Cache::lead`
            self.code.put(&[0x3e, 0x41, 0xf7, 0xc7]);
            self.code.put(&FULL_BIT.to_le_bytes());
            let hole = self.code.jump_to_side(NOT_EQUAL);
            self.exits.push(SideExit::full(hole));
        } else {
            self.code.store_slot(self.slot(at!(counter)), RCX);
            self.state.has_counter = true;
            self.mark(pc);
            self.code.put(&[0xc4, 0xc3, 0xfb, 0xf0, 0xcf, FULL_BIT.trailing_zeros() as u8]); // rorx rcx, r15, 16
            self.code.put(&[0x0f, 0xb6, 0xc9]); // movzx ecx, cl
            let has_room = self.code.jump_short(JRCXZ);
            self.code.load_slot(RCX, self.slot(at!(counter)));
            self.state.has_counter = false;
            self.mark(pc);
            let hole = self.code.jump_always_to_side();
            self.exits.push(SideExit::full(hole));
            self.code.land_short(has_room);
            self.state.has_counter = true;
            self.mark(pc);
            self.code.load_slot(RCX, self.slot(at!(counter)));
            self.state.has_counter = false;
        }
        self.state.is_open = true;
        self.mark(pc);
    }

    pub(super) fn write_steps(&mut self, path: &Path) {
        let (last, body) = match path.end {
            End::Flow => {
                path.steps.split_last().map_or((None, &path.steps[..]), |(last, all)| (Some(last), all))
            }
            End::Falls(_) | End::Lost => (None, &path.steps[..]),
        };
        for (number, step) in body.iter().enumerate() {
            self.mark(step.instruction.ip());
            if step.ends_part {
                let behind = match path.end {
                    End::Falls(to) => to,
                    End::Flow | End::Lost => 0,
                };
                self.pass_on(step, path.steps.get(number + 1).map_or(behind, |next| next.instruction.ip()));
            } else {
                self.step(step);
            }
        }
        match (last, path.end) {
            (Some(last), _) => self.finish(last),
            (None, End::Falls(to)) => self.fall(to),
            (None, _) => {}
        }
        self.write_exits();
    }

    /// The instruction counts as executed, and the program is at `next`.
    pub(super) fn count(&mut self, step: &Step, next: u64) {
        self.state.instructions += 1;
        self.mark(next);
        self.tell(step);
    }

    /// The instruction is one of the part's.
    pub(super) fn tell(&mut self, step: &Step) {
        self.open.lengths.push(step.instruction.len() as u8);
        self.values.follow(&step.instruction);
        if !self.values.is_stack_known() {
            let word = self.next_word();
            self.code.store(LOG, 8 * i32::from(word), RSP);
            self.values.set_word(RSP, word);
        }
    }

    /// The part is whole.
    pub(super) fn close_part(&mut self, next: u64) {
        let next = Part { start: next, ..Part::default() };
        let mut part = std::mem::replace(&mut self.open, next);
        part.accesses = self.made.accesses.len() as u16;
        part.words = self.words;
        if let Some(stack) = self.values.get(RSP) {
            (part.stack, part.stack_distance) = (stack.word, stack.distance);
        }
        self.made.parts.push(part);
    }

    /// An instruction that passes control to the next.
    pub(super) fn step(&mut self, step: &Step) {
        let mut helpers = Helpers::of(step.used);
        self.log_accesses(step, &mut helpers);
        self.copy(step, &mut helpers);
        let next = step.instruction.next_ip();
        let repeats = step.plans.all.iter().any(|plan| matches!(plan.place, AddressForm::Repeated(_)));
        if repeats {
            // It does not count until the register with its end is logged.
            self.give_helpers_back(next);
            self.log_ends(step);
            self.count(step, next);
        } else {
            self.count(step, next);
            self.give_helpers_back(next);
        }
        self.mark(next);
    }

    /// The program's instruction, with other registers and places where it cannot use its own.
    pub(super) fn copy(&mut self, step: &Step, helpers: &mut Helpers) {
        let instruction = &step.instruction;
        let uses_own = step.used & 1 << LOG.0 != 0;
        let is_far = instruction.is_ip_rel_memory_operand();
        if !uses_own && !is_far {
            self.code.put(&step.bytes);
            return;
        }
        let mut own = *instruction;
        if uses_own
            && helpers.own.is_none()
            && let Some(changed) = renaming::with_slot(&own, self.own_slot())
        {
            own = changed;
        } else if uses_own {
            let register = self.own_value(helpers, instruction.ip());
            own = renaming::with_register(&own, register);
            self.state.own = Some(register.0);
            self.mark(instruction.ip());
        }
        if !self.encode(&own) {
            let register = match helpers.spare.take() {
                Some(register) => register,
                None => self.borrow(helpers, instruction.ip()),
            };
            self.code.move_value(register, own.ip_rel_memory_address());
            own.set_memory_base(FULL_REGISTERS[usize::from(register.0)]);
            own.set_memory_displacement64(0);
            own.set_memory_displ_size(0);
            let is_encoded = self.encode(&own);
            debug_assert!(is_encoded, "{own:?}");
        }
        if let Some(register) = self.state.own.filter(|_| step.writes_log_register) {
            self.state.instructions += 1;
            self.mark(instruction.next_ip());
            self.state.instructions -= 1;
            self.code.store_slot(self.own_slot(), Gpr(register));
        }
        self.state.own = None;
    }

    pub(super) fn own_slot(&self) -> i32 {
        self.slot(at!(own.logged))
    }

    /// False when it names a place that is too far away.
    pub(super) fn encode(&mut self, instruction: &Instruction) -> bool {
        let here = self.task.at + self.code.here() as u64;
        let mut encoder = Encoder::new(64);
        let is_encoded = encoder.encode(instruction, here).is_ok();
        if is_encoded {
            self.code.put(&encoder.take_buffer());
        }
        is_encoded
    }
}

/// The bit of the log's place that is set when the chunk is full.
const FULL_BIT: u32 = 1 << 16;
/// The condition of a jump when not equal.
const NOT_EQUAL: u8 = 5;

/// Whether no flag matters at the beginning.
fn has_idle_flags(path: &Path) -> bool {
    for step in &path.steps {
        let instruction = &step.instruction;
        if instruction.rflags_read() & STATUS != 0 || step.plans.misses {
            return false;
        }
        if sets_all(instruction) {
            return true;
        }
        let is_left = step.ends_part && instruction.is_jcc_short_or_near();
        if is_left || is_counted(instruction.code()) {
            return false;
        }
    }
    false
}
