//! The memory that the native engine, inside the program, shares with the command that reads its log.
//!
//! One file in memory, mapped by both. Words are 8 bytes, little endian. The engine writes the execution as words into
//! chunks; the command reads full chunks, turns them into calls, and gives them back. A block of code is described
//! once, as a [`Definition`], and is named by its place.

mod definition;
pub mod derived;
mod elements;
pub mod heap;
pub mod mappings;
pub mod superblock;
pub mod timed;

pub use definition::{DefinedAccess, Definition, Form, each_piece};
pub use elements::Gather;
use std::ops::Range;

/// First word of the file: another one for each layout that this memory ever had, so that an engine and a command from
/// different sources do not misunderstand each other.
pub const MAGIC: u64 = {
    let own = hashed(include_bytes!("mod.rs"), 0);
    let own = hashed(include_bytes!("timed.rs"), own);
    let own = hashed(include_bytes!("elements.rs"), own);
    let own = hashed(include_bytes!("superblock.rs"), own);
    let own = hashed(include_bytes!("derived.rs"), own);
    hashed(include_bytes!("heap.rs"), hashed(include_bytes!("definition.rs"), own))
};

/// FNV-1a, from a number.
const fn hashed(bytes: &[u8], from: u64) -> u64 {
    let mut hash = from ^ 0xcbf2_9ce4_8422_2325;
    let mut place = 0;
    while place < bytes.len() {
        hash = (hash ^ bytes[place] as u64).wrapping_mul(0x0100_0000_01b3);
        place += 1;
    }
    hash
}

