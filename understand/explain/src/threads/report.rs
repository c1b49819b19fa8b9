//! The result: plain values.

use super::locks::LockKind;
use crate::catalog::Ty;
use lineup_model::usage::VariableRef;
use serde::Serialize;

/// What threads did to each other's caches.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BetweenThreads {
    /// Line size in bytes.
    pub line_bytes: u64,
    /// What runs side by side, and what its times count.
    pub of: Of,
    /// The threads, by number.
    pub threads: Vec<ThreadSeen>,
    /// Accesses of all of them.
    pub accesses: u64,
    /// Waits on all lines.
    pub waits: WaitsByOrder,
    /// What threads fight over without need, worst first.
    pub false_sharing: Vec<FalseSharing>,
    /// Numbers that threads add to, of which each could have its own if only the sum is needed, most waits first.
    pub counters: Vec<SharedCounter>,
    /// Lines that several threads used and one wrote, those with the most waits first.
    pub lines: Vec<LineBetween>,
    /// Who made whom wait.
    pub matrix: Vec<Matrix>,
    /// The tasks of a kernel, and its interrupts, as far as they are known: those that wait and make wait most first.
    pub tasks: Vec<TaskBetween>,
    /// Who of these made whom wait, most waits first.
    pub task_matrix: Vec<TaskMatrix>,
    /// What calls of a kernel's functions waited for, where they were recorded beside all that the CPUs access.
    pub calls_in_windows: Vec<CallsInWindows>,
    /// Locks, the one first for which threads waited longest.
    pub locks: Vec<LockReport>,
    /// What would be if everything lay some bytes further up, as after another header of the heap or another order of the
    /// linker, in the recorded order.
    pub placements: Vec<Placement>,
    /// Waits in the recorded order if processors fetched lines of 128 bytes, as those that fetch lines in pairs nearly do.
    pub in_pairs_of_lines: Waits,
    /// What is not in these figures.
    pub not_seen: NotSeen,
}

/// What runs side by side.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// Threads of a program. Times are cycles of a counter that all threads read alike.
    #[default]
    Threads,
    /// Virtual CPUs in a kernel. Times are accesses: those of all CPUs together, in their order.
    Cpus,
}

impl Of {
    /// One of them, in a word.
    pub fn one(self) -> &'static str {
        match self {
            Of::Threads => "thread",
            Of::Cpus => "CPU",
        }
    }

    /// What times count.
    pub fn time_unit(self) -> &'static str {
        match self {
            Of::Threads => "cycles",
            Of::Cpus => "accesses",
        }
    }
}

/// A thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ThreadSeen {
    /// Its number in the recording.
    pub thread: u32,
    /// Calls with times, those inside others not counted.
    pub calls: u64,
    /// Accesses in them.
    pub accesses: u64,
    /// Accesses to lines that several threads use.
    pub accesses_to_shared_lines: u64,
    /// How long these calls took, as they were recorded.
    pub time: u64,
    /// Of this, how long a call of another thread of its process was under way, too.
    pub time_beside_others: u64,
    /// The region that it called most.
    pub region: String,
}

/// Misses on lines that another thread took away, and stores that had to take a line from others.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Waits {
    /// For bytes that another thread wrote or used.
    pub of_same_bytes: u64,
    /// For other bytes of the line: no thread needed what the other did.
    pub of_line_alone: u64,
}

impl Waits {
    /// Both kinds.
    pub fn all(self) -> u64 {
        self.of_same_bytes + self.of_line_alone
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Waits) -> Waits {
        Waits {
            of_same_bytes: self.of_same_bytes + other.of_same_bytes,
            of_line_alone: self.of_line_alone + other.of_line_alone,
        }
    }
}

/// Waits in three orders of the same accesses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct WaitsByOrder {
    /// As they were recorded.
    pub recorded: Waits,
    /// With few changes between threads.
    pub fewest: Waits,
    /// With many waits.
    pub most: Waits,
}

