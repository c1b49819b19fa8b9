//! Translation of the program's code for the cache, and the code that such code leads through.

use super::{Host, HostContext, HostRegisters};
use crate::cache::sequence::Zones;
use crate::shared::Shared;
use crate::threads::slots::Slots;
use crate::whole_program::level::{Level, Levels};
use lineup_recording::native::Definition;
use lineup_recording::native::superblock::Superblock;
use std::ops::Range;

/// The part of a machine that makes code for the cache.
///
/// For all code in it: the program cannot notice. At each of its own instructions, its registers, flags, and the memory
/// around its stack pointer are as they would be natively. The exception is registers that a [`Mark`] there names.
/// Calls keep the program's own return addresses. Added instructions log, and touch memory of the engine alone.
pub(crate) trait Translation {
    /// The program's registers that lie elsewhere at a place of such code.
    type DisplacedRegisters: Copy + Eq + std::fmt::Debug;

    /// Bytes of a thread's table of targets of indirect jumps.
    const TABLE_BYTES: usize;
    /// The reason why the memory of [`Translation::target_memory`] may be missing.
    const NO_TARGET_MEMORY: &str;

    /// The processor's missing feature for recording whole programs, in a sentence; `None` when it can.
    fn lacks_for_whole_programs() -> Option<&'static str>;

    /// Translates the block at the task's address: as many instructions as possible, with their logging.
    /// [`lineup_recording::native`] describes its record. Where nothing can be translated, it hands over at once as
    /// lost.
    fn translate(task: &Task<'_>) -> Translated;

    /// Translates the superblock at the task's address, when all of a run is logged. `None` when it cannot follow the
    /// route. The logged words of a place may depend only on the code before it in the superblock: a longer one must
    /// find the words of the record where the shorter one has put them.
    fn translate_superblock(
        task: &Task<'_>,
        whole: &Whole,
        source: Source<'_>,
        route: &Route,
    ) -> Option<Translated>;

    /// The program's registers at a mark of a block, for a thread with these slots that is in its code with these
    /// registers; also the address where the program continues.
    fn at_mark(mark: &Mark, block: &Translated, slots: &Slots, registers: &HostContext) -> HostContext;

    /// The log's end of a thread that is at a mark, if a register holds it; `None` if its slot does.
    fn open_log(mark: &Mark, registers: &HostContext) -> Option<OpenLog>;

    /// Moves the log of a thread that holds its end in a register.
    fn set_log(registers: &mut HostContext, log: u64);

    /// From now on indirect jumps to `pc` in a thread with this table lead to code in the cache. Only while the engine
    /// runs for the thread.
    ///
    /// # Safety
    /// The thread's own table, of [`Translation::TABLE_BYTES`].
    unsafe fn lead_in_table(table: u64, pc: u64, to: u64);

    /// Memory for the table of [`crate::cache::targets`], where superblocks reach it. `None` without such memory.
    fn target_memory(bytes: usize) -> Option<*mut u8>;

    /// Code for an entry of that table: continues at `inner` when an indirect jump's target is `target`, and else at
    /// `next`; it is to lie at `at`. With marks for its places, which do not depend on the last three.
    fn target(slots: i32, target: u64, at: u64, inner: u64, next: u64) -> (Vec<u8>, Vec<Mark>);

    /// The last entry of each such list: hands over to the engine, which looks for the target.
    fn no_target(slots: i32) -> (Vec<u8>, Vec<Mark>);

    /// Code that a block of a whole program goes through when it uses a line that is not the most recently used one of
    /// its set: the modelled cache uses the lines, and misses are logged. It continues at the address in the slot
    /// `own.sieve.back`.
    fn uses_lines(of: LineUser) -> Vec<u8>;

    /// Works out the coming accesses of the instruction at the thread's place, which saves or loads the processor's
    /// state, into the slots `state`. `distance` is that of the slots from the thread's base. Blocks that begin with
    /// such an instruction hand over for it.
    fn see_state(shared: &Shared, distance: i32, slots: &mut Slots, registers: &HostRegisters);
}

/// The program's code from an address on, as far as it is readable and constant; `None` for other addresses.
pub(crate) type Source<'a> = &'a mut dyn FnMut(u64) -> Option<Vec<u8>>;

/// A log that a register holds.
pub(crate) struct OpenLog {
    /// The log's end.
    pub(crate) log: u64,
    /// For a superblock that is writing its record: the number of its executed instructions.
    pub(crate) instructions: Option<u8>,
}

/// A system call, by its way of returning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ways<T> {
    /// It returns once.
    pub(crate) alone: T,
    /// It returns in another thread, or in a process that borrows this one's memory, too: that continues natively.
    pub(crate) shared: T,
    /// It returns in a process with a copy of this one's memory, too: that continues natively, and uses no part of the
    /// engine.
    pub(crate) forked: T,
    /// It returns in a thread with slots of its own, too: the return is recorded for whole programs, and otherwise
    /// handled as with `shared`.
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
    /// Place of its distance in the code.
    pub(crate) hole: usize,
    /// Its target in the program.
    pub(crate) target: u64,
    /// Set when it leaves a superblock to the side.
    pub(crate) turn: Option<Turn>,
}

