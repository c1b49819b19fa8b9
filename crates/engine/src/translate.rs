//! One block of the program's code, as it goes into the cache: every instruction as it was, and between them those that
//! log it.
//!
//! A block borrows two registers that none of its instructions use: one holds where the log stands, the other
//! addresses. Their values, and that of `rcx` where a jump must not touch the flags, lie in the thread's
//! [`Slots`](crate::slots) meanwhile. Nothing that is added changes a flag or touches the program's stack.

mod accesses;
mod elements;
mod logging;
mod pieces;
mod reading;
mod sifting;
mod state;
mod superblock;
mod tail;

use crate::assembly::{Code, Gpr, JRCXZ, RCX};
use crate::sieve::Sieves;
use crate::slots::{at, reason};
use accesses::{Place, Plans};
use iced_x86::{Encoder, Instruction, Register};
use lineup_recording::native::Definition;
use lineup_recording::native::superblock::Superblock;
use pieces::Piece;
use reading::{Read, read};
use sifting::Stub;
use std::ops::Range;
pub(crate) use superblock::{LOG, Route, translate as translate_superblock};
pub use superblock::{Logging, Turn};

/// Instructions in a block at most.
const MOST_INSTRUCTIONS: usize = 48;
/// Words of the log that a block fills at most.
const MOST_WORDS: usize = 400;

/// A system call by how it returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ways<T> {
    /// It returns once.
    pub alone: T,
    /// It returns in another thread, or in a process that borrows this one's memory, too: that goes on natively.
    pub shared: T,
    /// It returns in a process with a copy of this one's memory, too: that goes on natively, and nothing of the engine
    /// is in use there.
    pub forked: T,
    /// It returns in a thread with slots of its own, too: that is recorded when whole programs are, and else as with
    /// `shared`.
    pub begun: T,
}

impl<T> Ways<T> {
    /// The same with other values.
    pub fn map<U>(self, change: impl Fn(T) -> U) -> Ways<U> {
        Ways {
            alone: change(self.alone),
            shared: change(self.shared),
            forked: change(self.forked),
            begun: change(self.begun),
        }
    }
}

/// A jump to another block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Where its distance stands in the code.
    pub hole: usize,
    /// Where it leads in the program.
    pub target: u64,
    /// When it leaves a superblock to the side.
    pub turn: Option<Turn>,
}

/// What of the program's registers lies in the thread's slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// Nothing: all are as the program has them.
    Nothing,
    /// `rcx`.
    Counter,
    /// Those that the block borrows.
    Borrowed,
    /// Those and `rcx`.
    Both,
    /// Those, and `rax` and `rdx`.
    Timed,
    /// Within a superblock, those that it tells; and the log has its register.
    Logging(Logging),
    /// The log's, which is not there: where it stands lies in a slot as well.
    Logged,
    /// The program goes on at the sum of this and `rcx`, which lies in a slot, as `rdx` and the log's register do.
    Target(i64),
    /// As [`Held::Target`], but that `rcx` is the program's, and where it goes on lies in the slot for that.
    Missed,
    /// Nothing, but `rcx` is as a system call at its own place would leave it.
    AfterSystemCall,
}

/// Where the program is, from a place in a block's code on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The place.
    pub offset: usize,
    /// The instruction that comes next; `None` when its address is in the thread's slot for that.
    pub pc: Option<u64>,
    /// Which registers are not the program's.
    pub held: Held,
}

/// An instruction of which not everything is logged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unlogged {
    /// Where it is.
    pub pc: u64,
    /// What it is called.
    pub mnemonic: String,
    /// It is executed natively, and what follows it.
    pub is_lost: bool,
}

