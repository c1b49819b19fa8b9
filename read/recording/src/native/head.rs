//! The first pages of the memory, as both sides map them: a block of words for each purpose. A word of 0 is one that
//! nobody has written.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

/// The first pages.
#[repr(C)]
pub struct Head {
    /// Settings, progress and sums.
    pub control: Control,
    /// The regions, by their numbers.
    pub regions: [Region; region::MOST],
    /// The chunks of the log.
    pub chunks: [Chunk; chunk::COUNT],
    /// The entries that the command asks for.
    pub entries: [Entry; entry::MOST],
}

/// Settings of the command, progress of both sides, and sums.
#[repr(C, align(64))]
pub struct Control {
    /// [`super::MAGIC`], written by the command.
    pub magic: AtomicU64,
    /// The order of events, over all threads.
    pub clock: AtomicU64,
    /// The next thread's number.
    pub next_thread: AtomicU64,
    /// Chunks handed over so far: gives each its place in their order.
    pub submitted: AtomicU64,
    /// Counts on while the command reads.
    pub heartbeat: AtomicU64,
    /// See [`super::state`].
    pub state: AtomicU64,
    /// Bytes of definitions in use.
    pub definitions: AtomicU64,
    /// Bytes of notes in use.
    pub notes: AtomicU64,
    /// Entries that the command asks for.
    pub entries: AtomicU64,
    /// The process that the engine is in.
    pub process: AtomicU64,
    /// The multiplier of a call's number, counted from one after the warm-up, for its position.
    pub multiplier: AtomicU64,
    /// Not 0 when the engine restores a region's entries once the wanted number of its calls was made: later calls are
    /// not counted.
    pub leaves_after_last: AtomicU64,
    /// Processes that the program forked.
    pub forked: AtomicU64,
    /// Counts mappings of executable files.
    pub mapped: AtomicU64,
    /// Not 0 when the command no longer reads the log.
    pub is_gone: AtomicU64,
    /// Not 0 when entries may lie in files that are mapped later.
    pub looks_for_more: AtomicU64,
    /// Calls that were to be recorded and were not, since the log was full.
    pub passed_over: AtomicU64,
    /// Chunks that were read and given back.
    pub given_back: AtomicU64,
    /// The mode: 0 when calls are recorded, or [`super::timed::MODE`], or [`super::whole::MODE`].
    pub mode: AtomicU64,
    /// Cycles of the processor's counter in [`Control::nanoseconds`].
    pub cycles: AtomicU64,
    /// See [`Control::cycles`].
    pub nanoseconds: AtomicU64,
    /// The counter when the program began.
    pub begun_at: AtomicU64,
    /// Cycles that each call takes longer, a thousandth of each.
    pub cycles_added: AtomicU64,
    /// Not 0 when the engine attached to a running program: see [`CodeChange`].
    pub is_attached: AtomicU64,
    /// The beginning and the end of the code cache.
    pub cache_start: AtomicU64,
    /// See [`Control::cache_start`].
    pub cache_end: AtomicU64,
    /// Distance of the engine's words of a thread from its base.
    pub slots: AtomicU64,
    /// The offset in these words of the address at which the program continues, and of the word that marks the thread
    /// as busy.
    pub pc_slot: AtomicU64,
    /// See [`Control::pc_slot`].
    pub busy_slot: AtomicU64,
    /// Changes of the program's code, see [`CodeChange`].
    pub writes: AtomicU64,
    /// Memory that the engine holds when it is to go, see [`super::RANGES`].
    pub ranges: AtomicU64,
    /// Processes that have asked for memory of their own, see [`Request`].
    pub children: AtomicU64,
    /// When the whole program is recorded: the modelled first-level data cache.
    pub data_cache: Geometry,
    /// The first-level instruction cache.
    pub code_cache: Geometry,
    /// Sieves that threads have taken, see [`super::sieve`].
    pub sieves: AtomicU64,
    /// Not 0 when windows of the run are wanted, see [`super::window`].
    pub windows: AtomicU64,
    /// The number of times that every second window was dropped.
    pub halvings: AtomicU64,
    /// Stretches of the run that have begun, of all threads.
    pub stretches: AtomicU64,
    /// Functions that give out memory and take it back, see [`super::heap`].
    pub allocators: AtomicU64,
    /// Files whose functions' callers can be found, see [`super::heap`].
    pub unwound: AtomicU64,
    /// Not 0 when the number of recorded calls a second is limited: see [`Region::allowed`].
    pub is_paced: AtomicU64,
    /// The number of times a call's number is halved before it is multiplied: calls of one position follow each other.
    pub run_shift: AtomicU64,
    /// The maximum number of calls recorded of each region in each thread; 0 when there is no such limit.
    pub calls_per_thread: AtomicU64,
    /// The interventions before timed calls: a bit for each arm, see [`super::timed::Arm`]; 0 for none.
    pub arms: AtomicU64,
    /// The sampling period: one call in this many is sampled on average.
    pub drawn_every: AtomicU64,
    /// The seed of the random numbers that sample calls.
    pub seed: AtomicU64,
    /// The bytes read to push other data out of the caches.
    pub swept_bytes: AtomicU64,
    /// The pause after a sampled call, as a multiple of the time spent before it; 0 for no pause.
    pub rest: AtomicU64,
    /// Sampled calls that have ended.
    pub trials: AtomicU64,
    /// Not 0 when all of a whole program's run is logged, and nothing counted: see [`super::superblock`].
    pub logs_all: AtomicU64,
    /// Not 0 when forked processes are counted, too: each asks for memory of its own.
    pub follows_forks: AtomicU64,
    /// The process's number in the recording.
    pub number: AtomicU64,
    /// The end of the code in the cache when the engine was about to leave; a little more may have been added since.
    pub cache_used: AtomicU64,
    /// The offset, in the engine's words of a thread, of the word that marks SIGTRAP as blocked by the program but not
    /// by the kernel; 0 while the program's code has no trap.
    pub trap_slot: AtomicU64,
    /// Restartable sequences that were executed and not recorded.
    pub sequences: AtomicU64,
    /// Their instructions, each from begin to end once: exits make fewer, and loops more.
    pub sequence_instructions: AtomicU64,
    /// The signature with which the program registered memory for restartable sequences before the engine started; 0
    /// for the usual one.
    pub signature: AtomicU64,
    /// Chunks of the log that a burst fills; 0 when no bursts are wanted. A burst is a short stretch of a thread's run
    /// in the code cache, from any instruction on. The command stops the thread, writes the address of its next
    /// instruction and the mark of a busy thread into the engine's words of the thread, and lets it continue at
    /// [`Control::burst_code`].
    pub burst_chunks: AtomicU64,
    /// The longest burst, in nanoseconds of processor time.
    pub burst_most_ns: AtomicU64,
    /// The address of the code that begins a burst, once the engine has made it.
    pub burst_code: AtomicU64,
    /// Bursts that have begun.
    pub bursts: AtomicU64,
    /// Bursts that have ended.
    pub bursts_ended: AtomicU64,
    /// Those that ended since the program continued natively: by a signal handler, or code that cannot be translated.
    pub bursts_lost: AtomicU64,
    /// Those that reached [`Control::burst_most_ns`].
    pub bursts_cut: AtomicU64,
    /// Processor time in bursts, in nanoseconds, without that of the program's system calls.
    pub burst_ns: AtomicU64,
    /// The longest of them.
    pub longest_burst_ns: AtomicU64,
    /// Bursts that were not begun, since no chunk of the log was free.
    pub bursts_refused: AtomicU64,
}

