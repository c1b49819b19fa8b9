//! The exits of a superblock: to the side, at its end, and where the log is full.

use super::reading::Step;
use super::side_exit::{Side, SideExit};
use super::writer::Writer;
use crate::machine::x86_64::assembly::{Address, Code, Gpr, JRCXZ, RCX, RDX, RSP};
use crate::machine::x86_64::general_registers::{FULL_REGISTERS, LOG, gpr};
use crate::machine::x86_64::slot_registers::SlotRegisters;
use crate::machine::x86_64::superblock::helpers::Helpers;
use crate::machine::x86_64::superblock::renaming;
use crate::machine::x86_64::translate::counted_jumps::counted_opcode;
use crate::machine::x86_64::translate::tail::Child;
use crate::machine::{Link, Mark, Turn, Ways};
use crate::threads::slots::{at, reason};
use iced_x86::{Code as Opcode, FlowControl, Instruction, MemoryOperand, OpKind};
use lineup_recording::native::superblock::NUMBER_BITS;

impl Writer<'_> {
    /// The last instruction of a part that others follow.
    pub(super) fn pass_on(&mut self, step: &Step, next: u64) {
        let instruction = &step.instruction;
        let mut helpers = Helpers::of(step.used);
        self.log_accesses(step, &mut helpers);
        if self.route.turns.last().is_some_and(|last| usize::from(*last) == self.made.parts.len()) {
            self.count(step, next);
            self.close_part(next);
            self.begin_beyond(next);
            return;
        }
        match instruction.flow_control() {
            FlowControl::ConditionalBranch => {
                let mut state = self.state;
                let pc = if step.is_taken { instruction.next_ip() } else { instruction.near_branch_target() };
                let mut jump = instruction.ip();
                let counted = counted_opcode(instruction.code());
                let hole = match counted {
                    Some(opcode) => {
                        // `rcx` is counted already.
                        state.instructions += 1;
                        jump = pc;
                        self.counted_to_side(opcode, pc, next)
                    }
                    // The condition's number is that of the opcode, and one.
                    None => {
                        let condition = instruction.condition_code() as u8 - 1;
                        // The lowest bit inverts it.
                        self.code.jump_if(condition ^ u8::from(step.is_taken))
                    }
                };
                let part = self.made.parts.len() as u8;
                let words = self.words;
                let can_turn = counted.is_none();
                let to = Side::Target { pc, part, words, state, jump, can_turn };
                self.exits.push(SideExit { hole, to });
            }
            FlowControl::Call => self.push_constant(instruction.next_ip()),
            FlowControl::Return => self.return_to(instruction.ip(), next),
            _ => {}
        }
        self.count(step, next);
        self.close_part(next);
    }

    /// Returns to the place of a call in the superblock; a side exit covers other return addresses.
    fn return_to(&mut self, pc: u64, next: u64) {
        let (part, words) = (self.made.parts.len() as u8, self.words);
        self.borrow_for_target(pc);
        self.code.load(RCX, RSP, 0);
        self.code.move_wide(RDX, next.wrapping_neg());
        self.code.lea(RCX, Address { base: Some(RCX), index: Some((RDX, 1)), distance: 0 });
        let is_there = self.code.jump_short(JRCXZ);
        let hole = self.code.jump_always_to_side();
        let to = Side::Returns { pc, part, words, state: self.state };
        self.exits.push(SideExit { hole, to });
        self.code.land_short(is_there);
        self.code.load_slot(RCX, self.slot(at!(counter)));
        self.code.load_slot(RDX, self.slot(at!(second)));
        self.state.has_counter = false;
        self.state.second = None;
        self.mark(pc);
        self.code.lea_plus(RSP, RSP, 8);
    }

    /// Borrows the registers for looking up a jump's target.
    fn borrow_for_target(&mut self, pc: u64) {
        self.code.store_slot(self.slot(at!(counter)), RCX);
        self.code.store_slot(self.slot(at!(second)), RDX);
        self.state.has_counter = true;
        self.state.second = Some(RDX.0);
        self.mark(pc);
    }

    /// The following code is the superblock's own; the code up to here is that of the one that it is reached from.
    /// Before it lies code that returns control as that one would, for when it is forgotten.
    fn begin_beyond(&mut self, pc: u64) {
        self.code = Code::default();
        (self.exits, self.constants) = (Vec::new(), Vec::new());
        (self.out.marks, self.out.definition_holes) = (Vec::new(), Vec::new());
        (self.out.body, self.out.unlogged) = (0, Vec::new());
        let part = self.made.parts.len() as u8 - 1;
        self.mark(pc);
        self.name_record(part, self.words, self.route.before);
        self.mark(pc);
        self.give_log_back(pc);
        // No link leads here.
        self.code.store_slot_value(self.slot(at!(link)), u64::MAX);
        self.leave_for(reason::GO, pc);
        self.align();
        self.out.inner = self.code.here();
        self.state.is_open = true;
        self.mark(pc);
    }

    /// A jump by `rcx`: the short one leads to a long one.
    fn counted_to_side(&mut self, opcode: &[u8], target: u64, next: u64) -> usize {
        let taken = self.code.jump_short(opcode);
        self.state.instructions += 1;
        self.mark(next);
        let over = self.code.jump_short(&[0xeb]);
        self.code.land_short(taken);
        self.mark(target);
        let hole = self.code.jump_always_to_side();
        self.state.instructions -= 1;
        self.code.land_short(over);
        hole
    }

    /// Pushes the program's value.
    fn push_constant(&mut self, value: u64) {
        self.code.put(&[0xff, 0x35]); // push [rip + ...]
        let hole = self.code.hole();
        self.constants.push((hole, value));
    }

    /// Names the superblock and the part in the record, and moves on behind it.
    fn close_record(&mut self, part: u8, words: u8) {
        let hole = self.name_record(part, words, 0);
        self.out.definition_holes.push(hole);
    }

    /// As [`Writer::close_record`], for a superblock of this number. Returns the number's place.
    fn name_record(&mut self, part: u8, words: u8, number: u32) -> usize {
        let named = number | u32::from(part) << NUMBER_BITS;
        self.code.store_value(LOG, 0, named.cast_signed());
        let hole = self.code.here() - 4;
        self.code.lea_plus(LOG, LOG, 8 * i32::from(words));
        self.state.is_open = false;
        hole
    }

    /// The record is complete before its last instruction.
    fn close(&mut self, pc: u64) {
        let part = self.made.parts.len() as u8 - 1;
        self.close_record(part, self.words);
        self.mark(pc);
    }

    /// The path ends, and continues with another.
    pub(super) fn fall(&mut self, to: u64) {
        if !self.open.lengths.is_empty() {
            self.close_part(to);
        }
        self.close(to);
        let jump = self.code.jump();
        self.links_to(&[(jump, to)]);
    }

    /// The last instruction.
    pub(super) fn finish(&mut self, step: &Step) {
        let instruction = &step.instruction;
        let (pc, next) = (instruction.ip(), instruction.next_ip());
        let mut helpers = Helpers::of(step.used);
        self.log_accesses(step, &mut helpers);
        self.give_helpers_back(pc);
        // The program is before the instruction until the superblock is left: an interruption must not report the state
        // after it.
        self.tell(step);
        self.close_part(next);
        match instruction.flow_control() {
            FlowControl::UnconditionalBranch => {
                self.close(pc);
                let jump = self.code.jump();
                self.links_to(&[(jump, instruction.near_branch_target())]);
            }
            FlowControl::ConditionalBranch => {
                self.close(pc);
                let taken = match counted_opcode(instruction.code()) {
                    Some(opcode) => self.counted(opcode, instruction.near_branch_target(), next),
                    None => self.code.jump_if(instruction.condition_code() as u8 - 1),
                };
                self.mark(next);
                let other = self.code.jump();
                self.links_to(&[(taken, instruction.near_branch_target()), (other, next)]);
            }
            FlowControl::Call if instruction.code() == Opcode::Syscall => self.system_call(pc, next),
            FlowControl::Call => {
                self.close(pc);
                self.push_constant(next);
                self.mark(instruction.near_branch_target());
                let jump = self.code.jump();
                self.links_to(&[(jump, instruction.near_branch_target())]);
            }
            _ => self.go_where_told(step),
        }
    }

    fn counted(&mut self, opcode: &[u8], target: u64, next: u64) -> usize {
        let taken = self.code.jump_short(opcode);
        self.mark(next);
        let not_taken = self.code.jump_short(&[0xeb]);
        self.code.land_short(taken);
        self.mark(target);
        let jump = self.code.jump();
        self.code.land_short(not_taken);
        jump
    }

    /// Jumps to the target in a register or memory: by the table of such targets, with the target in `rcx`.
    fn go_where_told(&mut self, step: &Step) {
        let instruction = &step.instruction;
        let pc = instruction.ip();
        self.close(pc);
        self.borrow_for_target(pc);
        match instruction.flow_control() {
            FlowControl::Return => {
                let more = if instruction.op_count() > 0 { i32::from(instruction.immediate16()) } else { 0 };
                // One instruction takes it off the stack: an interruption finds it there, or the target in `rcx`.
                self.code.load(RCX, RSP, 0);
                self.code.lea_plus(RSP, RSP, 8 + more);
            }
            flow => {
                self.load_target(instruction);
                if flow == FlowControl::IndirectCall {
                    self.push_constant(instruction.next_ip());
                }
            }
        }
        self.go_to_target();
    }

    /// Goes where `rcx` says.
    fn go_to_target(&mut self) {
        self.out.marks.push(Mark { offset: self.code.here(), pc: None, held: SlotRegisters::Target(0) });
        self.code.put(&[0x0f, 0xb7, 0xd1]); // movzx edx, cx
        self.code.put(&[0xff, 0x24, 0xd5]); // jmp [8 * rdx + the table]
        self.code.put(&(self.whole.targets as u32).to_le_bytes());
        self.state.has_counter = false;
        self.state.second = None;
    }

    /// Loads a jump's target into `rcx`.
    fn load_target(&mut self, instruction: &Instruction) {
        let own_slot = self.slot(at!(own.logged));
        if instruction.op0_kind() == OpKind::Register {
            match gpr(instruction.op0_register()) {
                Some(LOG) => self.code.load_slot(RCX, own_slot),
                Some(register) => self.code.move_register(RCX, register),
                None => {}
            }
            return;
        }
        let mut load = Instruction::with2(
            Opcode::Mov_r64_rm64,
            FULL_REGISTERS[usize::from(RCX.0)],
            MemoryOperand::new(
                instruction.memory_base(),
                instruction.memory_index(),
                instruction.memory_index_scale(),
                instruction.memory_displacement64().cast_signed(),
                instruction.memory_displ_size(),
                false,
                instruction.segment_prefix(),
            ),
        )
        .unwrap_or_default();
        let is_own = |register: iced_x86::Register| gpr(register) == Some(LOG);
        if is_own(load.memory_base()) || is_own(load.memory_index()) {
            let is_rcx = |register| gpr(register) == Some(RCX);
            let other = if is_rcx(load.memory_base()) || is_rcx(load.memory_index()) { RDX } else { RCX };
            self.code.load_slot(other, own_slot);
            load = renaming::with_register(&load, other);
        }
        if !self.encode(&load) {
            self.code.move_value(RCX, instruction.ip_rel_memory_address());
            self.code.load(RCX, RCX, 0);
        }
    }

    /// The engine handles a system call first, and continues after it.
    fn system_call(&mut self, pc: u64, next: u64) {
        self.close(pc);
        self.give_log_back(pc);
        self.leave_for(reason::SYSTEM_CALL, next);
        let alone = self.code.here();
        self.mark_native(pc);
        self.code.put(&[0x0f, 0x05]);
        let after = self.after_call(next);
        let mut links = vec![(after, next)];
        let begins = self.whole.begins_threads;
        let mut twice = |child| {
            let (begin, after) = self.twice(pc, next, child);
            links.push((after, next));
            begin
        };
        let shared = twice(Child::Borrower);
        let forked = twice(Child::Process);
        let begun = twice(Child::Thread(begins));
        self.out.system_call = Some(Ways { alone, shared, forked, begun });
        self.links_to(&links);
    }

    /// A system call has returned: jumps to the next instruction.
    fn after_call(&mut self, next: u64) -> usize {
        self.out.marks.push(Mark {
            offset: self.code.here(),
            pc: Some(next),
            held: SlotRegisters::AfterSystemCall,
        });
        self.code.move_value(RCX, next);
        self.take_log(next);
        self.code.jump()
    }

    /// A system call that returns in another thread or process, too. Returns the place of its beginning, and of the
    /// jump after it.
    fn twice(&mut self, pc: u64, next: u64, child: Child) -> (usize, usize) {
        let begin = self.code.here();
        self.mark_native(pc);
        self.code.put(&[0x0f, 0x05]);
        self.out.marks.push(Mark {
            offset: self.code.here(),
            pc: Some(next),
            held: SlotRegisters::AfterSystemCall,
        });
        self.code.move_register(RCX, Gpr(0));
        let is_child = self.code.jump_short(JRCXZ);
        let other = self.after_call(next);
        self.code.land_short(is_child);
        self.out.marks.push(Mark {
            offset: self.code.here(),
            pc: Some(next),
            held: SlotRegisters::AfterSystemCall,
        });
        self.code.move_value(RCX, next);
        child.go(&mut self.code, self.task.slots, next);
        (begin, other)
    }

    /// Writes the code of links before they are linked: each hands over to the engine.
    fn links_to(&mut self, links: &[(usize, u64)]) {
        for (hole, target) in links {
            self.code.land(*hole);
            self.state.is_open = false;
            self.mark(*target);
            self.give_log_back(*target);
            self.code.store_slot_value(self.slot(at!(link)), u64::MAX);
            // Two stores of four bytes, with their values at their ends.
            let end = self.code.here();
            self.out.link_holes.push((end - 16, end - 4));
            self.leave_for(reason::GO, *target);
            self.out.links.push(Link { hole: *hole, target: *target, turn: None });
        }
    }

    /// Writes the code of side exits, and the constants.
    pub(super) fn write_exits(&mut self) {
        for SideExit { hole, to } in std::mem::take(&mut self.exits) {
            self.code.land(hole);
            match to {
                Side::Full => {
                    self.state.is_open = false;
                    self.state.instructions = 0;
                    self.mark(self.task.pc);
                    self.give_log_back(self.task.pc);
                    self.leave_for(reason::FULL, self.task.pc);
                }
                Side::Returns { pc, part, words, state } => {
                    self.state = state;
                    self.mark(pc);
                    self.close_record(part, words);
                    self.mark(pc);
                    self.code.put(&[0x59]); // pop rcx
                    self.go_to_target();
                }
                Side::Target { pc, part, words, state, jump, can_turn } => {
                    self.state = state;
                    self.mark(jump);
                    self.close_record(part, words);
                    self.mark(pc);
                    let link = self.code.jump();
                    self.links_to(&[(link, pc)]);
                    if let Some(link) = self.out.links.last_mut().filter(|_| can_turn) {
                        link.turn = Some(Turn { jump: hole, part });
                    }
                }
            }
        }
        self.align();
        for (hole, value) in std::mem::take(&mut self.constants) {
            self.code.land(hole);
            self.code.put(&value.to_le_bytes());
        }
    }
}