/// Words of the first page, by their number.
pub mod word {
    /// [`super::MAGIC`], written by the command.
    pub const MAGIC: usize = 0;
    /// The order of events, over all threads.
    pub const CLOCK: usize = 1;
    /// The next thread's number.
    pub const NEXT_THREAD: usize = 2;
    /// Chunks handed over so far: gives each its place in their order.
    pub const SUBMITTED: usize = 3;
    /// Counts on while the command reads.
    pub const HEARTBEAT: usize = 4;
    /// See [`super::state`].
    pub const STATE: usize = 5;
    /// Bytes of definitions in use.
    pub const DEFINITIONS: usize = 6;
    /// Bytes of notes in use.
    pub const NOTES: usize = 7;
    /// Entries that the command asks for.
    pub const ENTRIES: usize = 8;
    /// The process that the engine is in.
    pub const PROCESS: usize = 9;
    /// The multiplier of a call's number, counted from one after the warm-up, for its position.
    pub const MULTIPLIER: usize = 10;
    /// Not 0 when the engine restores a region's entries once the wanted number of its calls was made: later calls are
    /// not counted.
    pub const LEAVES_AFTER_LAST: usize = 11;
    /// Processes that the program forked.
    pub const FORKED: usize = 12;
    /// Counts mappings of executable files.
    pub const MAPPED: usize = 13;
    /// Not 0 when the command no longer reads the log.
    pub const IS_GONE: usize = 14;
    /// Not 0 when entries may lie in files that are mapped later.
    pub const LOOKS_FOR_MORE: usize = 15;
    /// Chunks that were read and given back.
    pub const GIVEN_BACK: usize = 17;
    /// Calls that were to be recorded and were not, since the log was full.
    pub const PASSED_OVER: usize = 16;
    /// The mode: 0 when calls are recorded, or [`super::timed::MODE`], or [`super::whole::MODE`].
    pub const MODE: usize = 18;
    /// Cycles of the processor's counter in [`NANOSECONDS`].
    pub const CYCLES: usize = 19;
    /// See [`CYCLES`].
    pub const NANOSECONDS: usize = 20;
    /// The counter when the program began.
    pub const BEGUN_AT: usize = 21;
    /// Cycles that each call takes longer, a thousandth of each.
    pub const CYCLES_ADDED: usize = 22;
    /// Not 0 when the engine attached to a running program: see [`super::write`].
    pub const IS_ATTACHED: usize = 23;
    /// The beginning and the end of the code cache.
    pub const CACHE_START: usize = 24;
    /// See [`CACHE_START`].
    pub const CACHE_END: usize = 25;
    /// Distance of the engine's words of a thread from its base.
    pub const SLOTS: usize = 26;
    /// The offset in these words of the address at which the program continues, and of the word that marks the thread
    /// as busy.
    pub const PC_SLOT: usize = 27;
    /// See [`PC_SLOT`].
    pub const BUSY_SLOT: usize = 28;
    /// Changes of the program's code, see [`super::write`].
    pub const WRITES: usize = 29;
    /// Memory that the engine holds when it is to go, see [`super::RANGES`].
    pub const RANGES: usize = 30;
    /// Processes that have asked for memory of their own, see [`super::child`].
    pub const CHILDREN: usize = 31;
    /// When the whole program is recorded: the bytes of a line of the modelled first-level data cache, as a power of
    /// two.
    pub const DATA_LINE_SHIFT: usize = 32;
    /// Its sets.
    pub const DATA_SETS: usize = 33;
    /// Lines of each; 0 when all is found there.
    pub const DATA_WAYS: usize = 34;
    /// As [`DATA_LINE_SHIFT`], of the instruction cache.
    pub const CODE_LINE_SHIFT: usize = 35;
    /// See [`CODE_LINE_SHIFT`].
    pub const CODE_SETS: usize = 36;
    /// See [`CODE_LINE_SHIFT`].
    pub const CODE_WAYS: usize = 37;
    /// Sieves that threads have taken, see [`super::sieve`].
    pub const SIEVES: usize = 38;
    /// Not 0 when windows of the run are wanted, see [`super::window`].
    pub const WINDOWS: usize = 39;
    /// The number of times that every second window was dropped.
    pub const HALVINGS: usize = 40;
    /// Stretches of the run that have begun, of all threads.
    pub const STRETCHES: usize = 41;
    /// Functions that give out memory and take it back, see [`super::heap`].
    pub const ALLOCATORS: usize = 42;
    /// Files whose functions' callers can be found, see [`super::heap`].
    pub const UNWOUND: usize = 43;
    /// Not 0 when the number of recorded calls a second is limited: see [`super::region::ALLOWED`].
    pub const IS_PACED: usize = 44;
    /// The number of times a call's number is halved before it is multiplied: calls of one position follow each other.
    pub const RUN_SHIFT: usize = 45;
    /// The maximum number of calls recorded of each region in each thread; 0 when there is no such limit.
    pub const CALLS_PER_THREAD: usize = 46;
    /// The interventions before timed calls: a bit for each arm, see [`super::timed::Arm`]; 0 for none.
    pub const ARMS: usize = 47;
    /// The sampling period: one call in this many is sampled on average.
    pub const DRAWN_EVERY: usize = 48;
    /// The seed of the random numbers that sample calls.
    pub const SEED: usize = 49;
    /// The bytes read to push other data out of the caches.
    pub const SWEPT_BYTES: usize = 50;
    /// The pause after a sampled call, as a multiple of the time spent before it; 0 for no pause.
    pub const REST: usize = 51;
    /// Sampled calls that have ended.
    pub const TRIALS: usize = 52;
    /// Not 0 when all of a whole program's run is logged, and nothing counted: see [`super::superblock`].
    pub const LOGS_ALL: usize = 53;
    /// Not 0 when forked processes are counted, too: each asks for memory of its own.
    pub const FOLLOWS_FORKS: usize = 54;
    /// The process's number in the recording.
    pub const NUMBER: usize = 55;
    /// The end of the code in the cache when the engine was about to leave; a little more may have been added since.
    pub const CACHE_USED: usize = 56;
    /// The offset, in the engine's words of a thread, of the word that marks SIGTRAP as blocked by the program but not
    /// by the kernel; 0 while the program's code has no trap.
    pub const TRAP_SLOT: usize = 57;
    /// Restartable sequences that were executed and not recorded.
    pub const SEQUENCES: usize = 58;
    /// Their instructions at most.
    pub const SEQUENCE_INSTRUCTIONS: usize = 59;
    /// The signature with which the program registered memory for restartable sequences before the engine started; 0
    /// for the usual one.
    pub const SIGNATURE: usize = 60;
    /// Chunks of the log that a burst fills; 0 when no bursts are wanted. A burst is a short stretch of a thread's run
    /// in the code cache, from any instruction on. The command stops the thread, writes the address of its next
    /// instruction and the mark of a busy thread into the engine's words of the thread, and lets it continue at
    /// [`BURST_CODE`].
    pub const BURST_CHUNKS: usize = 61;
    /// The longest burst, in nanoseconds of processor time.
    pub const BURST_MOST_NS: usize = 62;
    /// The address of the code that begins a burst, once the engine has made it.
    pub const BURST_CODE: usize = 63;
    /// Bursts that have begun.
    pub const BURSTS: usize = 64;
    /// Bursts that have ended.
    pub const BURSTS_ENDED: usize = 65;
    /// Those that ended since the program continued natively: by a signal handler, or code that cannot be translated.
    pub const BURSTS_LOST: usize = 66;
    /// Those that reached [`BURST_MOST_NS`].
    pub const BURSTS_CUT: usize = 67;
    /// Processor time in bursts, in nanoseconds, without that of the program's system calls.
    pub const BURST_NS: usize = 68;
    /// The longest of them.
    pub const LONGEST_BURST_NS: usize = 69;
    /// Bursts that were not begun, since no chunk of the log was free.
    pub const BURSTS_REFUSED: usize = 70;
    /// Number of the first region: see [`super::region`].
    pub const FIRST_REGION: usize = 72;
    /// Number of the first chunk's state: see [`super::chunk`].
    pub const FIRST_CHUNK: usize = 1024;
    /// Number of the first entry: see [`super::entry`].
    pub const FIRST_ENTRY: usize = 1536;
}

