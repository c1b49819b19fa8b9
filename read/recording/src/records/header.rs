//! A recording's data other than calls: the header, counts, and whole-program profiles.

use super::sizes::CallSizes;
use super::sizes::{CALLS_IN_RUN, spread_position};
use lineup_model::abi::Abi;
use lineup_model::access::{CallEnd, ProcessId};
use lineup_model::region::Regions;
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// The subject and the parameters of a recording.
#[derive(Clone, PartialEq, Debug)]
pub struct Header {
    /// Machine and pointer size of the program.
    pub abi: Abi,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The emulator and its version, as it names itself.
    pub emulator: String,
    /// The way the recording was made.
    pub mode: Mode,
    /// The regions; [`lineup_model::access::RegionId`] counts in this list.
    pub regions: Regions,
    /// Calls left out at the start of each region.
    pub warmup_calls: u64,
    /// Calls recorded with their accesses at most per region; `None` is no limit.
    pub max_calls: Option<u64>,
    /// The selection of recorded calls where there are more than `max_calls`.
    pub selection: Selection,
    /// Accesses kept at most per call.
    pub max_accesses: u64,
    /// Specifications of the caches modelled while recording, such as `l1d=32K,8,64`.
    pub caches: Vec<String>,
}

impl Header {
    /// A header with everything but machine and command left empty.
    pub fn new(abi: Abi, command: Vec<String>) -> Self {
        Header {
            abi,
            command,
            emulator: String::new(),
            mode: Mode::TwoPass,
            regions: Regions::default(),
            warmup_calls: 0,
            max_calls: None,
            selection: Selection::Spread,
            max_accesses: 0,
            caches: Vec::new(),
        }
    }
}

/// The selection of a region's recorded calls where there is a limit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Selection {
    /// Calls spread evenly over the run, see [`crate::spread_position`].
    Spread,
    /// The first ones.
    First,
    /// Runs of [`crate::CALLS_IN_RUN`] calls in a row, spread evenly over the run: runs of threads that run at the same
    /// time overlap.
    Runs,
    /// The same limit in each thread: up to [`crate::CALLS_IN_RUN`] calls in a row, at times that are the same for all
    /// threads and spread evenly over the run. Then more in a row at these times, see [`crate::ThreadBudget`].
    Threads,
}

impl Selection {
    /// The position of a call in the recording order under a limit: the calls with the lowest positions are recorded.
    /// `number` counts the calls of a region after its warm-up, from 0.
    pub fn position(self, number: u64) -> u64 {
        match self {
            // For threads the time decides.
            Selection::First | Selection::Threads => number,
            Selection::Spread => spread_position(number),
            Selection::Runs => spread_position(number / CALLS_IN_RUN),
        }
    }
}

/// The way a recording was made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// The program ran twice; the second run instrumented the blocks the first saw inside regions.
    TwoPass,
    /// The program ran once with everything instrumented.
    OnePass,
    /// No regions: counts per run of instructions over the whole program.
    WholeProgram,
    /// A whole system: every call is measured by the processor model, and the first ones with their accesses.
    System,
}

/// Counts at the end of a recording, written by the recorder: one for each process that called a region.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// The process that they are of.
    pub process: ProcessId,
    /// One per region, in the header's order.
    pub regions: Vec<RegionCounts>,
    /// Instructions the whole program executed, when they were counted.
    pub total_instructions: Option<u64>,
    /// Wall time from the program's start to the end of recording, under emulation.
    pub elapsed_ns: u64,
    /// Threads the program had, the first included.
    pub threads: u64,
    /// Threads left out because too many lived at once.
    pub unrecorded_threads: u64,
    /// Processes forked off.
    pub forks: u64,
    /// Programs that were started by `exec` and not recorded, in order.
    pub unfollowed: Vec<Unfollowed>,
    /// Sizes of all calls of each region, recorded or not, when they were counted.
    pub all_calls: Vec<CallSizes>,
    /// Messages of the recorder about failures.
    pub notes: Vec<String>,
}

/// A program that was started by `exec` and runs outside the emulator, as do all programs that it starts in turn.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Unfollowed {
    /// Its file.
    pub program: String,
    /// The reason it is not recorded, as in "it is not recorded: it …".
    pub why: String,
}

/// Counts of one region.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RegionCounts {
    /// Calls entered, recorded or not.
    pub seen: u64,
    /// Calls in the recording.
    pub recorded: u64,
    /// Recorded calls left by `longjmp` or an exception.
    pub abandoned: u64,
    /// Recorded calls inside which their thread ended.
    pub thread_ended: u64,
    /// Recorded calls that ended their process.
    pub process_ended: u64,
    /// Recorded calls still open when the program or the recording ended.
    pub unfinished: u64,
    /// Recorded calls with more accesses than are kept per call.
    pub truncated: u64,
    /// Calls not recorded because they ran in a signal handler that interrupted a recorded call.
    pub in_handlers: u64,
}

impl Summary {
    /// Adds the counts of one more process.
    pub fn add_to(all: &mut Option<Summary>, one: Summary) {
        match all {
            Some(all) => all.add(&one),
            None => *all = Some(one),
        }
    }

