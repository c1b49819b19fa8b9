//! The results of the search: plain values.

use crate::hand_findings::{AllocationPair, LockWaits, ParallelArrays, StackObject};
pub use crate::layout_evidence::{
    Evidence, Kind, LaidMember, LargestVariant, MemberMap, ThreadWaits, WordChange,
};
use crate::stalls::page_stalls::{HugePages, PageCosts, PageStalls};
use crate::time_findings::{Footprint, Ranked, Stretch, TimeSource};
use crate::trials::placement_kinds::Placements;
use lineup_model::sampling::ClockEvent;
use serde::{Serialize, Serializer};

/// The findings of a program and the places of its stalls.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Findings {
    /// Version of this value as JSON.
    pub schema: &'static str,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The recorder.
    pub recorder: String,
    /// The caches that were modelled.
    pub caches: Vec<String>,
    /// Cycles for a line that the second level has.
    pub l2_cycles: u32,
    /// Cycles for a line from memory.
    pub memory_cycles: u32,
    /// Instructions of the whole program.
    pub instructions: u64,
    /// Modelled stalls of the whole program.
    pub stalls: Stalls,
    /// Stalls for pages, which are not among those; `None` where they were not counted.
    pub pages: Option<PageStalls>,
    /// The costs of pages.
    pub page_costs: PageCosts,
    /// The share of them that has names.
    pub coverage: Coverage,
    /// The windows of the run.
    pub sample: Sample,
    /// The caches that gains were tried under, the modelled ones first.
    pub configurations: Vec<String>,
    /// The findings, by gain: of the time, where the clock contradicts the model.
    pub findings: Vec<Finding>,
    /// Types of which a layout touches fewer lines, by bound, whether they stall or not.
    pub footprints: Vec<Footprint>,
    /// Both together, the largest bound in time first.
    pub ranking: Vec<Ranked>,
    /// Allocations that one allocation could be, in pairs; by hand.
    pub allocation_pairs: Vec<AllocationPair>,
    /// Large objects on stacks of which little is used; by hand.
    pub stack_objects: Vec<StackObject>,
    /// Arrays that one array of structs could be; by hand.
    pub parallel_arrays: Vec<ParallelArrays>,
    /// Locks that threads wait for; by hand.
    pub locks: Vec<LockWaits>,
    /// The number of further subjects whose upper bound is below the threshold.
    pub below_threshold: usize,
    /// The source of shares of the time.
    pub time_source: TimeSource,
    /// Of the data with most time and with most stalls, that without a finding, with the reason.
    pub without_finding: Vec<WithoutFinding>,
    /// Data stalls by owner: types, variables, buffers and everything else with a name, most stalls first. Owners that
    /// never stalled, and that have next to no time, are left out.
    pub owners: Vec<OwnerStalls>,
    /// Stalls by the program's allocation sites, most stalls first; `None` when those were not seen.
    pub allocation_sites: Option<Vec<AllocationStalls>>,
    /// Other placements of the heap's small objects; `None` where the windows have none.
    pub placements: Option<Placements>,
    /// Huge pages, where pages cost much and no placement of small objects is a finding.
    pub huge_pages: Option<HugePages>,
    /// Contention between threads; `None` when only one thread was seen, and for kernels.
    pub between_threads: Option<BetweenThreads>,
    /// A kernel's stalls by the work it did, most first; `None` for programs.
    pub contexts: Option<Vec<ContextStalls>>,
    /// Functions, most stalls first. Functions that never stalled and executed next to nothing are left out.
    pub functions: Vec<FunctionStalls>,
    /// Stalls from the outside in: `data`, owner, member and function, or `code` and function. For viewers of stacks.
    #[serde(skip)]
    pub stacks: Vec<Stack>,
    /// Samples of a run at the program's own speed, by the clock; `None` when there was none.
    pub clock_samples: Option<u64>,
    /// The event of the samples; `None` without samples.
    #[serde(serialize_with = "by_name")]
    pub clock_event: Option<ClockEvent>,
    /// The bursts of a process that ran already; `None` of a whole run.
    pub bursts: Option<Bursts>,
    /// The note that processes were forked off, of which nothing was counted: a server may do all of its work there.
    /// Without it the other figures mislead, so that reports begin with it.
    #[serde(skip)]
    pub forked: Option<String>,
    /// Further notes, with that on processes.
    pub notes: Vec<String>,
}