/// The progress of the two sides.
pub mod state {
    /// The engine has started and waits for entries.
    pub const ASKS: u64 = 1;
    /// The command has written the entries.
    pub const ANSWERED: u64 = 2;
    /// The entries are patched, the program runs.
    pub const RUNS: u64 = 3;
    /// The engine gave up: a note gives the reason. The program runs untouched.
    pub const GAVE_UP: u64 = 4;
    /// The engine checks whether it can work.
    pub const STARTS: u64 = 5;
    /// The engine waits for entries in files that were mapped since.
    pub const ASKS_AGAIN: u64 = 6;
    /// An entry cannot be patched, or is not there: the program waits, before its own code has run, to be ended.
    pub const REFUSED: u64 = 7;
}

/// Kinds of notes: the upper half of their first word, whose lower half is their length in bytes.
pub mod note {
    /// For the user to read.
    pub const TEXT: u64 = 0;
    /// The file of a program that a process becomes.
    pub const EXEC: u64 = 1;
    /// The file of the program, of which a second process runs.
    pub const SECOND: u64 = 2;
    /// For the user to read, about an instruction: its address in hexadecimal, its mnemonic, and the remark.
    pub const INSTRUCTION: u64 = 3;
    /// The number of a region of which a function has a trap that leads to the engine.
    pub const TRAP: u64 = 4;
}

/// Words of a region.
pub mod region {
    /// Words of each.
    pub const WORDS: usize = 8;
    /// Calls counted.
    pub const CALLS: usize = 0;
    /// A call is recorded when its position lies below this.
    pub const BOUND: usize = 1;
    /// Calls left out at the start.
    pub const WARMUP: usize = 2;
    /// Calls in signal handlers that interrupted a recorded call.
    pub const IN_HANDLERS: usize = 3;
    /// 1 when its entries were restored, since no more calls are wanted.
    pub const IS_OUT: usize = 4;
    /// Calls in forked processes, and calls after the recording ended.
    pub const UNWATCHED: usize = 5;
    /// Where the number of recorded calls a second is limited: the calls whose recording has begun.
    pub const TAKEN: usize = 6;
    /// The number of calls that may be recorded by now, set by the command.
    pub const ALLOWED: usize = 7;
    /// Regions at most.
    pub const MOST: usize = 64;
}

/// The whole program is recorded, from the engine's start on.
pub mod whole {
    /// The value of [`super::word::MODE`].
    pub const MODE: u64 = 2;
}