    /// The programs that ran unrecorded, each once, and how often.
    pub fn unfollowed_each_once(&self) -> BTreeMap<&Unfollowed, u64> {
        let mut times: BTreeMap<&Unfollowed, u64> = BTreeMap::new();
        self.unfollowed.iter().for_each(|one| *times.entry(one).or_default() += 1);
        times
    }

    /// Adds the counts of another process.
    pub fn add(&mut self, other: &Summary) {
        self.regions.resize_with(self.regions.len().max(other.regions.len()), RegionCounts::default);
        for (sum, own) in self.regions.iter_mut().zip(&other.regions) {
            sum.add(own);
        }
        self.all_calls.resize_with(self.all_calls.len().max(other.all_calls.len()), CallSizes::default);
        for (sum, own) in self.all_calls.iter_mut().zip(&other.all_calls) {
            sum.add_all(own);
        }
        self.total_instructions = match (self.total_instructions, other.total_instructions) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.threads += other.threads;
        self.unrecorded_threads += other.unrecorded_threads;
        self.forks += other.forks;
        self.unfollowed.extend(other.unfollowed.iter().cloned());
        self.notes.extend(other.notes.iter().cloned());
    }
}

impl RegionCounts {
    /// Counts the end of a recorded call.
    pub fn count_end(&mut self, end: CallEnd) {
        self.recorded += 1;
        match end {
            CallEnd::Returned => {}
            CallEnd::Abandoned => self.abandoned += 1,
            CallEnd::ThreadEnded => self.thread_ended += 1,
            CallEnd::ProcessEnded => self.process_ended += 1,
            CallEnd::Unfinished => self.unfinished += 1,
        }
    }

    /// Adds counts of the same region.
    pub fn add(&mut self, other: &RegionCounts) {
        self.seen += other.seen;
        self.recorded += other.recorded;
        self.abandoned += other.abandoned;
        self.thread_ended += other.thread_ended;
        self.process_ended += other.process_ended;
        self.unfinished += other.unfinished;
        self.truncated += other.truncated;
        self.in_handlers += other.in_handlers;
    }
}

/// The way the program ended, written by the process that started it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ending {
    /// Exit status or signal.
    pub exit: ProgramExit,
    /// Wall time of the recording run.
    pub elapsed_ns: u64,
    /// Instructions of the whole program, when a discovery run counted them.
    pub total_instructions: Option<u64>,
}

/// Exit status or signal of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProgramExit {
    /// It exited with this status.
    Exited(i32),
    /// It was killed by this signal.
    Signaled(i32),
    /// It ran before it was recorded, and was left running, or ended unseen.
    Left,
}

/// Counts of one run of instructions (part of a block on one cache line), over the whole program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProfileRun {
    /// Runtime address of its first instruction.
    pub pc: u64,
    /// Bytes of code.
    pub size_bytes: u32,
    /// Times it was executed.
    pub executions: u64,
    /// Instructions executed in it.
    pub instructions: u64,
    /// Fetches that missed.
    pub fetch_misses: Misses,
    /// Loads done by it.
    pub loads: u64,
    /// Loads that missed.
    pub load_misses: Misses,
    /// Stores done by it.
    pub stores: u64,
    /// Stores that missed.
    pub store_misses: Misses,
}

/// Counts of one instruction that accesses data, over the whole program.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ProfileInstruction {
    /// Its runtime address.
    pub pc: u64,
    /// Loads done by it.
    pub loads: u64,
    /// Loads that missed.
    pub load_misses: Misses,
    /// The address of the last load that missed; 0 when none did.
    pub load_address: u64,
    /// Stores done by it.
    pub stores: u64,
    /// Stores that missed.
    pub store_misses: Misses,
    /// The address of the last store that missed; 0 when none did.
    pub store_address: u64,
}

/// Misses by level.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Misses {
    /// In the first level.
    pub l1: u64,
    /// In the second level too; zero when the header names no second level.
    pub l2: u64,
}

impl Misses {
    /// Counts one more miss of the first level, which missed the second as well or did not.
    #[inline]
    pub fn count(&mut self, is_l2: bool) {
        self.l1 += 1;
        self.l2 += u64::from(is_l2);
    }
}

/// Costs of pages for the accesses that missed the first level of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PageCounts {
    /// First accesses to pages of 4 KiB: the system gives the program a page then, unless it was there at the start.
    pub first_touches: u64,
    /// Misses of both levels of translations (TLBs).
    pub translations: Misses,
}

impl PageCounts {
    /// True when nothing was counted.
    pub fn is_empty(self) -> bool {
        self == PageCounts::default()
    }
}

impl AddAssign for PageCounts {
    #[inline]
    fn add_assign(&mut self, other: PageCounts) {
        self.first_touches += other.first_touches;
        self.translations += other.translations;
    }
}

impl AddAssign for Misses {
    #[inline]
    fn add_assign(&mut self, other: Misses) {
        self.l1 += other.l1;
        self.l2 += other.l2;
    }
}
