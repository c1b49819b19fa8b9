//! Selects the instructions of a superblock.

use crate::cache::sequence::Zones;
use crate::machine::x86_64::assembly::{Gpr, RSP};
use crate::machine::x86_64::general_registers::{LOG, gpr};
use crate::machine::x86_64::restarts::{self, Beginning};
use crate::machine::x86_64::superblock::values::MOST_SOURCES;
use crate::machine::x86_64::translate::accesses::{self, AddressForm, Planned, Plans};
use crate::machine::x86_64::translate::reading::{is_translatable, may_change_next, unlogged, used};
use crate::machine::{Source, Task, Unlogged};
use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess,
};
use lineup_recording::native::superblock::{MOST_INSTRUCTIONS, MOST_PARTS, MOST_WORDS};

/// The most instructions of a superblock that does not continue another.
const MOST_AT_ONCE: usize = 96;
/// The most instructions after the place where it continues another.
const MOST_BEYOND: usize = 64;

/// Bytes of the longest instruction.
const LONGEST: usize = 15;

/// An instruction of it.
pub(super) struct Step {
    pub(super) instruction: Instruction,
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
    pub(super) plans: Plans,
    /// The general registers that it uses, as bits.
    pub(super) used: u16,
    /// It writes the log's register.
    pub(super) writes_log_register: bool,
    /// The program's next instruction is not, or may not be, the next one of the code: a part ends.
    pub(super) ends_part: bool,
    /// It is a conditional jump, and the next instruction is its target.
    pub(super) is_taken: bool,
}

/// The end of a superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// Control continues there.
    Falls(u64),
    /// By its last instruction.
    Flow,
    /// The first instruction cannot be translated.
    Lost,
}

/// Code that is executed in this order, unless it is left.
pub(super) struct Path {
    pub(super) steps: Vec<Step>,
    pub(super) end: End,
    /// Its parts.
    pub(super) parts: usize,
    /// The first instruction, when it cannot be translated.
    pub(super) lost: Option<Unlogged>,
    /// The first instruction may begin a restartable sequence.
    pub(super) begins_sequence: bool,
}

/// Words that an access takes at most.
fn words_of(plan: &Planned) -> usize {
    let registers = match plan.place {
        AddressForm::Computed(address, _) => {
            MOST_SOURCES * (usize::from(address.base.is_some()) + usize::from(address.index.is_some()))
        }
        AddressForm::Repeated(_) => 2,
        AddressForm::Constant(_) | AddressForm::OfThread(_) => 0,
    };
    registers + usize::from(plan.elements.is_some())
}

/// Whether an instruction writes a register, or may do so.
pub(super) fn writes(factory: &mut InstructionInfoFactory, instruction: &Instruction, register: Gpr) -> bool {
    let info = factory.info(instruction);
    info.used_registers().iter().any(|used| {
        !matches!(used.access(), OpAccess::None | OpAccess::Read | OpAccess::CondRead)
            && gpr(used.register()) == Some(register)
    })
}

/// Follows the program from the task's address on, and turns behind these parts.
pub(super) fn read(task: &Task<'_>, source: Source<'_>, turns: &[u8]) -> Path {
    let mut reading = Reading {
        zones: (task.zones, task.is_changeable),
        factory: InstructionInfoFactory::new(),
        path: Path { steps: Vec::new(), end: End::Flow, parts: 1, lost: None, begins_sequence: false },
        turns,
        returns: Vec::new(),
        bytes: task.bytes.to_vec(),
        begin: task.pc,
        start: task.pc,
        words: 1,
        // Writable code is checked each time that it runs, so the superblock is a single block of it.
        goes_on: !task.is_changeable,
        most: if turns.is_empty() { MOST_AT_ONCE } else { MOST_INSTRUCTIONS },
    };
    let mut pc = task.pc;
    while let Some(next) = reading.next(pc, source) {
        pc = next;
    }
    reading.path
}

struct Reading<'a> {
    /// Places of stores that may begin a restartable sequence, and whether the code may change.
    zones: (&'a Zones, bool),
    factory: InstructionInfoFactory,
    path: Path,
    /// Parts after which it turns.
    turns: &'a [u8],
    /// Return addresses of calls within it, the innermost last.
    returns: Vec<u64>,
    /// Code from `begin` on.
    bytes: Vec<u8>,
    begin: u64,
    /// Start of the superblock.
    start: u64,
    /// Words of the record, at most.
    words: usize,
    goes_on: bool,
    /// Instructions at most.
    most: usize,
}

