//! The end of a block, by which control continues.

use super::accesses::AddressForm;
use super::block::Block;
use super::counted_jumps::counted_opcode;
use super::step::Step;
use crate::machine::x86_64::assembly::{Address, Code, Gpr, JRCXZ, RCX, RSP};
use crate::machine::x86_64::general_registers::gpr;
use crate::machine::x86_64::slot_registers::SlotRegisters;
use crate::machine::{Link, Ways};
use crate::threads::slots::{at, reason};
use iced_x86::{Code as Opcode, FlowControl, OpKind};

/// The second returner of a system call.
#[derive(Clone, Copy)]
pub(crate) enum Child {
    /// A process or thread that has this thread's slots: it continues natively.
    Borrower,
    /// A process with a copy of the memory: it continues natively.
    Process,
    /// A thread with slots of its own, which continues at this code.
    Thread(u64),
}

impl Child {
    /// Continues there.
    pub(crate) fn go(self, code: &mut Code, slots: i32, next: u64) {
        match self {
            Child::Borrower => code.jump_far(next),
            Child::Process => {
                code.store_slot_value(slots + at!(busy), 0);
                code.jump_far(next);
            }
            Child::Thread(begins) => {
                code.store_slot_value(slots + at!(pc), next);
                code.jump_far(begins);
            }
        }
    }
}

