//! The simulated scenario: CPUs and their domains, groups and their tasks, and the active mechanisms.

mod check;
mod file;
mod mechanism;
mod text;

pub use file::parse_file;
pub use mechanism::{Mechanism, Mechanisms};
pub use text::{parse_domains, parse_duration_ns, parse_group, parse_span};

use crate::weights::Resolution;
use crate::weights::delta::Form;

/// The name of the group that holds all others, and the tasks that belong to none.
pub const ROOT: &str = "/";

/// Everything a run depends on, except its seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// The machine.
    pub topology: Topology,
    /// The groups. Tasks outside any group are in an entry named [`ROOT`].
    pub groups: Vec<Group>,
    /// Resolution of the stored weights.
    pub resolution: Resolution,
    /// The form of weighted deltas.
    pub arithmetic: Form,
    /// The active mechanisms.
    pub mechanisms: Mechanisms,
    /// The scheduler's settings.
    pub tunables: Tunables,
    /// Length of the measured part of the run, in simulated nanoseconds.
    pub time_ns: u64,
    /// Length of the run before measuring starts, in simulated nanoseconds.
    pub warmup_ns: u64,
}

/// CPUs and the nested domains that balancing walks, smallest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// The number of CPUs.
    pub cpus: usize,
    /// The number of CPUs in one domain of each level. Each divides the next; the last is `cpus`.
    pub domains: Vec<usize>,
    /// Whether the CPUs of a smallest domain are threads of one core, which together have
    /// [`Tunables::smt_core_power`] rather than [`FULL_POWER`] each.
    pub smt: bool,
}

/// The compute power of one whole CPU.
pub const FULL_POWER: u64 = 1024;

impl Topology {
    /// A topology whose smallest domain is taken for the threads of a core if it has two CPUs and a larger
    /// domain exists. A last level that spans all CPUs is added if it is missing.
    pub fn new(cpus: usize, domains: &[usize]) -> Self {
        let mut domains = domains.to_vec();
        if domains.last() != Some(&cpus) && cpus > 1 {
            domains.push(cpus);
        }
        let smt = domains.first() == Some(&2) && domains.len() > 1;
        Self { cpus, domains, smt }
    }
}

/// A group of tasks with one weight among its siblings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// The group's name, unique in the scenario.
    pub name: String,
    /// The group it is in; [`ROOT`] for the top level.
    pub parent: String,
    /// Its weight among its siblings, in the unit of the nice table (`cpu.shares`).
    pub shares: u64,
    /// Its tasks.
    pub tasks: Vec<TaskSet>,
}

/// Tasks that behave alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskSet {
    /// The number of tasks.
    pub count: usize,
    /// Their nice value.
    pub nice: i8,
    /// The tasks' behaviour.
    pub pattern: Pattern,
    /// The measure of a burst's length.
    pub clock: Clock,
}

/// A task's behaviour, repeated: be busy, then sleep.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Random lengths, sampled afresh for every burst and every sleep.
    Random {
        /// Length of a burst.
        busy: Span,
        /// Length of a sleep.
        sleep: Span,
    },
    /// Busy and sleep lengths in nanoseconds, in turn, repeated from the first after the last.
    Script(Vec<(u64, u64)>),
    /// Busy without end.
    Always,
}

/// The measure of a burst's length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Clock {
    /// Wall-clock time, as in a loop that spins until a deadline: the burst's time passes while the task
    /// waits for a CPU.
    #[default]
    Wall,
    /// Time on a CPU: a fixed amount of work.
    Cpu,
    /// Time on the wall clock, sleeps too: a task that notices the end of its burst late sleeps less. So the
    /// times at which it wants to run do not depend on the scheduler at all.
    Timetable,
}

/// A length of time, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span {
    /// Always the same.
    Fixed(u64),
    /// Any length from `low` to `high`, both included, equally likely.
    Uniform {
        /// The least.
        low: u64,
        /// The greatest.
        high: u64,
    },
}

impl Span {
    /// Uniform from zero to twice `mean_ns`.
    pub const fn around(mean_ns: u64) -> Self {
        Self::Uniform { low: 0, high: mean_ns.saturating_mul(2) }
    }

    /// The greatest length it can have.
    pub const fn greatest_ns(self) -> u64 {
        match self {
            Self::Fixed(ns) => ns,
            Self::Uniform { high, .. } => high,
        }
    }
}

/// The scheduler's settings. [`Tunables::for_cpus`] gives the choices of the 2011 scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tunables {
    /// Timer interrupts per second.
    pub hz: u64,
    /// The period in which every runnable task runs once, if it is long enough for all.
    pub latency_ns: u64,
    /// The least time a task runs before another of its queue may take over at a tick.
    pub min_granularity_ns: u64,
    /// The least lag of a woken task behind the running one with which it takes over.
    pub wakeup_granularity_ns: u64,
    /// A task that ran less than this ago is cache-hot and not moved; a CPU whose idle spans are shorter on
    /// average does not try to pull when it falls idle.
    pub migration_cost_ns: u64,
    /// The window over which a group's load on a CPU is averaged.
    pub shares_window_ns: u64,
    /// The imbalance of a busy CPU's domain from which on it pulls, in per cent, by level: the smallest
    /// domain's first; the last counts for all further ones.
    pub imbalance_percent: Vec<u64>,
    /// Failures to pull that are tolerated before a running task is moved, less two.
    pub cache_nice_tries: u32,
    /// The most tasks one balancing pass looks at.
    pub migrate_batch: u32,
    /// The power of a core whose threads share it, against [`FULL_POWER`] of a whole CPU.
    pub smt_core_power: u64,
    /// The factor by which a busy CPU waits longer between balancing passes.
    pub busy_factor: u64,
    /// The largest domain, in CPUs, that a CPU searches when it falls idle.
    pub newly_idle_span_cpus: usize,
    /// Cost of a task that only looks at the clock and finds that its burst is over.
    pub clock_check_ns: u64,
}

impl Tunables {
    /// The settings for `cpus` CPUs: the three granularities grow with the logarithm of the number of CPUs,
    /// up to eight.
    pub fn for_cpus(cpus: usize) -> Self {
        let factor = 1 + u64::from(cpus.clamp(1, 8).ilog2());
        Self {
            hz: 1000,
            latency_ns: 6_000_000 * factor,
            min_granularity_ns: 750_000 * factor,
            wakeup_granularity_ns: 1_000_000 * factor,
            migration_cost_ns: 500_000,
            shares_window_ns: 10_000_000,
            imbalance_percent: vec![110, 117, 125],
            cache_nice_tries: 1,
            migrate_batch: 32,
            smt_core_power: 1178,
            busy_factor: 64,
            newly_idle_span_cpus: 64,
            clock_check_ns: 1_000,
        }
    }
}

impl Scenario {
    /// An empty machine with the 2011 defaults, 60 measured seconds after one second of warm-up.
    pub fn new(topology: Topology) -> Self {
        let tunables = Tunables::for_cpus(topology.cpus);
        Self {
            topology,
            groups: Vec::new(),
            resolution: Resolution::NONE,
            arithmetic: Form::Scaled,
            mechanisms: Mechanisms::default(),
            tunables,
            time_ns: 60_000_000_000,
            warmup_ns: 1_000_000_000,
        }
    }

    /// The number of tasks, as far as it can be counted.
    pub fn tasks(&self) -> usize {
        self.groups
            .iter()
            .flat_map(|group| &group.tasks)
            .fold(0, |sum, tasks| sum.saturating_add(tasks.count))
    }
}