impl Reading<'_> {
    /// Takes in the instruction at an address. Returns the next address, or `None` at the end.
    fn next(&mut self, pc: u64, source: Source<'_>) -> Option<u64> {
        let steps = &self.path.steps;
        if steps.len() == self.most || self.words + 8 > MOST_WORDS {
            return self.end(End::Falls(pc));
        }
        let mut at = (pc - self.begin) as usize;
        if self.goes_on
            && self.bytes.len() < at + LONGEST
            && let Some(bytes) = source(pc)
        {
            (self.bytes, self.begin, at) = (bytes, pc, 0);
        }
        let rest = self.bytes.get(at..).unwrap_or_default();
        let instruction = Decoder::with_ip(64, rest, pc, DecoderOptions::NONE).decode();
        let is_first = self.path.steps.is_empty();
        if instruction.is_invalid() || !is_translatable(&instruction) {
            return self.cannot(&instruction, pc, is_first);
        }
        match restarts::beginning(&mut self.factory, &instruction, self.zones) {
            Beginning::Unclear => return self.cannot(&instruction, pc, is_first),
            Beginning::Store if !is_first => return self.end(End::Falls(pc)),
            beginning => self.path.begins_sequence |= beginning == Beginning::Store,
        }
        let mut plans = accesses::plan(&mut self.factory, &instruction);
        plans.is_timed = false;
        if plans.misses && instruction.flow_control() != FlowControl::Next {
            return self.cannot(&instruction, pc, is_first);
        }
        let repeats = plans.all.iter().any(|plan| matches!(plan.place, AddressForm::Repeated(_)));
        if repeats && !is_first {
            return self.end(End::Falls(pc));
        }
        let used = used(&mut self.factory, &instruction);
        // The value of the stack pointer may have to be logged.
        self.words += plans.all.iter().map(words_of).sum::<usize>() + usize::from(used & 1 << RSP.0 != 0);
        let bytes = rest[..instruction.len()].to_vec();
        let writes_log_register = used & 1 << LOG.0 != 0 && writes(&mut self.factory, &instruction, LOG);
        let may_change_next = self.zones.1 && may_change_next(&mut self.factory, &instruction);
        let (ends_part, is_taken) = (false, false);
        let step = Step { instruction, bytes, plans, used, writes_log_register, ends_part, is_taken };
        self.path.steps.push(step);
        if repeats || may_change_next {
            return self.end(End::Falls(instruction.next_ip()));
        }
        self.follow(&instruction, source)
    }

    /// The address where the program continues after an instruction, if it is known; otherwise the path ends.
    fn follow(&mut self, instruction: &Instruction, source: Source<'_>) -> Option<u64> {
        let next = match instruction.flow_control() {
            FlowControl::Next => return Some(instruction.next_ip()),
            // A jump back is most often taken.
            FlowControl::ConditionalBranch if self.goes_back(instruction) != self.turns_here() => {
                instruction.near_branch_target()
            }
            FlowControl::ConditionalBranch => instruction.next_ip(),
            FlowControl::UnconditionalBranch => instruction.near_branch_target(),
            FlowControl::Call if instruction.code() != Opcode::Syscall => {
                self.returns.push(instruction.next_ip());
                instruction.near_branch_target()
            }
            // Most often to the place of the call.
            FlowControl::Return if instruction.code() == Opcode::Retnq => match self.returns.pop() {
                Some(to) => to,
                None => return self.end(End::Flow),
            },
            _ => return self.end(End::Flow),
        };
        let is_there = |step: &Step| step.instruction.ip() == next;
        let can_go_on = match self.path.steps.iter().any(is_there) {
            // After its turn, as often as there is room.
            true if self.turns.first().is_some_and(|first| usize::from(*first) < self.path.parts) => true,
            // A short loop, or one that begins at the superblock's start.
            true if self.path.steps.len() < MOST_AT_ONCE / 2 => true,
            true => next == self.start && self.has_room_for_turn(),
            false => true,
        };
        if !self.goes_on || self.path.parts == MOST_PARTS || !can_go_on {
            return self.end(End::Flow);
        }
        if next != instruction.next_ip() {
            let Some(bytes) = source(next) else { return self.end(End::Flow) };
            (self.bytes, self.begin) = (bytes, next);
        }
        if self.turns.last().is_some_and(|last| usize::from(*last) + 1 == self.path.parts) {
            self.most = (self.path.steps.len() + MOST_BEYOND).min(MOST_INSTRUCTIONS);
        }
        self.path.parts += 1;
        if let Some(step) = self.path.steps.last_mut() {
            step.ends_part = true;
            step.is_taken = self.goes_on
                && instruction.flow_control() == FlowControl::ConditionalBranch
                && next == instruction.near_branch_target();
        }
        Some(next)
    }

    /// Whether it turns after the part that it reads.
    fn turns_here(&self) -> bool {
        self.turns.iter().any(|part| usize::from(*part) + 1 == self.path.parts)
    }

    fn goes_back(&self, instruction: &Instruction) -> bool {
        instruction.is_jcc_short_or_near() && instruction.near_branch_target() <= instruction.ip()
    }

    /// Whether there is room for a loop's code once more.
    fn has_room_for_turn(&self) -> bool {
        let turns = self.path.steps.iter().filter(|step| step.instruction.ip() == self.start).count().max(1);
        let with_another = |all: usize| all + all.div_ceil(turns);
        with_another(self.path.steps.len()) <= self.most
            && with_another(self.path.parts) <= MOST_PARTS
            && with_another(self.words) + 8 <= MOST_WORDS
    }

    fn end(&mut self, end: End) -> Option<u64> {
        self.path.end = end;
        None
    }

    /// The instruction is executed natively, when the program reaches it.
    fn cannot(&mut self, instruction: &Instruction, pc: u64, is_first: bool) -> Option<u64> {
        self.path.lost = is_first.then(|| unlogged(instruction, true));
        self.end(if is_first { End::Lost } else { End::Falls(pc) })
    }
}