impl WaitsByOrder {
    /// The sum, order by order.
    #[must_use]
    pub fn plus(self, other: WaitsByOrder) -> WaitsByOrder {
        WaitsByOrder {
            recorded: self.recorded.plus(other.recorded),
            fewest: self.fewest.plus(other.fewest),
            most: self.most.plus(other.most),
        }
    }

    /// Waits for the line alone in the order that has more of them.
    pub fn of_line_alone_at_most(&self) -> u64 {
        [self.recorded, self.fewest, self.most]
            .map(|waits| waits.of_line_alone)
            .into_iter()
            .max()
            .unwrap_or(0)
    }
}

/// Data that share lines though no thread needs what the other does.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FalseSharing {
    /// The types and variables on the lines.
    pub owners: Vec<String>,
    /// Lines.
    pub lines: u64,
    /// Waits on them.
    pub waits: WaitsByOrder,
    /// Of a thousand accesses of the threads so many wait for these lines alone in the recorded order.
    pub per_thousand_accesses: f64,
    /// And in the order that has most such waits.
    pub per_thousand_accesses_at_most: f64,
    /// What is accessed by several threads or beside what others write: name, threads that read it, threads that write it.
    pub parts: Vec<PartBetween>,
    /// What would part them.
    pub remedy: Remedy,
}

/// What parts data of different threads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Remedy {
    /// Members of one object go to lines of their own.
    PartMembers {
        /// The type.
        #[serde(rename = "type")]
        ty: String,
        /// The type, where it is described.
        #[serde(skip)]
        id: Option<Ty>,
    },
    /// Each element or object of a type gets lines of its own.
    AlignObjects {
        /// The type.
        #[serde(rename = "type")]
        ty: String,
        /// The type, where it is described.
        #[serde(skip)]
        id: Option<Ty>,
        /// Bytes of an object now.
        size_bytes: u64,
        /// And then.
        aligned_bytes: u64,
    },
    /// Elements of an array of numbers or pointers get lines of their own: its index, or its type, has to change.
    SpreadArray {
        /// The variable.
        variable: String,
        /// It, where it is in an image.
        #[serde(skip)]
        place: Option<(usize, VariableRef)>,
    },
    /// Variables get lines of their own.
    AlignVariables {
        /// Their names.
        variables: Vec<String>,
        /// All that are used on the lines, with the image that each is in.
        #[serde(skip)]
        places: Vec<(usize, VariableRef)>,
    },
    /// What is allocated gets lines of its own.
    AlignAllocations,
}

/// A line that several threads used.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LineBetween {
    /// The process, by number.
    pub process: u32,
    /// Address of its first byte.
    pub address: u64,
    /// The types and variables on it.
    pub owners: Vec<String>,
    /// Waits.
    pub waits: WaitsByOrder,
    /// Copies that stores took from other caches, in the recorded order.
    pub invalidations: u64,
    /// Misses that another thread's cache served, in the recorded order.
    pub transfers: u64,
    /// What was accessed on it.
    pub parts: Vec<PartBetween>,
    /// Which code of which thread made which wait, in the recorded order, most waits first.
    pub pairs: Vec<PairBetween>,
}

/// Bytes of a line that were accessed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct PartBetween {
    /// Where they begin in the line.
    pub offset: u64,
    /// How many.
    pub size_bytes: u64,
    /// What they are.
    pub name: String,
    /// Threads that read them.
    pub readers: Vec<u32>,
    /// Threads that wrote them.
    pub writers: Vec<u32>,
}

/// Code that took a line, and code that needed it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PairBetween {
    /// The store that took the line.
    pub taken_by: UseOf,
    /// What needed it, or had it before.
    pub needed_by: UseOf,
    /// How often.
    pub waits: Waits,
}

