//! The program's code as it goes into the cache, and what such code leads through.

use super::{Host, HostContext, HostRegisters};
use crate::engine::Engine;
use crate::level::Level;
use crate::sequences::Zones;
use crate::sieve::Sieves;
use crate::slots::Slots;
use lineup_recording::native::Definition;
use lineup_recording::native::superblock::Superblock;
use std::ops::Range;

/// The part of a machine that makes code for the cache.
///
/// For all code in it: the program cannot tell. At every instruction of its own, registers, flags, and what lies on
/// both sides of its stack pointer are as they would be natively, but for what a [`Mark`] there tells; calls keep the
/// program's own return addresses. What is added logs, and touches memory of the engine's alone.
pub(crate) trait Translation {
    /// Which of the program's registers lie elsewhere at a place of such code.
    type Held: Copy + Eq + std::fmt::Debug;

    /// Bytes of a thread's table of where indirect jumps lead.
    const TABLE_BYTES: usize;
    /// Why the memory of [`Translation::target_memory`] may be missing.
    const NO_TARGET_MEMORY: &str;

    /// What this processor lacks for recording whole programs, in a sentence; `None` when it can.
    fn lacks_for_whole_programs() -> Option<&'static str>;

    /// Translates the block at the task's address: as many instructions as can be, with what logs them. The record that
    /// it writes is as [`lineup_recording::native`] says. Where nothing can be translated, it hands over at once as
    /// lost.
    fn translate(task: &Task<'_>) -> Translated;

    /// Translates the superblock at the task's address, when all of a run is logged. `None` when it cannot turn as the
    /// route says. What is logged at a place may depend on what stands before it in the superblock alone: a longer one
    /// must find the words of the record where the shorter one has put them.
    fn translate_superblock(
        task: &Task<'_>,
        whole: &Whole,
        source: Source<'_>,
        route: &Route,
    ) -> Option<Translated>;

    /// The registers as the program has them at a mark of a block, for a thread with these slots that stands in its
    /// code with these registers: also where the program goes on.
    fn at_mark(mark: &Mark, block: &Translated, slots: &Slots, registers: &HostContext) -> HostContext;

    /// Where the log stands of a thread that is at a mark, if a register holds that; `None` where it stands in its
    /// slot.
    fn open_log(mark: &Mark, registers: &HostContext) -> Option<OpenLog>;

    /// Has a thread find the log elsewhere that has it in a register.
    fn set_log(registers: &mut HostContext, log: u64);

    /// From now on indirect jumps to `pc` in a thread with this table lead to code in the cache. Only while the engine
    /// runs for the thread.
    ///
    /// # Safety
    /// The thread's own table, of [`Translation::TABLE_BYTES`].
    unsafe fn lead_in_table(table: u64, pc: u64, to: u64);

    /// Memory for the table of [`crate::targets`], where superblocks reach it. `None` where there is none.
    fn target_memory(bytes: usize) -> Option<*mut u8>;

    /// What that table leads to: goes on at `inner` when the address that an indirect jump leads to is `target`, and at
    /// `next` with another; it is to lie at `at`. With marks for its places, which do not depend on the last three.
    fn target(slots: i32, target: u64, at: u64, inner: u64, next: u64) -> (Vec<u8>, Vec<Mark>);

    /// What the last of these leads to: hands over to the engine, which looks for the target.
    fn no_target(slots: i32) -> (Vec<u8>, Vec<Mark>);

    /// The code that a block of a whole program goes through where what it uses is not the most recently used line of
    /// its set: the modelled cache uses the lines, and what was not there is logged. It goes on where the slot
    /// `own.sieve.back` says.
    fn uses_lines(of: LineUser) -> Vec<u8>;

    /// Works out what the instruction at the thread's place is about to access that keeps the processor's state in
    /// memory, or loads it, into the slots `state`. Blocks that begin with one hand over for it.
    fn see_state(engine: &Engine, slots: &mut Slots, registers: &HostRegisters);
}

/// The program's code from an address on, as far as it may be read and does not change; `None` when there is none.
pub(crate) type Source<'a> = &'a mut dyn FnMut(u64) -> Option<Vec<u8>>;

/// A log that a register holds.
pub(crate) struct OpenLog {
    /// Where it stands.
    pub(crate) log: u64,
    /// Where a superblock is writing its record: its instructions that were executed.
    pub(crate) instructions: Option<u8>,
}

/// A system call by how it returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ways<T> {
    /// It returns once.
    pub(crate) alone: T,
    /// It returns in another thread, or in a process that borrows this one's memory, too: that goes on natively.
    pub(crate) shared: T,
    /// It returns in a process with a copy of this one's memory, too: that goes on natively, and nothing of the engine
    /// is in use there.
    pub(crate) forked: T,
    /// It returns in a thread with slots of its own, too: that is recorded when whole programs are, and else as with
    /// `shared`.
    pub(crate) begun: T,
}

