//! The simulation's state: entities, queues, CPUs, groups and tasks, each in one array and referred to by its
//! index.

use super::heap::Heap;
use super::random::Stream;
use crate::scenario::{Clock, Pattern};
use crate::weights::delta::LoadWeight;

/// No entity, queue, task or CPU.
pub(super) const NONE: u32 = u32::MAX;

/// Virtual time starts here rather than at zero, so that a task placed before its queue's time stays positive.
pub(super) const FIRST_VRUNTIME: u64 = 1 << 32;

/// A time that does not come.
pub(super) const NEVER_NS: u64 = u64::MAX;

/// Something a queue schedules: a task, or a group on one CPU. Tasks come first in the array, so a task's
/// entity has the task's index. One cache line: an event's change of a task's place in its queue loads and
/// stores here only.
#[repr(align(64))]
pub(super) struct Entity {
    pub(super) vruntime: u64,
    pub(super) load: LoadWeight,
    pub(super) exec_start_ns: u64,
    pub(super) exec_ns: u64,
    /// `exec_ns` when it was last picked.
    pub(super) exec_at_pick_ns: u64,
    /// The queue it is or was last on.
    pub(super) queue: u32,
    /// The queue of its members, if it is a group.
    pub(super) members: u32,
    pub(super) queued: bool,
}

/// The queue of one group on one CPU, at index `group · cpus + cpu`. Two cache lines, never three.
#[repr(align(64))]
pub(super) struct Queue {
    /// Queued entities except the running one, by virtual time.
    pub(super) waiting: Heap,
    pub(super) min_vruntime: u64,
    /// Sum of the stored weights of all queued entities, the running one among them.
    pub(super) load: u64,
    /// Number of queued entities, the running one among them.
    pub(super) entities: u32,
    /// The number of tasks among these.
    pub(super) tasks: u32,
    /// Queued tasks here and in all groups below.
    pub(super) tasks_below: u32,
    /// The running entity.
    pub(super) current: u32,
    /// This queue's entity in its parent's queue.
    pub(super) entity: u32,
    pub(super) tracking: LoadTracking,
    /// The part of the CPU's load that this queue amounts to; valid within one balancing pass.
    pub(super) share_of_load: u64,
}

/// A queue's load averaged over a sliding window, and the part of it that the group knows.
#[derive(Default)]
pub(super) struct LoadTracking {
    pub(super) sum: u64,
    pub(super) period_ns: u64,
    pub(super) stamp_ns: u64,
    /// When the queue was last seen with a load.
    pub(super) loaded_ns: u64,
    pub(super) contribution: u64,
    pub(super) exec_since_update_ns: u64,
}

/// The data of every CPU that balancing reads, kept together because passes walk it.
#[derive(Clone, Copy, Default)]
pub(super) struct CpuLoad {
    /// The load of the root queue.
    pub(super) weight: u64,
    /// The load as of the last tick, and its average with earlier ones.
    pub(super) history: [u64; 2],
    /// Queued tasks.
    pub(super) tasks: u32,
    pub(super) power: u64,
}

/// The rest of a CPU: one cache line.
#[repr(align(64))]
pub(super) struct Cpu {
    /// The running task.
    pub(super) current: u32,
    /// Since when the running task has run without an interruption.
    pub(super) since_ns: u64,
    /// Counts switches: an event for an earlier one is stale.
    pub(super) switches: u32,
    pub(super) must_reschedule: bool,
    /// When the running task's burst is over, unless that is queued already, and the event's place in order.
    /// Most tasks are preempted first, so only ends within the present tick become events.
    pub(super) burst_end_ns: u64,
    pub(super) burst_order: u64,
    /// When it fell idle, until a task wakes up on it; then [`NEVER_NS`].
    pub(super) idle_stamp_ns: u64,
    pub(super) average_idle_ns: u64,
    pub(super) next_balance_tick: u64,
}

/// A CPU's own view of one of its domains, at index `cpu · levels + level`.
#[derive(Clone, Copy)]
pub(super) struct CpuDomain {
    pub(super) last_balance_tick: u64,
    pub(super) interval_ticks: u64,
    pub(super) failed: u32,
}

/// One group of the scenario. The root is the first; a group comes after its parent.
pub(super) struct GroupState {
    pub(super) parent: u32,
    /// Stored.
    pub(super) shares: u64,
    /// Sum of its queues' published loads.
    pub(super) load: u64,
    pub(super) depth: u32,
    /// Its place among the scenario's groups.
    pub(super) source: Option<usize>,
}

/// A task's present state, pattern and CPU time: one cache line.
#[repr(align(64))]
pub(super) struct Task {
    pub(super) stream: Stream,
    /// Index into the run's patterns.
    pub(super) pattern: u32,
    pub(super) group: u32,
    pub(super) cpu: u32,
    pub(super) activity: Activity,
    /// Next step of a script.
    pub(super) step: u32,
    /// When it became runnable after its last sleep, until it first runs.
    pub(super) woken_ns: Option<u64>,
    /// The CPU time it had had when the warm-up ended.
    pub(super) exec_before_ns: u64,
}

/// A task's position in its pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Activity {
    Sleeping,
    /// Busy until the wall clock says so.
    Until(u64),
    /// Busy until it has had this much CPU time in all.
    UntilExec(u64),
    /// Busy without end.
    Forever,
}

/// A pattern of the scenario, shared by all tasks of a set.
pub(super) struct Behaviour {
    pub(super) pattern: Pattern,
    pub(super) clock: Clock,
    /// The number of its runnable tasks.
    pub(super) runnable: u32,
}

/// Something that happens at a time. Ordered by time, then by the order in which events were made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    pub(super) at_ns: u64,
    pub(super) order: u64,
    pub(super) what: SimEvent,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SimEvent {
    /// A sleep is over.
    Wake { task: u32 },
    /// The running task's burst is over, if the CPU has not switched since.
    BurstEnd { cpu: u32, switches: u32 },
}

const _: () = assert!(size_of::<Entity>() == 64 && size_of::<Task>() == 64);
const _: () = assert!(size_of::<Cpu>() == 64 && size_of::<Queue>() == 128);