/// The data of a whole program's thread in addition to its log. Each block counts its executions there. Tables hold the
/// most recently used lines of their sets: another use of these changes no cache, and is passed over. Each table has a
/// place for every value of the lowest byte of a line's number: minus the number of such a line, or 0.
pub mod sieve {
    /// The beginning of the table for code.
    pub const CODE: usize = 0;
    /// The beginning of the table for data.
    pub const DATA: usize = CODE + 8 * PLACES;
    /// Places of a table.
    pub const PLACES: usize = 256;
    /// The beginning of the counts of blocks.
    pub const COUNTS: usize = DATA + 8 * PLACES;
    /// Blocks at most.
    pub const BLOCKS: usize = 1 << 20;
    /// Bytes of each.
    pub const BYTES: u64 = (COUNTS + 8 * BLOCKS) as u64;
    /// The maximum number of sieves, and so of threads at a time.
    pub const COUNT: usize = super::chunk::COUNT;
}

/// Windows of a whole program's run: some of the stretches that it is cut into. In those, the engine passes nothing
/// over and notes all accesses of a block as if they had missed.
pub mod window {
    /// Things noted or looked up in the first level in one stretch.
    pub const STRETCH: u64 = 80_000;
    /// The maximum number of first-level lines that the beginning of a window lists.
    pub const MOST_LINES: usize = 4096;

    /// True when a stretch is a window, by its number, after every second window was dropped `halvings` times: one of
    /// each two neighbours. The choice follows no period: threads that run at one pace have the even numbers and the
    /// odd ones, and windows of all of them must be kept. The first stretch, which is the program's beginning, is not
    /// always a window.
    pub fn is_chosen(stretch: u64, halvings: u64) -> bool {
        (0..halvings.min(63)).all(|bit| (stretch >> bit & 1 == 1) == keeps_later(stretch >> bit >> 1, bit))
    }

    /// True when the later of the two windows of a pair is kept.
    fn keeps_later(pair: u64, halving: u64) -> bool {
        if halving == 0 {
            // The sequence of Thue and Morse: two threads that take turns have as many windows, next to each other's.
            return pair.count_ones().is_multiple_of(2);
        }
        // The multiplier is 2^64 divided by the golden ratio, an odd number without a pattern in its bits.
        let mixed = (pair ^ halving << 32).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1
    }
}

/// Words of a chunk of the log.
pub mod chunk {
    /// Words of each.
    pub const WORDS: usize = 4;
    /// 0 when it is free, else one of the below.
    pub const STATE: usize = 0;
    /// The thread that fills it.
    pub const THREAD: usize = 1;
    /// Its place in the order of chunks.
    pub const ORDER: usize = 2;
    /// Bytes in it that are whole records.
    pub const LENGTH: usize = 3;
    /// A thread fills it.
    pub const IS_OWNED: u64 = 1;
    /// It waits to be read.
    pub const IS_FULL: u64 = 2;
    /// Chunks.
    pub const COUNT: usize = 128;
    /// Bytes after which it is full; the last record may go beyond.
    pub const FULL_BYTES: u64 = 1 << 16;
    /// Bytes of each in the file.
    pub const BYTES: u64 = 1 << 17;
}

/// Words of an entry that is to be watched.
pub mod entry {
    /// Words of each.
    pub const WORDS: usize = 6;
    /// Its address; 0 when its file was unmapped. For a function that the loader chooses: at first the address of the
    /// resolver, then, from the engine, that of the chosen function.
    pub const ADDRESS: usize = 0;
    /// The region's number.
    pub const REGION: usize = 1;
    /// Bytes of the function from there on.
    pub const SIZE: usize = 2;
    /// Bytes from there up to the next function. 0 for a chosen function until the command looks for it.
    pub const ROOM: usize = 4;
    /// The address of the resolver, for a function that the loader chooses; else 0.
    pub const CHOOSER: usize = 5;
    /// 0 until the engine answers, then one of [`super::Refusal`] or [`PATCHED`].
    pub const ANSWER: usize = 3;
    /// The entry is watched.
    pub const PATCHED: u64 = 1;
    /// Nothing was chosen yet: its library is just being loaded.
    pub const WAITS: u64 = u64::MAX;
    /// Entries at most.
    pub const MOST: usize = 1408;
}