impl<T> Ways<T> {
    /// The same with other values.
    pub(crate) fn map<U>(self, change: impl Fn(T) -> U) -> Ways<U> {
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
pub(crate) struct Link {
    /// Where its distance stands in the code.
    pub(crate) hole: usize,
    /// Where it leads in the program.
    pub(crate) target: u64,
    /// When it leaves a superblock to the side.
    pub(crate) turn: Option<Turn>,
}

/// How a superblock is left to the side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Turn {
    /// Where the distance of the jump stands that does so.
    pub(crate) jump: usize,
    /// The part that ends with it.
    pub(crate) part: u8,
}

/// Where a superblock goes another way than others would that begin there. Its code begins behind the last turn: it is
/// reached from the superblock with all turns but that, whose record it goes on with.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Route {
    /// Parts behind which it turns.
    pub(crate) turns: Vec<u8>,
    /// The number of the superblock that it is reached from.
    pub(crate) before: u32,
}

/// Where the program is, from a place in a block's code on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    /// The place.
    pub(crate) offset: usize,
    /// The instruction that comes next; `None` when its address is in the thread's slot for that.
    pub(crate) pc: Option<u64>,
    /// Which registers are not the program's.
    pub(crate) held: <Host as Translation>::Held,
}

/// An instruction of which not everything is logged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unlogged {
    /// Where it is.
    pub(crate) pc: u64,
    /// What it is called.
    pub(crate) mnemonic: String,
    /// It is executed natively, and what follows it.
    pub(crate) is_lost: bool,
}

/// A block for the cache.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Translated {
    /// Its code: may lie anywhere, at a multiple of four.
    pub(crate) code: Vec<u8>,
    /// Where others lead to it, but for those that it is to begin natively for.
    pub(crate) inner: usize,
    /// Where it goes on when the engine has noted that an entry was reached.
    pub(crate) body: usize,
    /// Where it goes on when the engine has seen that no restartable sequence begins.
    pub(crate) plain: usize,
    /// Where the number of its definition stands in the code, four bytes each.
    pub(crate) definition_holes: Vec<usize>,
    /// When the whole program is recorded: where the distance of its count stands in the code, which is that of the
    /// first count, four bytes each.
    pub(crate) count_holes: Vec<usize>,
    /// When it stands alone: where the address of its definition stands in the code, eight bytes.
    pub(crate) own_hole: Option<usize>,
    /// Jumps to other blocks; each leads to the engine at first.
    pub(crate) links: Vec<Link>,
    /// Places where the number of a link stands in the code, in two halves, in the order of `links`.
    pub(crate) link_holes: Vec<(usize, usize)>,
    /// Where the system call at its end stands in the code.
    pub(crate) system_call: Option<Ways<usize>>,
    /// Where the program is, in order of place.
    pub(crate) marks: Vec<Mark>,
    /// The registers that it borrows, by number: what `first` and `second` of the slots hold.
    pub(crate) borrowed: (u8, u8),
    /// What it is made of.
    pub(crate) definition: Definition,
    /// What it is made of, when all of a run is logged.
    pub(crate) superblock: Option<Superblock>,
    /// From the beginning of its code in the program to the end.
    pub(crate) range: Range<u64>,
    /// What follows its last instruction.
    pub(crate) next: u64,
    /// What of it is not logged.
    pub(crate) unlogged: Vec<Unlogged>,
}

/// What a translation needs to know.
pub(crate) struct Task<'a> {
    /// The program's code from `pc` on, as far as it may be read.
    pub(crate) bytes: &'a [u8],
    /// Where the block begins.
    pub(crate) pc: u64,
    /// Distance of the thread's slots from its base.
    pub(crate) slots: i32,
    /// The block hands over to the engine first: a watched function begins there, or the program may change its code.
    pub(crate) is_entry: bool,
    /// The program may change its code.
    pub(crate) is_changeable: bool,
    /// Where the block is to lie in the cache, when all of a run is logged.
    pub(crate) at: u64,
    /// When the whole program is recorded: then blocks count themselves, and no call ends.
    pub(crate) whole: Option<&'a Whole>,
    /// Stores that may begin a restartable sequence: a block ends before one, and hands over to the engine when one is
    /// its first instruction.
    pub(crate) zones: &'a Zones,
}

/// What the blocks of a program that is recorded as a whole need to know.
#[derive(Clone, Copy)]
pub(crate) struct Whole {
    /// Where its threads begin.
    pub(crate) begins_threads: u64,
    /// What is passed over.
    pub(crate) sieves: Sieves,
    /// When all of the run is logged: the table of where jumps lead whose targets are not known before, see
    /// [`crate::targets`]; else 0.
    pub(crate) targets: u64,
}

/// For whom [`Translation::uses_lines`] is made.
///
/// What is noted comes in a register, which it may change: of it, the sixth byte is the distance from the address to
/// the first byte that is used, and the upper two from there to the last.
#[derive(Clone, Copy)]
pub(crate) struct LineUser {
    pub(crate) slots: i32,
    pub(crate) level: Level,
    /// Where its table is, from what blocks take for the sieve.
    pub(crate) table: i32,
    /// The slot that says where its rows are.
    pub(crate) rows: i32,
    /// Words that are logged: with two, the address is the second.
    pub(crate) words: i32,
    /// Windows of the run are wanted.
    pub(crate) has_windows: bool,
    /// In a window: everything is noted.
    pub(crate) notes_all: bool,
}
