//! The result: plain values.

use super::locks::LockKind;
use crate::types::catalog::Ty;
use lineup_model::usage::VariableRef;
use serde::Serialize;

/// Contention between threads.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BetweenThreads {
    /// Line size in bytes.
    pub line_bytes: u64,
    /// The units that run side by side, and the unit of their times.
    pub of: Of,
    /// The threads, by number.
    pub threads: Vec<ThreadSeen>,
    /// Accesses of all of them.
    pub accesses: u64,
    /// Waits on all lines.
    pub waits: WaitsByOrder,
    /// False sharing, worst first.
    pub false_sharing: Vec<FalseSharing>,
    /// Data that no thread writes beside data that threads write, most waits first.
    pub beside_hot: Vec<BesideHot>,
    /// Numbers that threads add to, of which each could have its own if only the sum is needed, most waits first.
    pub counters: Vec<SharedCounter>,
    /// Lines that several threads used and one wrote, those with the most waits first.
    pub lines: Vec<LineBetween>,
    /// Waits by the thread that waited and the thread that caused it.
    pub matrix: Vec<Matrix>,
    /// The tasks of a kernel, and its interrupts, as far as they are known: those that wait and make wait most first.
    pub tasks: Vec<TaskBetween>,
    /// Waits by the task that waited and the task that caused it, most waits first.
    pub task_matrix: Vec<TaskMatrix>,
    /// Waits of a kernel's calls, if calls were recorded together with all accesses of the CPUs.
    pub calls_in_windows: Vec<CallsInWindows>,
    /// Locks, the one first for which threads waited longest.
    pub locks: Vec<LockReport>,
    /// Waits in the recorded order if everything lay some bytes further up, as after another header of the heap or
    /// another order of the linker.
    pub placements: Vec<Placement>,
    /// Waits in the recorded order if processors fetched lines of 128 bytes, as those that fetch lines in pairs nearly
    /// do.
    pub in_pairs_of_lines: Waits,
    /// Data that these figures do not cover.
    pub not_seen: NotSeen,
}

/// Data of a type or variable that no thread writes, on lines that threads write. Its readers wait for the line before
/// they use bytes that they share.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BesideHot {
    /// The type or variable.
    pub owner: String,
    /// The lines.
    pub lines: u64,
    /// Waits in the recorded order.
    pub waits: u64,
    /// The same in a thousand accesses of the threads.
    pub per_thousand_accesses: f64,
    /// The data that is only read, by its waits.
    pub read: Vec<NeededData>,
    /// The data whose writes took the line away, by these waits.
    pub written: Vec<NeededData>,
}

/// Named data, and waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NeededData {
    /// Its name.
    pub name: String,
    /// The waits.
    pub waits: u64,
}

/// The units that run side by side.
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

    /// The unit of times.
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
    /// The recorded time of these calls.
    pub time: u64,
    /// The part of this time in which a call of another thread of its process was under way, too.
    pub time_beside_others: u64,
    /// The region that it called most.
    pub region: String,
}

/// Misses on lines that another thread took away, and stores that had to take a line from others.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Waits {
    /// For bytes that another thread wrote or used.
    pub of_same_bytes: u64,
    /// For other bytes of the line: no thread needed the other's bytes.
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
    /// The waits in the recorded order.
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

/// Data that share lines though no thread needs the other's.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FalseSharing {
    /// The types and variables on the lines.
    pub owners: Vec<String>,
    /// Lines.
    pub lines: u64,
    /// Waits on them.
    pub waits: WaitsByOrder,
    /// The accesses in a thousand of the threads' that wait for these lines alone, in the recorded order.
    pub per_thousand_accesses: f64,
    /// The same in the order with the most such waits.
    pub per_thousand_accesses_at_most: f64,
    /// Data that several threads access, or that lie next to data others write: name, threads that read it, threads
    /// that write it.
    pub parts: Vec<PartBetween>,
    /// The change that would part them.
    pub remedy: Remedy,
}

/// The change that parts data of different threads.
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
        /// Bytes of an aligned object.
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
    /// Allocated objects get lines of their own.
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
    /// The data that were accessed on it.
    pub parts: Vec<PartBetween>,
    /// Waits in the recorded order by the code and thread that caused them, most waits first.
    pub pairs: Vec<PairBetween>,
}

/// Bytes of a line that were accessed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct PartBetween {
    /// Their offset in the line.
    pub offset: u64,
    /// Their number.
    pub size_bytes: u64,
    /// Their name.
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
    /// The use that needed it, or had it before.
    pub needed_by: UseOf,
    /// The waits.
    pub waits: Waits,
}

/// Code of a thread that accesses something.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct UseOf {
    /// The thread.
    pub thread: u32,
    /// The function.
    pub function: String,
    /// File and line, if debug information has them.
    pub place: Option<String>,
    /// The accessed data.
    pub part: String,
}