/// Words of a change of the program's code, when the engine attached to a running program. The command makes the
/// changes from before the engine's start, and takes all changes back, while all threads are stopped.
pub mod write {
    /// Words of each.
    pub const WORDS: usize = 4;
    /// Its address.
    pub const ADDRESS: usize = 0;
    /// Bytes.
    pub const LENGTH: usize = 1;
    /// The old bytes.
    pub const OLD: usize = 2;
    /// The new bytes.
    pub const NEW: usize = 3;
    /// Changes at most.
    pub const MOST: usize = 16_384;
}

/// The offset in the file of changes of the program's code.
pub const WRITES: u64 = 1 << 18;
/// The list of the engine's own memory: pairs of its beginning and its bytes.
pub const RANGES: Range<u64> = WRITES + 8 * (write::WORDS * write::MOST) as u64..(1 << 20) - (1 << 17);

/// Words of a process that asks for memory of its own: one that the program, or one of its descendants, started or
/// forked.
pub mod child {
    /// Words of each.
    pub const WORDS: usize = 2;
    /// The process, as the system numbers it. For a forked process, the upper half holds its parent's number in the
    /// recording, plus one.
    pub const PROCESS: usize = 0;
    /// The lowest bit of that half.
    pub const FORKED_BY_AT: u32 = 32;
    /// 0 until the command answers: then the number of its open file, plus one.
    pub const FILE: usize = 1;
    /// Processes at most.
    pub const MOST: usize = 8192;
}

/// The requests of processes: in the first one's memory.
pub const CHILDREN: Range<u64> = RANGES.end..RANGES.end + 8 * (child::WORDS * child::MOST) as u64;

/// Prefix of a program that the engine ignores, while it takes all others that are started: the program is the command
/// itself, which becomes the first of them.
pub const ANY_PROGRAM_BUT: &str = "*";

/// The range of notes in the file.
pub const NOTES: Range<u64> = 1 << 17..1 << 18;
/// The range of definitions in the file.
pub const DEFINITIONS: Range<u64> = 1 << 20..257 << 20;
/// The offset of chunks in the file.
pub const CHUNKS: u64 = DEFINITIONS.end;
/// The offset of the counts of threads' calls, see [`thread_calls`].
pub const THREAD_CALLS: u64 = CHUNKS + chunk::COUNT as u64 * chunk::BYTES;
/// Bytes of the file.
pub const FILE_BYTES: u64 = THREAD_CALLS + 8 * (thread_calls::MOST * region::MOST) as u64;
/// The offset of sieves in the file, when the whole program is recorded.
pub const SIEVES: u64 = FILE_BYTES;
/// The offset of the tables for observing allocations, see [`heap`], when the whole program is recorded.
pub const HEAP: u64 = SIEVES + sieve::COUNT as u64 * sieve::BYTES;
/// Bytes of the file, when the whole program is recorded.
pub const WHOLE_FILE_BYTES: u64 = HEAP + heap::BYTES;

/// With a limit of recorded calls per thread: the calls that each thread made, a word for each region.
pub mod thread_calls {
    /// Threads at most; others are not counted.
    pub const MOST: usize = 4096;
}

/// The environment variable that names the file to the engine.
pub const VARIABLE: &str = "LINEUP_ENGINE";

/// Records of a whole program: the lower half of their first word is a block's number, and the byte above it gives the
/// kind of note about the block. The engine models the first level, and so notes only its misses.
pub mod noted {
    /// Lines of its code missed: a mask of them in the next 16 bits, where the lowest bit stands for the last line. No
    /// word follows.
    pub const FETCHED: u8 = 0;
    /// It stands alone: it was executed, and the words of all its accesses follow.
    pub const ALONE: u8 = 255;
    /// An access of a block that stands alone missed: the next 16 bits give its number in the definition. Its address
    /// and its bytes follow.
    pub const ALONE_MISSED: u8 = 254;
    // Other values: lines of the piece of this number, counted from one, missed: the next bits are a mask as for code.
    // The address of its first access follows.

    /// The lowest of those 16 bits.
    pub const BITS_AT: u32 = 40;
}

