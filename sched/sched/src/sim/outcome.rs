//! The outcome of a run.

use super::account::SECOND_NS;
use super::why::Why;
use serde::Serialize;

/// Measurements of a run, without its warm-up.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Its length in simulated nanoseconds.
    pub time_ns: u64,
    /// Time each CPU was busy.
    pub cpu_busy_ns: Vec<u64>,
    /// Time each task ran, in the order of the scenario's groups, parents before children.
    pub task_ns: Vec<u64>,
    /// CPU time idle in each second; the last may be shorter.
    pub idle_by_second_ns: Vec<u64>,
    /// CPU time idle that a waiting task could have used: at every moment the lesser of the number of idle
    /// CPUs and of waiting tasks.
    pub missed_ns: u64,
    /// The groups, the root first if it has tasks.
    pub groups: Vec<GroupOutcome>,
    /// From the end of a sleep to the first time on a CPU. `None` if no task woke up.
    pub latency: Option<Latency>,
    /// Balancing in numbers.
    pub balance: Balance,
    /// Reasons why CPUs idled while tasks waited.
    pub why: Why,
    /// The number of times a CPU started a task.
    pub switches: u64,
    /// Events handled in the whole run, ticks of every CPU among them.
    pub events: u64,
}

/// CPU time and latencies of one group.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GroupOutcome {
    /// Its name.
    pub name: String,
    /// CPU time its tasks and those of the groups below had.
    pub cpu_ns: u64,
    /// CPU time that an ideal fair scheduler would have given them, sampled at ticks.
    pub ideal_ns: f64,
}

impl GroupOutcome {
    /// The group's surplus over its due, in per cent of it; `None` if nothing was due.
    pub fn error_percent(&self) -> Option<f64> {
        (self.ideal_ns > 0.0).then(|| 100.0 * (self.cpu_ns as f64 / self.ideal_ns - 1.0))
    }
}

/// Quantiles of the time from waking up to running, in nanoseconds, to two significant digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Latency {
    /// The number of wake-ups.
    pub count: u64,
    /// Half are shorter.
    pub p50_ns: u64,
    /// 95 of 100 are shorter.
    pub p95_ns: u64,
    /// 99 of 100 are shorter.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Balancing in numbers, by the state of the CPU that did it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Balance {
    /// On falling idle.
    pub newly_idle: PullCounts,
    /// At intervals, idle.
    pub idle: PullCounts,
    /// At intervals, busy.
    pub busy: PullCounts,
    /// Running tasks moved after repeated failures.
    pub active_moves: u64,
    /// Tasks that woke up on another CPU than they last ran on.
    pub wake_moves: u64,
}

/// Passes over one domain.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct PullCounts {
    /// All of them.
    pub attempts: u64,
    /// Passes that found the domain balanced.
    pub balanced: u64,
    /// Passes that found an imbalance and were credited with nothing.
    pub failed: u64,
    /// Tasks they moved, credited or not.
    pub moved: u64,
}

impl PullCounts {
    fn plus(self, other: Self) -> Self {
        Self {
            attempts: self.attempts + other.attempts,
            balanced: self.balanced + other.balanced,
            failed: self.failed + other.failed,
            moved: self.moved + other.moved,
        }
    }
}

impl Balance {
    /// All passes.
    pub fn total(&self) -> PullCounts {
        self.newly_idle.plus(self.idle).plus(self.busy)
    }
}

impl Outcome {
    /// CPU time there was.
    pub fn capacity_ns(&self) -> u64 {
        self.time_ns * self.cpu_busy_ns.len() as u64
    }

    /// Busy time in per cent of all CPU time.
    pub fn usr_percent(&self) -> f64 {
        self.percent(self.cpu_busy_ns.iter().sum())
    }

    /// Idle time in per cent of all CPU time.
    pub fn idle_percent(&self) -> f64 {
        self.percent(self.idle_by_second_ns.iter().sum())
    }

    /// Idle time that a waiting task could have used, in per cent of all CPU time.
    pub fn missed_percent(&self) -> f64 {
        self.percent(self.missed_ns)
    }

    /// Idle time in per cent, second by second.
    pub fn idle_percent_by_second(&self) -> Vec<f64> {
        let cpus = self.cpu_busy_ns.len() as u64;
        let mut left_ns = self.time_ns;
        let percent = |&idle_ns: &u64| {
            let second_ns = left_ns.min(SECOND_NS);
            left_ns -= second_ns;
            100.0 * idle_ns as f64 / (second_ns * cpus).max(1) as f64
        };
        self.idle_by_second_ns.iter().map(percent).collect()
    }

    fn percent(&self, ns: u64) -> f64 {
        100.0 * ns as f64 / self.capacity_ns() as f64
    }
}