/// A lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LockReport {
    /// Its name.
    pub name: String,
    /// Its implementation.
    pub kind: LockKind,
    /// Address of its word.
    pub address: u64,
    /// The number of times it was taken and given back.
    pub taken: u64,
    /// The time for which threads had it.
    pub held_time: u64,
    /// The longest of these times.
    pub longest_held_time: u64,
    /// The time for which threads asked for it until they got it. Its holder may have been in a call that was not
    /// recorded.
    pub asked_time: u64,
    /// The number of threads that took it.
    pub threads: u64,
    /// The waits of threads for each other.
    pub waits: Vec<LockWait>,
    /// The code that takes it, that first for which others waited longest.
    pub sections: Vec<LockSection>,
    /// Waits for the line on which its word is.
    pub line_waits: Waits,
    /// Data accessed while it is held, on the line of 64 bytes on which its word is.
    pub data_on_its_line: Vec<String>,
    /// Data that came over from another thread's cache while it was held, most waits first. These data travel with the
    /// lock.
    pub needed_while_held: Vec<Needed>,
    /// Its place in an object of a type.
    #[serde(skip)]
    pub within: Option<LockWithin>,
    /// Waits of threads if it lay elsewhere. `None` if they hardly wait for it and its line, or wait more for many
    /// other lines.
    pub places: Option<LockPlaces>,
}

/// A lock in an object of a type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockWithin {
    /// The type.
    pub ty: Ty,
    /// The offset of the lock's word in it.
    pub offset: u64,
    /// Data that mostly its holders use: offset and size.
    pub guards: Vec<(u64, u64)>,
}

/// A number that several threads add to by one instruction, and that none only reads or writes in the recorded calls.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SharedCounter {
    /// Its name.
    pub name: String,
    /// Threads that add to it.
    pub threads: u64,
    /// Waits for its bytes, in the recorded order.
    pub waits: u64,
}

impl Remedy {
    /// More variables than this on the lines are no case for an alignment each.
    pub const MOST_VARIABLES: usize = 16;

    /// Whether `lineup study --allow-growth` has an edit for it. The sources then decide whether the edit can be made.
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
    /// The change that would part its uses, and the reason why no edit is proposed. The name is not part of the
    /// sentence.
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
    /// The waits in the present layout.
    pub as_it_lies: Waits,
    /// With its word alone on a line.
    pub alone: Waits,
    /// On a line with the data most waited for while it is held, and nothing else.
    pub beside: Option<Beside>,
}

impl LockPlaces {
    /// Fewest waits that there are with the lock elsewhere.
    pub fn best(&self) -> u64 {
        let beside = self.beside.as_ref().map(|beside| beside.waits.all());
        beside.into_iter().fold(self.alone.all(), u64::min)
    }

    /// Whether the waits are at least a tenth fewer: otherwise the lock lies well.
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
    /// Its name.
    pub name: String,
    /// Waits for it, in the recorded order.
    pub waits: Waits,
}

impl LockReport {
    /// The time for which threads waited while another had it.
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
    /// The number of waits.
    pub times: u64,
    /// From asking to getting it.
    pub time: u64,
    /// The time of the longest wait.
    pub longest_time: u64,
}

/// Code that takes a lock.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct LockSection {
    /// The function.
    pub function: String,
    /// File and line of its last access before, if debug information has them.
    pub place: Option<String>,
    /// The number of times it took the lock.
    pub taken: u64,
    /// The time for which it had the lock.
    pub held_time: u64,
    /// The time for which others waited meanwhile.
    pub others_waited_time: u64,
}

/// Waits of a thread because of another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Matrix {
    /// The thread whose stores took lines.
    pub taken_by: u32,
    /// The thread that needed them.
    pub needed_by: u32,
    /// The waits in the recorded order.
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
    /// The waits in the recorded order.
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
    /// The calls of the tail.
    pub tail: CallWaits,
    /// The data waited for in either, in the recorded order. Data that the tail's calls wait for more often come first.
    pub data: Vec<WaitedFor>,
}

/// Waits in some calls.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct CallWaits {
    /// The number of calls.
    pub calls: u64,
    /// Waits in all of them.
    pub waits: WaitsByOrder,
}

/// Data that calls waited for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WaitedFor {
    /// Its name.
    pub name: String,
    /// Waits of usual calls.
    pub usual: Waits,
    /// Waits of the tail's.
    pub tail: Waits,
}

/// Waits if everything lay elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Placement {
    /// The distance by which everything lies further up, in bytes.
    pub moved_by_bytes: u64,
    /// Waits in the recorded order.
    pub waits: Waits,
}

/// Data that the figures do not cover.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct NotSeen {
    /// Recorded calls without times, whose order is unknown. Calls inside other recorded calls are not counted.
    pub calls_without_times: u64,
    /// Accesses to shared lines beyond the limit of the replay.
    pub accesses_left_out: u64,
}