/// Records that are no blocks: the upper half of their first word, whose lower half is 0.
pub mod record {
    /// A call of a region: region, number, position in the order of events, stack pointer, return address, thread base,
    /// and the six registers that carry arguments.
    pub const ENTER: u32 = 1;
    /// The thread has left the cache after its outermost call.
    pub const LEAVE: u32 = 2;
    /// A system call: number, the first four arguments, position in the order of events.
    pub const SYSTEM_CALL: u32 = 3;
    /// The thread continues natively inside a call: the rest of it is not recorded.
    pub const LOST: u32 = 4;
    /// As [`ENTER`], inside a call that is recorded.
    pub const INNER: u32 = 5;
    /// The time: the processor's counter of cycles.
    pub const TIME: u32 = 6;
    /// A window begins: the stretch's number, and the numbers of lines of the first level's data and code that follow.
    /// The lines stand set after set, each with the most recently used first, 0 for an empty place.
    pub const WINDOW: u32 = 7;
    /// The window has ended.
    pub const WINDOW_END: u32 = 8;
    /// Memory was given out: its address, its bytes, and the name of the chain of calls that asked for it.
    pub const ALLOCATED: u32 = 9;
    /// Memory was given back: its address.
    pub const FREED: u32 = 10;
    /// A thread of a run that is logged begins: its base.
    pub const BEGIN: u32 = 11;
    /// A superblock of such a run was interrupted by a signal. The words are: its number, and above that the number of
    /// its executed instructions; the number of following words of its record; the stack pointer; and these words.
    /// Number 0 with no words stands for an interruption between two superblocks.
    pub const INTERRUPTED: u32 = 12;
    /// The handler has returned: the number of the next record's instructions that do not count, and the stack pointer.
    pub const RESUMED: u32 = 13;
    /// The stack pointer at the next superblock.
    pub const STACK: u32 = 14;
    /// A chain of calls that asks for memory: its name, the number of return addresses that follow, and these, the
    /// innermost first.
    pub const CHAIN: u32 = 15;
    /// A mapping of the process when a thread makes its first recorded call: its beginning, its end, and whether others
    /// share it.
    pub const MAPPING: u32 = 16;
    /// A burst begins: its stack pointer, and the thread's base. It ends with [`LEAVE`] or [`LOST`].
    pub const BURST: u32 = 17;
    /// Words of [`BURST`].
    pub const BURST_WORDS: usize = 3;
    /// Words of [`MAPPING`].
    pub const MAPPING_WORDS: usize = 4;
    /// Words of [`STACK`].
    pub const STACK_WORDS: usize = 2;
    /// Words of [`BEGIN`].
    pub const BEGIN_WORDS: usize = 2;
    /// Words of [`INTERRUPTED`] before those of the record.
    pub const INTERRUPTED_WORDS: usize = 4;
    /// Words of [`RESUMED`].
    pub const RESUMED_WORDS: usize = 3;
    /// Words of [`ALLOCATED`].
    pub const ALLOCATED_WORDS: usize = 4;
    /// Words of [`CHAIN`] before its return addresses.
    pub const CHAIN_WORDS: usize = 3;
    /// Words of [`FREED`].
    pub const FREED_WORDS: usize = 2;
    /// Words of [`WINDOW`] before its lines.
    pub const WINDOW_WORDS: usize = 4;
    /// Words of [`WINDOW_END`].
    pub const WINDOW_END_WORDS: usize = 1;
    /// Words of [`ENTER`], the first included.
    pub const ENTER_WORDS: usize = 13;
    /// Words of [`LEAVE`] and [`LOST`].
    pub const LEAVE_WORDS: usize = 1;
    /// Words of [`SYSTEM_CALL`].
    pub const SYSTEM_CALL_WORDS: usize = 7;
    /// Words of [`TIME`].
    pub const TIME_WORDS: usize = 2;
}

/// The reason an entry cannot be watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The function is shorter than a jump, and another follows at once.
    TooShort,
    /// Its first bytes cannot be moved.
    CannotMove,
    /// Something jumps to its first bytes.
    JumpedTo,
    /// No memory near it.
    NoRoom,
    /// A return lies too close to a jump target, when its calls are timed.
    Ends,
    /// It may end anywhere, when its calls are timed.
    Unclear,
    /// The loader chose code that lies in no file.
    Elsewhere,
    /// The loader chose the code of another function that is watched.
    Shared,
    /// There is room only for a trap, and the engine calls functions of its file.
    EngineUses,
    /// There is room only for a trap, and it would come too late.
    TooLate,
    /// The code to move is a restartable sequence, which the kernel knows by its address.
    Restartable,
}