impl Control {
    /// Takes over the settings that the processes of a program have in common.
    pub fn set_like(&self, other: &Control) {
        let [own, others] = [self, other].map(|one| {
            [
                &one.mode,
                &one.multiplier,
                &one.run_shift,
                &one.leaves_after_last,
                &one.looks_for_more,
                &one.calls_per_thread,
                &one.arms,
                &one.drawn_every,
                &one.seed,
                &one.swept_bytes,
                &one.rest,
                &one.windows,
                &one.data_cache.line_shift,
                &one.data_cache.sets,
                &one.data_cache.ways,
                &one.code_cache.line_shift,
                &one.code_cache.sets,
                &one.code_cache.ways,
                &one.follows_forks,
            ]
        });
        own.iter().zip(others).for_each(|(own, other)| own.store(other.load(Acquire), Release));
    }
}

/// A modelled cache.
#[repr(C)]
pub struct Geometry {
    /// Bytes of a line, as a power of two.
    pub line_shift: AtomicU64,
    /// Sets.
    pub sets: AtomicU64,
    /// Lines of a set; 0 when all is found there.
    pub ways: AtomicU64,
}

/// A region.
#[repr(C, align(64))]
pub struct Region {
    /// Calls counted.
    pub calls: AtomicU64,
    /// A call is recorded when its position lies below this.
    pub bound: AtomicU64,
    /// Calls left out at the start.
    pub warmup: AtomicU64,
    /// Calls in signal handlers that interrupted a recorded call.
    pub in_handlers: AtomicU64,
    /// 1 when its entries were restored, since no more calls are wanted.
    pub is_out: AtomicU64,
    /// Calls in forked processes, and calls after the recording ended.
    pub unwatched: AtomicU64,
    /// Where the number of recorded calls a second is limited: the calls whose recording has begun.
    pub taken: AtomicU64,
    /// The number of calls that may be recorded by now, set by the command.
    pub allowed: AtomicU64,
}