impl Findings {
    /// The footprint of a finding's type.
    pub fn footprint_of(&self, finding: &Finding) -> Option<&Footprint> {
        let is_type = matches!(finding.evidence, Evidence::Type { .. });
        self.footprints.iter().find(|one| is_type && finding.subject.as_ref() == Some(&one.subject))
    }
}

/// Bursts of a process that ran already: all counts are of them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bursts {
    /// How they were taken.
    #[serde(flatten)]
    pub taken: BurstsTaken,
    /// Shares, and how sure they are.
    #[serde(flatten)]
    pub shares: BurstShares,
}

/// How bursts were taken, and what that cost the process.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct BurstsTaken {
    /// The process.
    pub process: u32,
    /// The time for which it was watched.
    pub watched_seconds: f64,
    /// Processor time that it used meanwhile.
    pub process_seconds: f64,
    /// Bursts.
    pub bursts: u64,
    /// Those whose accesses were kept.
    pub kept: u64,
    /// Those that had not ended when the process was left.
    pub unended: u64,
    /// Those that a signal handler, or code that cannot be translated, ended.
    pub lost: u64,
    /// Those that took the longest time allowed.
    pub cut: u64,
    /// Instructions in all bursts.
    pub instructions: u64,
    /// Accesses in all bursts.
    pub accesses: u64,
    /// Threads that had a burst.
    pub threads: u64,
    /// Processor time in bursts, that of the program's own work in them included.
    pub burst_seconds: f64,
    /// Time that threads stood still for bursts to begin.
    pub stopped_seconds: f64,
    /// The longest burst, in microseconds.
    pub longest_burst_us: f64,
    /// The longest stop, in microseconds.
    pub longest_stop_us: f64,
    /// The allowed share of the process's processor time.
    pub allowed: f64,
    /// The share that bursts and stops took.
    pub cost: f64,
    /// Bursts that were not begun, by reason.
    pub not_begun: Vec<BurstsNotBegun>,
}

/// Bursts that were not begun for a reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BurstsNotBegun {
    /// The reason.
    pub reason: String,
    /// How often.
    pub times: u64,
}

/// Shares of modelled stalls in bursts.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct BurstShares {
    /// Stalls if the caches hold what the thread's burst before has left: the estimate that all shares rest on.
    pub stall_cycles: f64,
    /// Stalls if they hold all that each burst uses.
    pub stall_cycles_if_hits: f64,
    /// Stalls if they hold nothing.
    pub stall_cycles_if_misses: f64,
    /// By the owner of the data.
    pub owners: Vec<BurstShare>,
    /// By function, for data and code.
    pub functions: Vec<BurstShare>,
}

/// A share of the modelled stalls of all bursts.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BurstShare {
    /// The owner, or the function.
    pub name: String,
    /// Its share.
    pub share: f64,
    /// The ends of the 95 % interval, with a burst as the unit that is drawn; `None` with fewer than eight bursts.
    pub low: Option<f64>,
    /// See `low`.
    pub high: Option<f64>,
    /// Its share if the caches hold all that each burst uses.
    pub if_hits: f64,
    /// Its share if they hold nothing.
    pub if_misses: f64,
}

fn by_name<S: Serializer>(event: &Option<ClockEvent>, serializer: S) -> Result<S::Ok, S::Error> {
    event.map(ClockEvent::name).serialize(serializer)
}

/// Data that takes or stalls for much time and has no finding.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WithoutFinding {
    /// The name of its owner.
    pub name: String,
    /// Its share of all modelled stalls.
    pub share: f64,
    /// The share of the time that accesses to it have.
    pub time: f64,
    /// The reason.
    pub reason: NoFinding,
    /// Of a type with much time, the change that a person may make; `None` where there is nothing to say.
    pub by_hand: Option<String>,
}