/// Code of a thread that accesses something.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct UseOf {
    /// The thread.
    pub thread: u32,
    /// The function.
    pub function: String,
    /// File and line, where debug information tells.
    pub place: Option<String>,
    /// What it accesses.
    pub part: String,
}

/// A lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LockReport {
    /// What it is.
    pub name: String,
    /// Whose it is.
    pub kind: LockKind,
    /// Address of its word.
    pub address: u64,
    /// How often it was taken and given back.
    pub taken: u64,
    /// How long threads had it.
    pub held_time: u64,
    /// Of the longest time.
    pub longest_held_time: u64,
    /// How long threads asked for it until they got it, whoever had it meanwhile: it may be a call that was not recorded.
    pub asked_time: u64,
    /// How many threads took it.
    pub threads: u64,
    /// Who waited for whom.
    pub waits: Vec<LockWait>,
    /// The code that takes it, that first for which others waited longest.
    pub sections: Vec<LockSection>,
    /// Waits for the line on which its word is.
    pub line_waits: Waits,
    /// What is accessed while it is held, on the line of 64 bytes on which its word is.
    pub data_on_its_line: Vec<String>,
    /// What came over from another thread's cache while it was held, most waits first: these data travel with the lock.
    pub needed_while_held: Vec<Needed>,
    /// Where it lies in an object of a type.
    #[serde(skip)]
    pub within: Option<LockWithin>,
    /// What threads would wait if it lay elsewhere; `None` where they hardly wait for it and with it, or more for many others.
    pub places: Option<LockPlaces>,
}

/// A lock in an object of a type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockWithin {
    /// The type.
    pub ty: Ty,
    /// Where in it the lock's word is.
    pub offset: u64,
    /// What only those who have it use, for the most part: offset and size.
    pub guards: Vec<(u64, u64)>,
}

/// A number that several threads add to by one instruction, and that none only reads or writes in the recorded calls.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SharedCounter {
    /// What it is.
    pub name: String,
    /// Threads that add to it.
    pub threads: u64,
    /// Waits for its bytes, in the recorded order.
    pub waits: u64,
}

impl Remedy {
    /// More variables than this on the lines are no case for an alignment each.
    pub const MOST_VARIABLES: usize = 16;

    /// Whether `lineup study --allow-growth` has an edit for it. Whether it can be made, the sources decide then.
    pub fn has_edit(&self) -> bool {
        match self {
            Remedy::PartMembers { id, .. } | Remedy::AlignObjects { id, .. } => id.is_some(),
            Remedy::SpreadArray { place, .. } => place.is_some(),
            Remedy::AlignVariables { places, .. } => {
                !places.is_empty() && places.len() <= Self::MOST_VARIABLES
            }
            Remedy::AlignAllocations => false,
        }
    }
}

impl SharedCounter {
    /// What would part its uses, and why no edit is made of it. The name is not part of the sentence.
    pub fn in_words(&self, of: Of) -> String {
        let (one, times) = (of.one(), if self.waits == 1 { "time" } else { "times" });
        format!(
            "{} {one}s add to it and wait {} {times} for its bytes; a copy for each, summed where it is read, would \
             part them. That changes what the program means, and is left to you.",
            self.threads, self.waits
        )
    }
}

/// All waits of a process in the recorded order, by where a lock lies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LockPlaces {
    /// As it is.
    pub as_it_lies: Waits,
    /// With its word alone on a line.
    pub alone: Waits,
    /// With what is waited for most while it is held on a line with it, and nothing else.
    pub beside: Option<Beside>,
}

impl LockPlaces {
    /// Fewest waits that there are with the lock elsewhere.
    pub fn best(&self) -> u64 {
        let beside = self.beside.as_ref().map(|beside| beside.waits.all());
        beside.into_iter().fold(self.alone.all(), u64::min)
    }

    /// Whether that is a tenth less: else the lock lies well.
    pub fn are_better(&self) -> bool {
        let now = self.as_it_lies.all();
        self.best() + now / 10 < now
    }
}