/// A block for the cache.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Translated {
    /// Its code: may lie anywhere, at a multiple of four.
    pub code: Vec<u8>,
    /// Where others lead to it, but for those that it is to begin natively for.
    pub inner: usize,
    /// Where it goes on when the engine has noted that an entry was reached.
    pub body: usize,
    /// Where the number of its definition stands in the code, four bytes each.
    pub definition_holes: Vec<usize>,
    /// When the whole program is recorded: where the distance of its count stands in the code, which is that of the first
    /// count, four bytes each.
    pub count_holes: Vec<usize>,
    /// When it stands alone: where the address of its definition stands in the code, eight bytes.
    pub own_hole: Option<usize>,
    /// Jumps to other blocks; each leads to the engine at first.
    pub links: Vec<Link>,
    /// Places where the number of a link stands in the code, in two halves, in the order of `links`.
    pub link_holes: Vec<(usize, usize)>,
    /// Where the system call at its end stands in the code.
    pub system_call: Option<Ways<usize>>,
    /// Where the program is, in order of place.
    pub marks: Vec<Mark>,
    /// The registers that it borrows, by number: what `first` and `second` of the slots hold.
    pub borrowed: (u8, u8),
    /// What it is made of.
    pub definition: Definition,
    /// What it is made of, when all of a run is logged.
    pub superblock: Option<Superblock>,
    /// From the beginning of its code in the program to the end.
    pub range: Range<u64>,
    /// What follows its last instruction.
    pub next: u64,
    /// What of it is not logged.
    pub unlogged: Vec<Unlogged>,
}

/// What a translation needs to know.
pub struct Task<'a> {
    /// The program's code from `pc` on, as far as it may be read.
    pub bytes: &'a [u8],
    /// Where the block begins.
    pub pc: u64,
    /// Distance of the thread's slots from its base.
    pub slots: i32,
    /// The block hands over to the engine first: a watched function begins there, or the program may change its code.
    pub is_entry: bool,
    /// The program may change its code.
    pub is_changeable: bool,
    /// Where the block is to lie in the cache, when all of a run is logged.
    pub at: u64,
    /// When the whole program is recorded: then blocks count themselves, and no call ends.
    pub whole: Option<&'a Whole>,
}

/// What the blocks of a program that is recorded as a whole need to know.
#[derive(Clone, Copy)]
pub struct Whole {
    /// Where its threads begin.
    pub begins_threads: u64,
    /// What is passed over.
    pub(crate) sieves: Sieves,
    /// When all of the run is logged: the table of where jumps lead whose targets are not known before, see
    /// [`crate::targets`]; else 0.
    pub(crate) targets: u32,
}

/// An instruction with what is to be logged of it.
struct Step {
    instruction: Instruction,
    plans: Plans,
    /// What it begins to access, when the whole program is recorded.
    pieces: Vec<Piece>,
    /// No flag matters before it.
    has_idle_flags: bool,
    /// Where the address lies that it leads to, when that is in memory.
    target: Option<Place>,
}

/// What ends a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// It goes on with the next instruction.
    Falls,
    /// The last instruction passes control on.
    Flow,
    /// What comes next cannot be translated.
    Lost,
}

struct Block<'a> {
    task: &'a Task<'a>,
    code: Code,
    out: Translated,
    steps: Vec<Step>,
    ending: Ending,
    /// Where the block ends in the program.
    end: u64,
    log: Gpr,
    scratch: Gpr,
    /// `rcx` is borrowed as well.
    holds_counter: bool,
    /// The first instruction keeps the processor's state, or loads it.
    begins_with_state: bool,
    /// Words of the log so far.
    words: usize,
    stubs: Vec<Stub>,
}

/// Translates the block at the task's address.
pub fn translate(task: &Task<'_>) -> Translated {
    let mut most = MOST_INSTRUCTIONS;
    loop {
        match translate_at_most(task, most) {
            Ok(translated) => return translated,
            // The registers that one alone leaves free may do for it.
            Err(whole) if most > 1 => most = whole.max(1),
            Err(_) => most = 0,
        }
    }
}

