//! The outcome of a simulation at its end.

use super::outcome::{GroupOutcome, Latency, Outcome};
use super::simulation::Sim;
use crate::scenario::ROOT;

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