/// A lock on a line with data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Beside {
    /// The data.
    pub name: String,
    /// All waits then.
    pub waits: Waits,
}

/// Data that a thread waited for while it had a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Needed {
    /// What it is.
    pub name: String,
    /// Waits for it, in the recorded order.
    pub waits: Waits,
}

impl LockReport {
    /// How long threads waited while another had it.
    pub fn waited_time(&self) -> u64 {
        self.waits.iter().map(|wait| wait.time).sum()
    }

    /// Waits for lines while it was held.
    pub fn waits_while_held(&self) -> Waits {
        self.needed_while_held.iter().fold(Waits::default(), |all, needed| all.plus(needed.waits))
    }
}

/// A thread that asked for a lock while another had it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LockWait {
    /// The thread that asked.
    pub thread: u32,
    /// The one that had it.
    pub waits_for: u32,
    /// How often.
    pub times: u64,
    /// From asking to getting it.
    pub time: u64,
    /// Of the longest wait.
    pub longest_time: u64,
}

/// Code that takes a lock.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct LockSection {
    /// The function.
    pub function: String,
    /// File and line of what it accessed last before, where debug information tells.
    pub place: Option<String>,
    /// How often it took the lock.
    pub taken: u64,
    /// How long it had it.
    pub held_time: u64,
    /// How long others waited meanwhile.
    pub others_waited_time: u64,
}

/// Waits of a thread because of another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Matrix {
    /// The thread whose stores took lines.
    pub taken_by: u32,
    /// The thread that needed them.
    pub needed_by: u32,
    /// How often, in the recorded order.
    pub waits: Waits,
}

/// A task of a kernel, or the interrupts of a CPU.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TaskBetween {
    /// Its name, with its number where that is known.
    pub name: String,
    /// The number that the kernel gives it.
    pub pid: Option<u32>,
    /// The lowest address of its stack; `None` for interrupts.
    pub stack: Option<String>,
    /// The CPUs that worked for it.
    pub cpus: Vec<u32>,
    /// Accesses to lines that several CPUs use.
    pub accesses_to_shared_lines: u64,
    /// Waits of others, and of itself on another CPU, for lines that it took.
    pub took: Waits,
    /// Its own waits for lines that were taken.
    pub needed: Waits,
}

/// Waits of a task because of another, or because it ran on another CPU before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct TaskMatrix {
    /// The task whose stores took lines, by its place in [`BetweenThreads::tasks`].
    pub taken_by: usize,
    /// The one that needed them.
    pub needed_by: usize,
    /// How often, in the recorded order.
    pub waits: Waits,
}

/// Calls of one function that lie wholly in windows, by whether they execute more instructions than usual.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CallsInWindows {
    /// The function.
    pub region: String,
    /// Calls with more instructions are its tail.
    pub above_instructions: f64,
    /// Calls that are not.
    pub usual: CallWaits,
    /// Those that are.
    pub tail: CallWaits,
    /// What was waited for in either, in the recorded order, that first which the tail's calls wait for more often.
    pub data: Vec<WaitedFor>,
}

/// Waits in some calls.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct CallWaits {
    /// How many calls.
    pub calls: u64,
    /// Waits in all of them.
    pub waits: WaitsByOrder,
}

/// Data that calls waited for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WaitedFor {
    /// What it is.
    pub name: String,
    /// Waits of usual calls.
    pub usual: Waits,
    /// Waits of the tail's.
    pub tail: Waits,
}

/// Waits if everything lay elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Placement {
    /// Further up by so many bytes.
    pub moved_by_bytes: u64,
    /// Waits in the recorded order.
    pub waits: Waits,
}

/// What is not in the figures.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct NotSeen {
    /// Recorded calls without times, those inside other recorded calls not counted: nothing is known of their order.
    pub calls_without_times: u64,
    /// Accesses to shared lines beyond what is gone through.
    pub accesses_left_out: u64,
}
