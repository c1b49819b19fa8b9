//! Passes over domains: when a CPU makes one, and what it counts.

use super::decide::{self, GroupCount, Occupied, Rules};
use crate::scenario::Mechanism;
use crate::sim::outcome::PullCounts;
use crate::sim::simulation::Sim;
use crate::sim::state::{NEVER_NS, NONE};
use crate::sim::why::Cause;

impl Sim<'_> {
    /// A CPU has just run out of tasks: it tries to pull some, domain by domain.
    pub(in crate::sim) fn fall_idle(&mut self, cpu: usize) {
        self.cpus[cpu].idle_stamp_ns = self.now_ns;
        if !self.on(Mechanism::NewlyIdle) {
            return;
        }
        let gate_ns = self.scenario.tunables.migration_cost_ns;
        if self.on(Mechanism::NewlyIdleGate) && self.cpus[cpu].average_idle_ns < gate_ns {
            self.set_cause(cpu, Cause::Gated);
            return;
        }
        self.update_all_shares(cpu);
        let mut next_tick = self.tick + self.scenario.tunables.hz;
        for level in 0..self.scenario.topology.domains.len() {
            if self.scenario.topology.domains[level] > self.scenario.tunables.newly_idle_span_cpus {
                break;
            }
            if self.balance_domain(cpu, level, Occupied::NewlyIdle) == Some(true) {
                self.cpus[cpu].idle_stamp_ns = NEVER_NS;
                self.cpus[cpu].next_balance_tick = next_tick;
                return;
            }
            let domain = &self.domains[self.domain_at(cpu, level)];
            next_tick = next_tick.min(domain.last_balance_tick + domain.interval_ticks);
        }
        if self.tick > self.cpus[cpu].next_balance_tick {
            self.cpus[cpu].next_balance_tick = next_tick;
        }
    }

    /// Balancing at a tick of `cpu`: of itself if it is due, and, where idle CPUs have no tick, of one of
    /// them on behalf of all.
    pub(in crate::sim) fn balance_at_tick(&mut self, cpu: usize) {
        if !self.on(Mechanism::Periodic) {
            return;
        }
        let busy = self.cpus[cpu].current != NONE;
        let nohz = self.on(Mechanism::Nohz);
        let due = self.tick >= self.cpus[cpu].next_balance_tick;
        if due && busy {
            self.balance_all_domains(cpu, Occupied::Busy);
        } else if due && !nohz && self.on(Mechanism::IdlePull) && self.is_idle(cpu) {
            self.balance_all_domains(cpu, Occupied::Idle);
        }
        if busy
            && nohz
            && self.on(Mechanism::IdlePull)
            && self.tick >= self.next_kick_tick
            && self.cpu_loads[cpu].tasks > 1
        {
            self.balance_for_idle();
        }
    }

    /// The first idle CPU balances for itself, then for the other idle ones until it has work itself.
    fn balance_for_idle(&mut self) {
        let mut next_tick = self.tick + self.scenario.tunables.hz;
        let mut balancer = None;
        for word in 0..self.idle.len() {
            let mut left = self.idle[word];
            while left != 0 {
                let cpu = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                if !self.is_idle(cpu) {
                    continue;
                }
                let first = *balancer.get_or_insert(cpu);
                if cpu != first && !self.is_idle(first) {
                    self.next_kick_tick = self.tick + 1;
                    return;
                }
                self.balance_all_domains(cpu, Occupied::Idle);
                next_tick = next_tick.min(self.cpus[cpu].next_balance_tick);
            }
        }
        self.next_kick_tick = if balancer.is_some() { next_tick.max(self.tick + 1) } else { self.tick + 1 };
    }

    fn balance_all_domains(&mut self, cpu: usize, mut occupied: Occupied) {
        self.update_all_shares(cpu);
        let hz = self.scenario.tunables.hz;
        let mut next_tick = self.tick + 60 * hz;
        for level in 0..self.scenario.topology.domains.len() {
            let at = self.domain_at(cpu, level);
            let domain = self.domains[at];
            let longer = if occupied == Occupied::Idle { 1 } else { self.scenario.tunables.busy_factor };
            let interval = (domain.interval_ticks * longer).max(1);
            let mut may_go_on = true;
            let mut due = domain.last_balance_tick + interval;
            if self.tick >= due {
                match self.balance_domain(cpu, level, occupied) {
                    Some(true) => occupied = Occupied::Busy,
                    Some(false) => {}
                    None => may_go_on = false,
                }
                self.domains[at].last_balance_tick = self.tick;
                due = self.tick + interval;
            }
            next_tick = next_tick.min(due);
            if !may_go_on {
                break;
            }
        }
        self.cpus[cpu].next_balance_tick = next_tick;
    }

    /// One pass of `cpu` over its domain of a level. `None` if another CPU does that for it; else whether it
    /// was credited with a pull.
    fn balance_domain(&mut self, cpu: usize, level: usize, occupied: Occupied) -> Option<bool> {
        if occupied != Occupied::NewlyIdle && self.designated(cpu, level) != cpu {
            self.note_cause(cpu, level, occupied, Cause::OtherBalances);
            return None;
        }
        self.counts_of(occupied).attempts += 1;
        let rules = self.rules(cpu, level, occupied);
        let mut counts = std::mem::take(&mut self.scratch.counts);
        let local = self.count_groups(cpu, level, occupied, &mut counts);
        let mut steps = self.why.steps;
        let decision = decide::decide(&counts, local, &rules, &mut steps);
        self.scratch.counts = counts;
        if occupied != Occupied::Busy {
            self.why.steps = steps;
        }
        match decision {
            Ok(pull) => Some(self.act(cpu, level, occupied, pull)),
            Err(cause) => {
                self.counts_of(occupied).balanced += 1;
                self.settle(cpu, level);
                self.note_cause(cpu, level, occupied, cause);
                Some(false)
            }
        }
    }

    pub(in crate::sim) fn domain_at(&self, cpu: usize, level: usize) -> usize {
        cpu * self.scenario.topology.domains.len() + level
    }

    /// The domain is balanced: look less often.
    pub(super) fn settle(&mut self, cpu: usize, level: usize) {
        let longest = 4 * self.least_interval(level);
        let at = self.domain_at(cpu, level);
        let domain = &mut self.domains[at];
        domain.failed = 0;
        if domain.interval_ticks < longest {
            domain.interval_ticks *= 2;
        }
    }

    /// The least number of ticks between passes over a domain of this level: a millisecond for up to 16 CPUs,
    /// and more in proportion, so that a CPU's time for balancing does not depend on the machine's size.
    pub(super) fn least_interval(&self, level: usize) -> u64 {
        let ms = (self.scenario.topology.domains[level] as u64 / 16).max(1);
        (ms * self.scenario.tunables.hz / 1000).max(1)
    }

    /// The CPUs of a group of this level: one CPU at the lowest, else a domain of the level below.
    pub(super) fn group_span(&self, level: usize) -> usize {
        if level == 0 { 1 } else { self.scenario.topology.domains[level - 1] }
    }

    /// The CPU that balances a domain on behalf of the group of `cpu`: its first idle one, else its first.
    fn designated(&self, cpu: usize, level: usize) -> usize {
        let span = self.group_span(level);
        let first = cpu / span * span;
        (first..first + span).find(|&other| self.is_idle(other)).unwrap_or(first)
    }

    fn rules(&self, cpu: usize, level: usize, occupied: Occupied) -> Rules {
        let percents = &self.scenario.tunables.imbalance_percent;
        let loads = &self.cpu_loads[cpu];
        // Without shared threads, the lowest level is of whole CPUs.
        let place = level + usize::from(!self.scenario.topology.smt);
        Rules {
            occupied,
            imbalance_percent: percents[place.min(percents.len() - 1)],
            bits: self.scenario.resolution.bits(),
            threads: self.scenario.topology.smt && level == 0,
            prefer_sibling: level > 0 && self.on(Mechanism::PreferSibling),
            own_load_per_task: loads.weight.checked_div(u64::from(loads.tasks)).unwrap_or(0),
        }
    }

    /// Counts every group of the domain. Returns the place of the one that `cpu` is in.
    fn count_groups(
        &self,
        cpu: usize,
        level: usize,
        occupied: Occupied,
        counts: &mut Vec<GroupCount>,
    ) -> usize {
        let span = self.scenario.topology.domains[level];
        let group_span = self.group_span(level);
        let start = cpu / span * span;
        let local = (cpu - start) / group_span;
        let history = self.history_index(level, occupied);
        counts.clear();
        for group in 0..span / group_span {
            let first = start + group * group_span;
            let mut count = GroupCount { least_load: u64::MAX, ..GroupCount::default() };
            for loads in &self.cpu_loads[first..first + group_span] {
                let past = history.map_or(loads.weight, |index| loads.history[index]);
                let load = if group == local { past.max(loads.weight) } else { past.min(loads.weight) };
                count.load += load;
                count.weight += loads.weight;
                count.tasks += u64::from(loads.tasks);
                count.idle_cpus += u64::from(loads.tasks == 0);
                count.cpus += 1;
                count.power += loads.power;
                count.greatest_load = count.greatest_load.max(load);
                count.least_load = count.least_load.min(load);
                count.most_tasks = count.most_tasks.max(u64::from(loads.tasks));
            }
            counts.push(count);
        }
        local
    }

    /// The index of the past load that a pass looks at, if any.
    fn history_index(&self, level: usize, occupied: Occupied) -> Option<usize> {
        let threads = self.scenario.topology.smt && level == 0;
        if threads || !self.on(Mechanism::History) {
            return None;
        }
        match occupied {
            Occupied::NewlyIdle => None,
            Occupied::Idle => Some(0),
            Occupied::Busy => Some(1),
        }
    }

    pub(super) fn counts_of(&mut self, occupied: Occupied) -> &mut PullCounts {
        match occupied {
            Occupied::NewlyIdle => &mut self.balance.newly_idle,
            Occupied::Idle => &mut self.balance.idle,
            Occupied::Busy => &mut self.balance.busy,
        }
    }

    /// Remembers why an idle CPU stays idle, if its domain has a task it might have had.
    pub(super) fn note_cause(&mut self, cpu: usize, level: usize, occupied: Occupied, cause: Cause) {
        if occupied == Occupied::Busy || !self.account.some_waits() {
            return;
        }
        let span = self.scenario.topology.domains[level];
        let start = cpu / span * span;
        if self.cpu_loads[start..start + span].iter().any(|loads| loads.tasks > 1) {
            self.set_cause(cpu, cause);
        }
    }
}