/// A reason why data has no finding.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NoFinding {
    /// The best layout gains less than the threshold.
    LittleGain {
        /// That layout.
        layout: Kind,
        /// Its gain, as a share of all modelled stalls.
        gain: f64,
    },
    /// No layout that was tried needs fewer lines.
    NoGain,
    /// No other layout was tried: it has one member, or members that keep their places.
    NothingToMove,
    /// No other layout was tried: the windows have none of its objects.
    NotInWindows,
    /// It has no members: an array, a buffer, a variable of one value.
    NoMembers,
    /// It lies on the stack.
    Stack,
    /// Code of a library accesses it, and its type is unknown there.
    Library,
    /// It is what the C library's allocator adds to objects.
    Allocator,
    /// The program's sources do not declare it.
    OfLibrary {
        /// The library, in words.
        declared_in: String,
    },
    /// Its members fill it, and all of them are used.
    Full {
        /// Bytes of an object.
        size_bytes: u64,
    },
    /// The function uses one line of it.
    OneLine {
        /// The function.
        function: String,
        /// The stretch that lines are counted in.
        per: Stretch,
    },
    /// The best layout saves few lines, or in functions with little time.
    FewLines {
        /// The function in which it saves most.
        function: String,
        /// The stretch that lines are counted in.
        per: Stretch,
        /// That layout.
        layout: Kind,
        /// Lines in one stretch, on average.
        lines: f64,
        /// The same with that layout.
        lines_after: f64,
    },
    /// No layout that was tried touches fewer lines.
    NoFewerLines {
        /// The function with most of its time.
        function: String,
        /// The stretch that lines are counted in.
        per: Stretch,
        /// Lines in one stretch, on average.
        lines: f64,
    },
}

/// Modelled stalls, in cycles.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Stalls {
    /// Stalls for fetches.
    pub code_cycles: u64,
    /// Stalls for loads and stores.
    pub data_cycles: u64,
}

impl Stalls {
    /// Both.
    pub fn cycles(&self) -> u64 {
        self.code_cycles + self.data_cycles
    }
}

/// Contention between threads, if threads whose windows of the run follow each other ran side by side at one pace. The
/// stalls do not include it: those are of each thread's own caches.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct BetweenThreads {
    /// Threads that have windows.
    pub threads: u64,
    /// The assumed cost of one wait, in cycles: it is not measured.
    pub wait_cycles: f64,
    /// Waits for lines that another thread had.
    pub waits: ThreadWaits,
}

/// The share of modelled data stalls that has a name, and of which class.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Coverage {
    /// Named, of all stalls: those of code all have a function. `None` when there were none.
    pub of_all: Option<f64>,
    /// Named, of all stalls of data; `None` when there were none.
    pub named: Option<f64>,
    /// The missing part of the debug information of the code that stalls most without it, and the remedy.
    #[serde(skip)]
    pub lack: Option<&'static str>,
    /// The shares of the classes.
    pub classes: Vec<ClassShare>,
}

/// The share of data stalls that has names of one class.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ClassShare {
    /// The class.
    pub class: &'static str,
    /// Its share.
    pub share: f64,
}

/// The windows of the run in which every access is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Sample {
    /// The number of windows.
    pub windows: u64,
    /// Accesses in them.
    pub accesses: u64,
    /// Accesses of the whole run.
    pub of_accesses: u64,
    /// Stalls in them, modelled with the caches as the run had them.
    pub stall_cycles: u64,
}

/// The dependence of a gain on the cache.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sign {
    /// Every configuration gains.
    Steady,
    /// These lose.
    DependsOn(Vec<String>),
}

/// A layout that was tried.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Trial {
    /// The kind of change that was tried.
    pub kind: Kind,
    /// The share of all modelled stalls that it saves.
    pub gain: f64,
}