const REFUSALS: [(Refusal, &str); 11] = [
    (Refusal::TooShort, "it is shorter than the five bytes of a jump, and other code follows at once"),
    (Refusal::CannotMove, "its first instructions cannot be moved"),
    (
        Refusal::JumpedTo,
        "code jumps to its first instructions, so that calls cannot be distinguished from rounds",
    ),
    (Refusal::NoRoom, "there is no free memory near it"),
    (Refusal::Ends, "one of its returns lies too close to code that something jumps to"),
    (Refusal::Unclear, "it jumps to where only the running program knows, and may end with that"),
    (Refusal::Elsewhere, "the loader chose code for it that lies in no file"),
    (Refusal::Shared, "the loader chose the code for it that is another watched function's, too"),
    (
        Refusal::EngineUses,
        "it has room for a trap alone, and the engine itself calls functions of its file, where a trap would end the \
         program",
    ),
    (
        Refusal::TooLate,
        "it has room for a trap alone, and its file was mapped when the program had several threads or blocked SIGTRAP",
    ),
    (
        Refusal::Restartable,
        "a jump there would move instructions of a restartable sequence (rseq), which the kernel knows by its address",
    ),
];

impl Refusal {
    /// As an answer.
    pub fn answer(self) -> u64 {
        2 + REFUSALS.iter().position(|(refusal, _)| *refusal == self).unwrap_or_default() as u64
    }

    /// The reason in an answer; `None` when it refuses nothing.
    pub fn of(answer: u64) -> Option<&'static str> {
        REFUSALS.get(usize::try_from(answer.checked_sub(2)?).ok()?).map(|(_, why)| *why)
    }
}

const _: () = assert!(word::FIRST_REGION + region::MOST * region::WORDS <= word::FIRST_CHUNK);
const _: () =
    assert!(WRITES < RANGES.start && RANGES.start < RANGES.end && CHILDREN.end <= DEFINITIONS.start);
const _: () =
    assert!(sieve::COUNTS == 4096 && SIEVES.is_multiple_of(4096) && sieve::BYTES.is_multiple_of(4096));
const _: () = assert!(heap::BYTES.is_multiple_of(4096));
const _: () = assert!(word::FIRST_CHUNK + chunk::COUNT * chunk::WORDS <= word::FIRST_ENTRY);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_spread_over_the_run_and_over_threads_that_take_turns() {
        for halvings in 0..8 {
            let chosen: Vec<u64> = (0..4096).filter(|one| window::is_chosen(*one, halvings)).collect();
            let groups: Vec<u64> = chosen.iter().map(|one| one >> halvings).collect();
            assert_eq!(
                groups,
                (0..4096 >> halvings).collect::<Vec<u64>>(),
                "one of each group of neighbours"
            );
            assert!(chosen.iter().all(|one| halvings == 0 || window::is_chosen(*one, halvings - 1)));
            // Two threads have the even stretches and the odd ones, three every third.
            for threads in 2..=3_u64 {
                let of_each =
                    (0..threads).map(|own| chosen.iter().filter(|one| *one % threads == own).count());
                let least = chosen.len() as u64 / threads / 2;
                assert!(
                    of_each.clone().all(|own| own as u64 >= least),
                    "{halvings}: {:?}",
                    of_each.collect::<Vec<_>>()
                );
            }
        }
    }

    #[test]
    fn a_refusal_says_why() {
        assert_eq!(Refusal::of(entry::PATCHED), None);
        assert!(Refusal::of(Refusal::TooShort.answer()).is_some_and(|why| why.contains("five bytes")));
        assert_eq!(Refusal::of(99), None);
    }

    #[test]
    fn parts_of_the_file_do_not_overlap() {
        let end = 8 * (word::FIRST_ENTRY + entry::MOST * entry::WORDS) as u64;
        assert!(end <= NOTES.start && NOTES.end <= WRITES && DEFINITIONS.end <= CHUNKS);
    }
}