/// A chunk of the log.
#[repr(C)]
pub struct Chunk {
    /// 0 when it is free, else [`chunk::IS_OWNED`] or [`chunk::IS_FULL`].
    pub state: AtomicU64,
    /// The thread that fills it.
    pub thread: AtomicU64,
    /// Its place in the order of chunks.
    pub order: AtomicU64,
    /// Bytes in it that are whole records.
    pub length: AtomicU64,
}

/// An entry that is to be watched.
#[repr(C)]
pub struct Entry {
    /// Its address; 0 when its file was unmapped. For a function that the loader chooses: at first the address of the
    /// resolver, then, from the engine, that of the chosen function.
    pub address: AtomicU64,
    /// The region's number.
    pub region: AtomicU64,
    /// Bytes of the function from there on.
    pub size: AtomicU64,
    /// 0 until the engine answers, then one of [`super::Refusal`] or [`entry::PATCHED`].
    pub answer: AtomicU64,
    /// Bytes from there up to the next function. 0 for a chosen function until the command looks for it.
    pub room: AtomicU64,
    /// The address of the resolver, for a function that the loader chooses; else 0.
    pub chooser: AtomicU64,
}

/// A change of the program's code, when the engine attached to a running program. The command makes the changes from
/// before the engine's start, and takes all changes back, while all threads are stopped.
#[repr(C)]
pub struct CodeChange {
    /// Its address.
    pub address: AtomicU64,
    /// Bytes.
    pub length: AtomicU64,
    /// The old bytes.
    pub old: AtomicU64,
    /// The new bytes.
    pub new: AtomicU64,
}

/// The request of a process for memory of its own: one that the program, or one of its descendants, started or
/// forked.
#[repr(C)]
pub struct Request {
    /// The process, as the system numbers it. For a forked process, the upper half holds its parent's number in the
    /// recording, plus one.
    pub process: AtomicU64,
    /// 0 until the command answers: then the number of its open file, plus one.
    pub file: AtomicU64,
}

/// Regions.
pub mod region {
    /// Regions at most.
    pub const MOST: usize = 64;
}

/// Chunks of the log.
pub mod chunk {
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

/// Entries that are to be watched.
pub mod entry {
    /// The entry is watched.
    pub const PATCHED: u64 = 1;
    /// Nothing was chosen yet: its library is just being loaded.
    pub const WAITS: u64 = u64::MAX;
    /// Entries at most.
    pub const MOST: usize = 1408;
}

/// Changes of the program's code.
pub mod write {
    /// Changes at most.
    pub const MOST: usize = 16_384;
}

/// Processes that ask for memory of their own.
pub mod child {
    /// The lowest bit of the upper half of [`super::Request::process`].
    pub const FORKED_BY_AT: u32 = 32;
    /// Processes at most.
    pub const MOST: usize = 8192;
}