/// One thing that is worth fixing.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// The type, or the function; `None` for the code of the whole program.
    pub subject: Option<String>,
    /// The proposed change: the one that saves most, or one that is less to edit where it saves nearly as much.
    pub kind: Kind,
    /// The share of all modelled stalls that the subject has.
    pub stalls: f64,
    /// The upper bound of its saving, as a share of all modelled stalls.
    pub gain: f64,
    /// The same under each configuration, in the order of [`Findings::configurations`].
    pub gains: Vec<f64>,
    /// The dependence of the gain on the cache.
    pub sign: Sign,
    /// The evidence for it.
    pub evidence: Evidence,
    /// Everything that was tried for this subject: the one that the finding is of, then the best first.
    pub trials: Vec<Trial>,
    /// The functions in which the subject stalls most.
    pub functions: Vec<String>,
    /// The next command; empty without one.
    pub next: String,
    /// The edit in words, where a person has to make it: no patch is made for the kind, or the type is a library's.
    pub by_hand: Option<String>,
    /// A study tries to write the edit: where the sources allow it, nobody has to.
    #[serde(skip)]
    pub is_written: bool,
    /// The kind that a study writes where it does not write this one.
    #[serde(skip)]
    pub instead: Option<Kind>,
    /// The uses of a type's members, and their places in the layout; `None` for code.
    pub map: Option<MemberMap>,
    /// The clock's contradiction of the model in a function in which the subject stalls; `None` where they agree, and
    /// without samples by the clock.
    pub clock: Option<ClockContradiction>,
}

/// A function that takes another share of the time than the model says: the interval excludes the model's share.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClockContradiction {
    /// The function.
    pub function: String,
    /// The share of the subject's stalls that it has.
    pub of_subject: f64,
    /// Its share of all modelled cycles.
    pub of_cycles: f64,
    /// Its share of the time, by samples.
    pub share: f64,
    /// The ends of that share's 95 % interval.
    pub low: f64,
    /// See `low`.
    pub high: f64,
}

/// Data stalls of one owner.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct OwnerStalls {
    /// Its name.
    pub name: String,
    /// Its class: `member` for types.
    pub class: &'static str,
    /// Bytes of a type.
    pub size_bytes: Option<u64>,
    /// Loads and stores.
    pub accesses: f64,
    /// Accesses that missed in the first level.
    pub l1_misses: f64,
    /// Accesses that missed in the second level.
    pub l2_misses: f64,
    /// Modelled stalls.
    pub stall_cycles: f64,
    /// Their share in all modelled stalls, of code too.
    pub share: f64,
    /// The share of the time that accesses to it have: of each function's time, in proportion to accesses and stalls.
    pub time: f64,
    /// Bytes used of each line that was fetched for it, on average, in the windows.
    pub used_bytes_per_line: Option<f64>,
    /// Waits of threads for its lines; `None` where [`Findings::between_threads`] is.
    pub thread_waits: Option<ThreadWaits>,
    /// Its members, most stalls first.
    pub members: Vec<MemberStalls>,
    /// The functions in which it stalls, most first: name and share in the owner's stalls.
    pub functions: Vec<(String, f64)>,
}

/// Stalls of one member.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct MemberStalls {
    /// Its path.
    pub path: String,
    /// Offset of its first byte.
    pub offset: u64,
    /// Bytes.
    pub size_bytes: u64,
    /// Loads and stores.
    pub accesses: f64,
    /// Accesses that missed in the first level.
    pub l1_misses: f64,
    /// Accesses that missed in the second level.
    pub l2_misses: f64,
    /// Modelled stalls.
    pub stall_cycles: f64,
    /// Their share in all modelled stalls.
    pub share: f64,
    /// Waits of threads for lines in it; `None` where [`Findings::between_threads`] is.
    pub thread_waits: Option<ThreadWaits>,
}