impl Block<'_> {
    /// The last instruction.
    pub(crate) fn finish(&mut self, number: u8, step: &Step) {
        let instruction = &step.instruction;
        let (pc, next) = (Some(instruction.ip()), instruction.next_ip());
        self.mark(pc, self.held());
        self.sift(step);
        match instruction.flow_control() {
            FlowControl::UnconditionalBranch => {
                self.give_back(pc);
                let jump = self.code.jump();
                self.links_to(&[(jump, instruction.near_branch_target())]);
            }
            FlowControl::ConditionalBranch => {
                self.give_back(pc);
                let taken = match counted_opcode(instruction.code()) {
                    Some(opcode) => self.counted(opcode, instruction.near_branch_target(), next),
                    // The condition's number is that of the opcode, and one.
                    None => self.code.jump_if(instruction.condition_code() as u8 - 1),
                };
                self.mark(Some(next), SlotRegisters::Nothing);
                let other = self.code.jump();
                self.links_to(&[(taken, instruction.near_branch_target()), (other, next)]);
            }
            FlowControl::Call if instruction.code() == Opcode::Syscall => {
                self.system_call(instruction.ip(), next)
            }
            FlowControl::Call | FlowControl::IndirectCall => self.call(number, step, next),
            FlowControl::Return => self.ret(number, step),
            _ => {
                self.target(number, step);
                self.commit();
                self.look_up(Some(1));
            }
        }
    }

    /// A jump by `rcx`: the short one leads to a long one.
    fn counted(&mut self, opcode: &[u8], target: u64, next: u64) -> usize {
        let taken = self.code.jump_short(opcode);
        self.mark(Some(next), SlotRegisters::Nothing);
        let not_taken = self.code.jump_short(&[0xeb]);
        self.code.land_short(taken);
        self.mark(Some(target), SlotRegisters::Nothing);
        let jump = self.code.jump();
        self.code.land_short(not_taken);
        jump
    }

    /// Writes the code of links before they are linked: each hands over to the engine.
    pub(crate) fn links_to(&mut self, links: &[(usize, u64)]) {
        for (hole, target) in links {
            self.code.land(*hole);
            self.mark(Some(*target), SlotRegisters::Nothing);
            let link = self.slot(at!(link));
            self.code.store_slot_value(link, u64::MAX);
            // Two stores of four bytes, with their values at their ends.
            let end = self.code.here();
            self.out.link_holes.push((end - 16, end - 4));
            self.leave_for(reason::GO, *target);
            self.out.links.push(Link { hole: *hole, target: *target, turn: None });
        }
    }

    /// Logs the value of the register for addresses.
    fn log_word(&mut self) {
        let word = self.next_word();
        self.code.store(self.log, word, self.scratch);
    }

    /// Logs the instruction's accesses, and puts its target into the slot for that.
    fn target(&mut self, number: u8, step: &Step) {
        let pc = self.slot(at!(pc));
        let instruction = &step.instruction;
        if instruction.op0_kind() == OpKind::Register {
            if let Some(register) = gpr(instruction.op0_register()) {
                self.code.store_slot(pc, register);
            }
            return;
        }
        let Some(place) = step.target else { return };
        let logged = step.plans.all.iter().find(|plan| plan.is_load);
        self.address(place, instruction.ip());
        if let Some(plan) = logged {
            self.out.definition.accesses.extend(plan.defined(number));
            self.log_word();
        }
        self.code.load(self.scratch, self.scratch, 0);
        if logged.is_some_and(|plan| plan.is_valued) {
            self.log_word();
        }
        self.code.store_slot(pc, self.scratch);
    }

    fn call(&mut self, number: u8, step: &Step, next: u64) {
        let is_direct = step.instruction.flow_control() == FlowControl::Call;
        if !is_direct {
            self.target(number, step);
        }
        for plan in step.plans.all.iter().filter(|plan| plan.is_store && !plan.is_load) {
            self.out.definition.accesses.extend(plan.defined(number));
            let pushed = Address { base: Some(RSP), index: None, distance: -8 };
            self.address(AddressForm::Computed(pushed, false), step.instruction.ip());
            self.log_word();
            if plan.is_valued {
                self.code.move_value(self.scratch, next);
                self.log_word();
            }
        }
        self.commit();
        self.code.move_value(self.scratch, next);
        self.code.push(self.scratch);
        let target = is_direct.then(|| step.instruction.near_branch_target());
        self.mark(target, self.held());
        if is_direct {
            self.restore();
            self.mark(target, SlotRegisters::Nothing);
            let jump = self.code.jump();
            self.links_to(&[(jump, step.instruction.near_branch_target())]);
        } else {
            self.look_up(None);
        }
    }

    fn ret(&mut self, number: u8, step: &Step) {
        let popped =
            8 + if step.instruction.op_count() > 0 { i32::from(step.instruction.immediate16()) } else { 0 };
        let logged = step.plans.all.first();
        self.out.definition.accesses.extend(logged.into_iter().flat_map(|plan| plan.defined(number)));
        self.code.move_register(self.scratch, RSP);
        if logged.is_some() {
            self.log_word();
        }
        self.code.load(self.scratch, self.scratch, 0);
        if logged.is_some_and(|plan| plan.is_valued) {
            self.log_word();
        }
        self.code.store_slot(self.slot(at!(pc)), self.scratch);
        self.commit();
        self.code.lea_plus(RSP, RSP, popped);
        self.mark(None, self.held());
        self.look_up(Some(popped));
    }

    /// Jumps to the address in its slot. `above` is the least distance of the outermost call's return address above the
    /// stack pointer for the call to be over; `None` when it cannot be over.
    fn look_up(&mut self, above: Option<i32>) {
        let (scratch, counter) = (self.slot(at!(scratch)), self.slot(at!(counter)));
        self.mark(None, self.held());
        if !self.holds_counter {
            self.code.store_slot(counter, RCX);
        }
        self.mark(None, SlotRegisters::Both);
        if let Some(above) = above.filter(|_| self.task.whole.is_none()) {
            self.code.load_slot(RCX, self.slot(at!(minus_base)));
            self.code.lea(RCX, Address { base: Some(RSP), index: Some((RCX, 1)), distance: -above });
            self.code.store_slot(scratch, RCX);
            // The highest byte is 0 at or above the base, and not below.
            self.code.load_slot_byte_to_rcx(scratch + 7);
            let is_over = self.code.jump_short(JRCXZ);
            let goes_on = self.code.jump();
            self.code.land_short(is_over);
            self.hand_over(reason::LEAVE);
            self.code.land(goes_on);
            self.mark(None, SlotRegisters::Both);
        }
        let (to, table) = (self.scratch, self.log);
        self.code.load_slot(to, self.slot(at!(pc)));
        self.code.load_low_16_to_rcx(to);
        self.code.load_slot(table, self.slot(at!(table)));
        self.code.lea(RCX, Address { base: Some(RCX), index: Some((RCX, 1)), distance: 0 });
        self.code.lea(table, Address { base: Some(table), index: Some((RCX, 8)), distance: 0 });
        self.code.load(RCX, table, 0);
        self.code.lea(RCX, Address { base: Some(RCX), index: Some((to, 1)), distance: 0 });
        let hit = self.code.jump_short(JRCXZ);
        self.hand_over(reason::GO);
        self.code.land_short(hit);
        self.mark(None, SlotRegisters::Both);
        self.code.load(table, table, 8);
        self.code.store_slot(self.slot(at!(resume)), table);
        self.restore();
        self.code.load_slot(RCX, counter);
        self.mark(None, SlotRegisters::Nothing);
        self.code.jump_to_slot(self.slot(at!(resume)));
    }

    /// Hands over to the engine for `pc`, which is set.
    fn hand_over(&mut self, reason: u64) {
        self.restore();
        self.code.load_slot(RCX, self.slot(at!(counter)));
        self.mark(None, SlotRegisters::Nothing);
        self.code.store_slot_value(self.slot(at!(link)), 0);
        self.code.store_slot_value(self.slot(at!(reason)), reason);
        self.code.jump_to_slot(self.slot(at!(gate)));
    }

    /// The engine handles a system call first, and continues after it.
    fn system_call(&mut self, pc: u64, next: u64) {
        self.give_back(Some(pc));
        self.leave_for(reason::SYSTEM_CALL, next);
        let alone = self.code.here();
        self.mark(Some(pc), SlotRegisters::Nothing);
        self.code.put(&[0x0f, 0x05]);
        self.mark(Some(next), SlotRegisters::AfterSystemCall);
        self.code.move_value(RCX, next);
        let mut links = Vec::new();
        if self.task.whole.is_some() {
            links.push((self.code.jump(), next));
        } else {
            self.mark(Some(next), SlotRegisters::Nothing);
            self.leave_for(reason::RETURNED, next);
        }
        let (shared, after_shared) = self.twice(pc, next, Child::Borrower);
        let (forked, after_forked) = self.twice(pc, next, Child::Process);
        links.extend([(after_shared, next), (after_forked, next)]);
        let begun = match self.task.whole {
            Some(whole) => {
                let (begun, after_begun) = self.twice(pc, next, Child::Thread(whole.begins_threads));
                links.push((after_begun, next));
                begun
            }
            None => shared,
        };
        self.out.system_call = Some(Ways { alone, shared, forked, begun });
        self.links_to(&links);
    }

    /// A system call that returns in another thread or process, too. Returns the place of its beginning, and of the
    /// jump after it.
    fn twice(&mut self, pc: u64, next: u64, child: Child) -> (usize, usize) {
        let begin = self.code.here();
        self.mark(Some(pc), SlotRegisters::Nothing);
        self.code.put(&[0x0f, 0x05]);
        self.mark(Some(next), SlotRegisters::AfterSystemCall);
        self.code.move_register(RCX, Gpr(0));
        let is_child = self.code.jump_short(JRCXZ);
        self.code.move_value(RCX, next);
        let other = self.code.jump();
        self.code.land_short(is_child);
        self.code.move_value(RCX, next);
        child.go(&mut self.code, self.task.slots, next);
        (begin, other)
    }
}