/// As [`translate`], so many instructions at most. An error says how many can be moved with the registers that so many
/// leave free.
fn translate_at_most(task: &Task<'_>, most: usize) -> Result<Translated, usize> {
    let Read { steps, ending, lost, log, scratch, holds_counter, begins_with_state, definition } =
        read(task, most);
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

/// The general register that a register is part of.
pub(crate) fn gpr(register: Register) -> Option<Gpr> {
    (register.is_gpr()).then(|| Gpr((register.full_register() as u32 - Register::RAX as u32) as u8))
}

impl Block<'_> {
    fn slot(&self, distance: i32) -> i32 {
        self.task.slots + distance
    }

    fn write(&mut self) -> Result<(), usize> {
        self.mark(Some(self.task.pc), Held::Nothing);
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
    fn mark(&mut self, pc: Option<u64>, held: Held) {
        self.out.marks.push(Mark { offset: self.code.here(), pc, held });
    }

    /// Hands over to the engine, with the program's registers as they are.
    fn leave_for(&mut self, reason: u64, pc: u64) {
        let (reason_slot, pc_slot, gate) = (self.slot(at!(reason)), self.slot(at!(pc)), self.slot(at!(gate)));
        self.code.store_slot_value(pc_slot, pc);
        self.code.store_slot_value(reason_slot, reason);
        self.code.jump_to_slot(gate);
    }

    /// An allocator may be called here, or its call come back. The engine is told where the block goes on, so that it need not
    /// look for it; what the program may have changed is looked for.
    fn hand_over_and_back(&mut self) {
        let (counter, back) = (self.slot(at!(counter)), self.slot(at!(own.sieve.back)));
        if self.task.is_changeable {
            self.code.store_slot_value(back, 0);
            self.leave_for(reason::ALLOCATION, self.task.pc);
            return;
        }
        self.code.store_slot(counter, RCX);
        self.mark(Some(self.task.pc), Held::Counter);
        let body = self.code.lea_hole(RCX);
        self.code.store_slot(back, RCX);
        self.code.load_slot(RCX, counter);
        self.mark(Some(self.task.pc), Held::Nothing);
        self.leave_for(reason::ALLOCATION, self.task.pc);
        self.code.land(body);
    }

    /// Sees to room in the log, borrows the registers and logs that the block runs.
    fn begin(&mut self) {
        let (log_slot, counter) = (self.slot(at!(log)), self.slot(at!(counter)));
        self.code.store_slot(counter, RCX);
        self.mark(Some(self.task.pc), Held::Counter);
        // The third byte of the pointer counts what goes beyond a chunk's room, which begins at a multiple of 2^24.
        self.code.load_slot_byte_to_rcx(log_slot + 2);
        let has_room = self.code.jump_short(JRCXZ);
        self.code.load_slot(RCX, counter);
        self.mark(Some(self.task.pc), Held::Nothing);
        self.leave_for(reason::FULL, self.task.pc);
        self.code.land_short(has_room);
        self.mark(Some(self.task.pc), Held::Counter);
        self.code.load_slot(RCX, counter);
        self.mark(Some(self.task.pc), Held::Nothing);
        self.code.store_slot(self.slot(at!(first)), self.log);
        self.code.store_slot(self.slot(at!(second)), self.scratch);
        self.mark(Some(self.task.pc), Held::Borrowed);
        self.code.load_slot(self.log, log_slot);
        self.code.store_value(self.log, 0, 0);
        self.out.definition_holes.push(self.code.here() - 4);
    }

    /// Where the next word of the log goes, from where the block's record begins.
    fn next_word(&mut self) -> i32 {
        self.words += 1;
        8 * (self.words as i32 - 1)
    }

    /// The block's record is whole.
    fn commit(&mut self) {
        if self.task.whole.is_some() {
            return;
        }
        self.code.lea_plus(self.log, self.log, 8 * self.words as i32);
        self.code.store_slot(self.slot(at!(log)), self.log);
    }

    /// The program's registers are its own again.
    fn restore(&mut self) {
        self.code.load_slot(self.log, self.slot(at!(first)));
        self.code.load_slot(self.scratch, self.slot(at!(second)));
        if self.holds_counter {
            self.code.load_slot(RCX, self.slot(at!(counter)));
        }
    }

    fn give_back(&mut self, pc: Option<u64>) {
        self.commit();
        self.restore();
        self.mark(pc, Held::Nothing);
    }

    /// An instruction that passes control to the next. False when the free registers do not do for it.
    fn step(&mut self, number: u8, step: &Step) -> bool {
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

    /// The instruction as it stands in the program; one that names its memory by its own place gets it in a register.
    fn copy(&mut self, instruction: &Instruction) -> bool {
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

/// By number.
const FULL_REGISTERS: [Register; 16] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RSP,
    Register::RBP,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

#[cfg(test)]
mod tests {
    use super::*;

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
        });
        assert_eq!(translated.definition.lengths, [6]);
        assert_eq!(translated.links.iter().map(|link| link.target).collect::<Vec<_>>(), [0x1006]);
        assert_eq!(translated.unlogged, []);
    }
}