/// Counts of the objects that one place allocated.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AllocationStalls {
    /// The first function under way that is not for allocating.
    pub function: String,
    /// The file it is in.
    pub image: String,
    /// `FILE:LINE` of its call that led to the allocator, if debug information has it.
    pub line: Option<String>,
    /// The function that called it, where that is known.
    pub caller: Option<String>,
    /// Different chains of calls that are counted here.
    pub chains: u64,
    /// Objects that were allocated.
    pub objects: u64,
    /// Bytes of them, as asked for.
    pub bytes: u64,
    /// Most bytes in use at one time: a sum over the chains, each at its own time.
    pub most_bytes: u64,
    /// Loads and stores of them.
    pub accesses: f64,
    /// Misses of the first level.
    pub l1_misses: u64,
    /// Misses of the second level.
    pub l2_misses: u64,
    /// Modelled stalls.
    pub stall_cycles: u64,
    /// Their share in all modelled stalls, of code too.
    pub share: f64,
    /// Bytes used of each line that was fetched of them, on average, in the windows.
    pub used_bytes_per_line: Option<f64>,
    /// Bytes that the C library takes for them, with headers and rounded; `None` with another allocator.
    pub taken_bytes: Option<u64>,
    /// Stalls of accesses to them for pages; `None` where they were not counted.
    pub pages: Option<PageStalls>,
    /// Bytes of each 64-byte line fetched for them that belong to objects in use, as asked for, on average, in the
    /// windows. The rest is background: headers, rounding and free memory.
    pub live_bytes_per_line: Option<f64>,
    /// The share of successive visits of small objects, in the windows, whose objects were allocated one after the
    /// other; `None` with fewer than two visits.
    pub visits_in_order: Option<f64>,
    /// The types they are accessed as, with shares of their accesses, most first.
    pub types: Vec<(String, f64)>,
}

/// Stalls of a kernel in one context, exact.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ContextStalls {
    /// The CPU.
    pub cpu: u32,
    /// For interrupts, from entry to return, whomever they interrupted; else for a task.
    pub is_interrupt: bool,
    /// The task's name, where it was read.
    pub task: Option<String>,
    /// The number that the kernel gives it.
    pub pid: Option<u32>,
    /// The lowest address of the task's stack, in hexadecimal; `None` of interrupts, and before the first switch of
    /// tasks.
    pub stack: Option<String>,
    /// Modelled stalls.
    pub stalls: Stalls,
    /// Their share in all modelled stalls of the kernel.
    pub share: f64,
    /// The functions in which it stalls, most first: name and share in the context's stalls.
    pub functions: Vec<(String, f64)>,
}

/// Counts of one function, exact.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FunctionStalls {
    /// Its name as the source spells it.
    pub name: String,
    /// The file it is in; empty outside every file.
    pub image: String,
    /// Instructions executed.
    pub instructions: u64,
    /// Lines of its code that were executed.
    pub code_lines: u64,
    /// Fetches of code that missed the first level.
    pub code_l1_misses: u64,
    /// Fetches of code that missed the second level.
    pub code_l2_misses: u64,
    /// Loads and stores.
    pub accesses: u64,
    /// Accesses that missed in the first level.
    pub l1_misses: u64,
    /// Accesses that missed in the second level.
    pub l2_misses: u64,
    /// Bytes used of each line of data that it fetched, on average, in the windows.
    pub used_bytes_per_line: Option<f64>,
    /// Modelled stalls.
    pub stalls: Stalls,
    /// Stalls for pages, which are not among those; `None` where they were not counted.
    pub pages: Option<PageStalls>,
    /// Their share in all modelled stalls.
    pub share: f64,
    /// The share of all modelled cycles: one for each instruction, and the stalls, those for pages too.
    pub of_cycles: f64,
    /// The clock's share; `None` without samples by the clock.
    pub clock: Option<ClockShare>,
}

/// Stalls of one member in one function, or of one function's code.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stack {
    /// The outermost first.
    pub frames: Vec<String>,
    /// Modelled stalls.
    pub cycles: u64,
}

/// The share of a function in the time that a program took at its own speed, by samples.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ClockShare {
    /// Samples in it.
    pub samples: u64,
    /// Their share.
    pub share: f64,
    /// The ends of the share's 95 % interval.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// True when the model's share of cycles lies within.
    pub is_explained: bool,
}