/// A side exit of a superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Turn {
    /// Place of the jump's distance.
    pub(crate) jump: usize,
    /// The part that ends with it.
    pub(crate) part: u8,
}

/// A superblock's turns away from the way of others that begin at the same place. Its code begins after the last turn:
/// it is reached from the superblock with all turns but that, and continues its record.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Route {
    /// Parts behind which it turns.
    pub(crate) turns: Vec<u8>,
    /// The number of the superblock that it is reached from.
    pub(crate) before: u32,
}

/// The program's state, from a place in a block's code on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    /// The place.
    pub(crate) offset: usize,
    /// The next instruction; `None` when its address is in the thread's slot for that.
    pub(crate) pc: Option<u64>,
    /// The registers that do not hold the program's values.
    pub(crate) held: <Host as Translation>::DisplacedRegisters,
}

/// An instruction that is not logged in full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unlogged {
    /// Its address.
    pub(crate) pc: u64,
    /// Its mnemonic.
    pub(crate) mnemonic: String,
    /// Whether it is executed natively, with all that follows.
    pub(crate) is_lost: bool,
}

/// A block for the cache.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Translated {
    /// Its code: may lie anywhere, at a multiple of four.
    pub(crate) code: Vec<u8>,
    /// Entry for other blocks' jumps. The native entry is the start of the code.
    pub(crate) inner: usize,
    /// Place where it continues when the engine has noted that an entry was reached.
    pub(crate) body: usize,
    /// Place where it continues when the engine has found that no restartable sequence begins.
    pub(crate) plain: usize,
    /// Places of the number of its definition in the code, four bytes each.
    pub(crate) definition_holes: Vec<usize>,
    /// When the whole program is recorded: places of the distance of its count in the code, four bytes each. The code
    /// has the distance of the first count.
    pub(crate) count_holes: Vec<usize>,
    /// When it stands alone: place of the address of its definition in the code, eight bytes.
    pub(crate) own_hole: Option<usize>,
    /// Jumps to other blocks; each leads to the engine at first.
    pub(crate) links: Vec<Link>,
    /// Places of the number of a link in the code, in two halves, in the order of `links`.
    pub(crate) link_holes: Vec<(usize, usize)>,
    /// Places of the system call at its end in the code.
    pub(crate) system_call: Option<Ways<usize>>,
    /// The program's state, in order of place.
    pub(crate) marks: Vec<Mark>,
    /// The registers that it borrows, by number: `first` and `second` of the slots hold their values.
    pub(crate) borrowed: (u8, u8),
    /// Its definition.
    pub(crate) definition: Definition,
    /// Its definition, when all of a run is logged.
    pub(crate) superblock: Option<Superblock>,
    /// From the beginning of its code in the program to the end.
    pub(crate) range: Range<u64>,
    /// The address after its last instruction.
    pub(crate) next: u64,
    /// Its instructions that are not logged in full.
    pub(crate) unlogged: Vec<Unlogged>,
}

/// The input of a translation.
pub(crate) struct Task<'a> {
    /// The program's code from `pc` on, as far as it may be read.
    pub(crate) bytes: &'a [u8],
    /// Start of the block in the program.
    pub(crate) pc: u64,
    /// Distance of the thread's slots from its base.
    pub(crate) slots: i32,
    /// The block hands over to the engine first: a watched function begins there, or the program may change its code.
    pub(crate) is_entry: bool,
    /// The program may change its code.
    pub(crate) is_changeable: bool,
    /// Address of the block in the cache, when all of a run is logged.
    pub(crate) at: u64,
    /// When the whole program is recorded: then blocks count themselves, and no call ends.
    pub(crate) whole: Option<&'a Whole>,
    /// Stores that may begin a restartable sequence: a block ends before one, and hands over to the engine when one is
    /// its first instruction.
    pub(crate) zones: &'a Zones,
}

/// Data for the blocks of a program that is recorded as a whole.
#[derive(Clone, Copy)]
pub(crate) struct Whole {
    /// Start of its threads.
    pub(crate) begins_threads: u64,
    /// The modelled caches, whose repeated uses blocks pass over.
    pub(crate) levels: Levels,
    /// When all of the run is logged: the table of targets of indirect jumps, see [`crate::cache::targets`]; else 0.
    pub(crate) targets: u64,
}

/// The user of [`Translation::uses_lines`].
///
/// The note comes in a register, which the code may change. Its sixth byte is the distance from the address to the
/// first used byte. Its upper two bytes are the distance from there to the last.
#[derive(Clone, Copy)]
pub(crate) struct LineUser {
    pub(crate) slots: i32,
    pub(crate) level: Level,
    /// Distance of its table from the thread's sieve.
    pub(crate) table: i32,
    /// The slot with the address of its rows.
    pub(crate) rows: i32,
    /// Words that are logged: with two, the address is the second.
    pub(crate) words: i32,
    /// Windows of the run are wanted.
    pub(crate) has_windows: bool,
    /// In a window: everything is noted.
    pub(crate) notes_all: bool,
}
