//! The memory that the native engine, inside the program, shares with the command that reads its log.
//!
//! One file in memory, mapped by both. Words are 8 bytes, little endian. The engine writes the execution as words into
//! chunks; the command reads full chunks, turns them into calls, and gives them back. A block of code is described
//! once, as a [`Definition`], and is named by its place.

mod definition;
pub mod derived;
mod elements;
pub mod head;
pub mod heap;
pub mod mappings;
pub mod repeated_lines;
pub mod superblock;
pub mod timed;

pub use definition::{DefinedAccess, Definition, Form, each_piece};
pub use elements::Gather;
pub use head::{child, chunk, entry, region, write};
use std::ops::Range;

/// First word of the file: another one for each layout that this memory ever had, so that an engine and a command from
/// different sources do not misunderstand each other.
pub const MAGIC: u64 = {
    let own = hashed(include_bytes!("mod.rs"), 0);
    let own = hashed(include_bytes!("head.rs"), own);
    let own = hashed(include_bytes!("timed.rs"), own);
    let own = hashed(include_bytes!("elements.rs"), own);
    let own = hashed(include_bytes!("superblock.rs"), own);
    let own = hashed(include_bytes!("derived.rs"), own);
    let own = hashed(include_bytes!("repeated_lines.rs"), own);
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
    /// The beginning of the text that says why nothing was recorded from some place on.
    pub const ENDED: &str = "recording ended before the program, and later calls were not counted";
    /// The file of a program that a process becomes.
    pub const EXEC: u64 = 1;
    /// The file of the program, of which a second process runs.
    pub const SECOND: u64 = 2;
    /// For the user to read, about an instruction: its address in hexadecimal, its mnemonic, and the remark.
    pub const INSTRUCTION: u64 = 3;
    /// The number of a region of which a function has a trap that leads to the engine.
    pub const TRAP: u64 = 4;
}

/// The whole program is recorded, from the engine's start on.
pub mod whole {
    /// The value of [`super::head::Control::mode`].
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

/// The offset in the file of changes of the program's code.
pub const WRITES: u64 = 1 << 18;
/// The list of the engine's own memory: pairs of its beginning and its bytes.
pub const RANGES: Range<u64> =
    WRITES + (size_of::<head::CodeChange>() * write::MOST) as u64..(1 << 20) - (1 << 17);

/// The requests of processes: in the first one's memory.
pub const CHILDREN: Range<u64> = RANGES.end..RANGES.end + (size_of::<head::Request>() * child::MOST) as u64;

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

const _: () = assert!(size_of::<head::Head>() as u64 <= NOTES.start && NOTES.end <= WRITES);
const _: () =
    assert!(WRITES < RANGES.start && RANGES.start < RANGES.end && CHILDREN.end <= DEFINITIONS.start);
const _: () =
    assert!(sieve::COUNTS == 4096 && SIEVES.is_multiple_of(4096) && sieve::BYTES.is_multiple_of(4096));
const _: () = assert!(heap::BYTES.is_multiple_of(4096));
const _: () = assert!(DEFINITIONS.end <= CHUNKS);

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
}
