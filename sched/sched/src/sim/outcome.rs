//! The outcome of a run.

use super::Sim;
use super::account::SECOND_NS;
use super::why::Why;
use crate::scenario::ROOT;
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

impl Sim<'_> {
    pub(super) fn outcome(mut self) -> Outcome {
        self.charge_all();
        self.account.end_partial_second();
        let task_ns: Vec<u64> =
            (0..self.tasks.len()).map(|task| self.exec_ns(task) - self.tasks[task].exec_before_ns).collect();
        let groups = self.group_outcomes(&task_ns);
        let events = self.made_events + self.tick * self.cpus.len() as u64;
        let latency_ns = &self.account.latency_ns;
        let latency = (!latency_ns.is_empty()).then(|| Latency {
            count: latency_ns.len(),
            p50_ns: latency_ns.value_at_quantile(0.5),
            p95_ns: latency_ns.value_at_quantile(0.95),
            p99_ns: latency_ns.value_at_quantile(0.99),
            max_ns: latency_ns.max(),
        });
        Outcome {
            time_ns: self.scenario.time_ns,
            groups,
            latency,
            balance: self.balance,
            why: self.why.finished(),
            switches: self.account.switches,
            events,
            cpu_busy_ns: self.account.cpu_busy_ns,
            task_ns,
            idle_by_second_ns: self.account.idle_by_second_ns,
            missed_ns: self.account.missed_ns,
        }
    }

    fn group_outcomes(&self, task_ns: &[u64]) -> Vec<GroupOutcome> {
        let mut cpu_ns = vec![0; self.groups.len()];
        for (task, ran_ns) in self.tasks.iter().zip(task_ns) {
            cpu_ns[task.group as usize] += ran_ns;
        }
        for group in (1..self.groups.len()).rev() {
            cpu_ns[self.groups[group].parent as usize] += cpu_ns[group];
        }
        let named = |group: usize| GroupOutcome {
            name: self.group_name(group),
            cpu_ns: cpu_ns[group],
            ideal_ns: self.ideal.group_ns[group],
        };
        (1..self.groups.len()).map(named).collect()
    }

    fn group_name(&self, group: usize) -> String {
        self.groups[group].source.map_or_else(|| ROOT.to_string(), |at| self.scenario.groups[at].name.clone())
    }
}
