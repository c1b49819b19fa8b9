//! Moving tasks from a busy queue.

use super::decide::{Occupied, Pull};
use crate::scenario::{FULL_POWER, Mechanism};
use crate::sim::arithmetic::mul_div;
use crate::sim::simulation::Sim;
use crate::sim::state::NONE;
use crate::sim::why::Cause;

/// Counts of a pull's work, and the obstacles it met.
struct Budget {
    looked_at: u32,
    moved: u64,
    /// Tasks left alone because they weigh too much, and because they ran a moment ago.
    too_heavy: bool,
    too_hot: bool,
}

/// The two sides of a pull.
#[derive(Clone, Copy)]
struct Route {
    from: usize,
    to: usize,
    level: usize,
    occupied: Occupied,
}

impl Sim<'_> {
    /// Pulls from the fullest queue of the busiest group. Returns whether the pass was credited with any load.
    pub(super) fn act(&mut self, cpu: usize, level: usize, occupied: Occupied, pull: Pull) -> bool {
        let Some(source) = self.fullest_queue(cpu, level, pull) else {
            self.counts_of(occupied).balanced += 1;
            self.settle(cpu, level);
            let cause = if pull.imbalance == 0 { Cause::ImbalanceZero } else { Cause::QueuesSkipped };
            self.note_cause(cpu, level, occupied, cause);
            return false;
        };
        let mut budget = Budget { looked_at: 0, moved: 0, too_heavy: false, too_hot: false };
        let mut credited = 0;
        if self.cpu_loads[source].tasks > 1 {
            let route = Route { from: source, to: cpu, level, occupied };
            credited = self.pull(route, pull.imbalance, &mut budget);
        }
        self.counts_of(occupied).moved += budget.moved;
        if credited > 0 {
            self.pulled(cpu, level, occupied);
            return true;
        }
        if occupied != Occupied::Busy {
            self.why.steps.credit_zero += u64::from(budget.moved > 0);
        }
        self.counts_of(occupied).failed += 1;
        self.note_cause(cpu, level, occupied, failure(&budget, pull.imbalance));
        self.after_failure(cpu, source, level, occupied);
        false
    }

    fn pulled(&mut self, cpu: usize, level: usize, occupied: Occupied) {
        let least = self.least_interval(level);
        let at = self.domain_at(cpu, level);
        let domain = &mut self.domains[at];
        domain.failed = 0;
        domain.interval_ticks = least;
        self.note_cause(cpu, level, occupied, Cause::Pulled);
    }

    /// After enough failures of periodic passes the running task of the source is moved.
    fn after_failure(&mut self, cpu: usize, source: usize, level: usize, occupied: Occupied) {
        if occupied == Occupied::NewlyIdle {
            return;
        }
        let tries = self.nice_tries(level);
        let least = self.least_interval(level);
        let may_push = self.on(Mechanism::Active);
        let at = self.domain_at(cpu, level);
        let domain = &mut self.domains[at];
        domain.failed += 1;
        if domain.failed <= tries + 2 || !may_push {
            domain.interval_ticks = least;
            return;
        }
        domain.failed = tries + 1;
        domain.interval_ticks = (2 * domain.interval_ticks).min(4 * least);
        self.push_running(source, cpu);
    }

    /// Threads of one core share their caches, so moving between them costs no patience.
    fn nice_tries(&self, level: usize) -> u32 {
        if self.scenario.topology.smt && level == 0 { 0 } else { self.scenario.tunables.cache_nice_tries }
    }

    /// The queue with the strictly greatest load per power in the busiest group. Only queues with more than
    /// one task, or with a weight of at most the imbalance, count.
    fn fullest_queue(&self, cpu: usize, level: usize, pull: Pull) -> Option<usize> {
        let span = self.scenario.topology.domains[level];
        let group_span = self.group_span(level);
        let first = cpu / span * span + pull.busiest * group_span;
        let mut fullest = None;
        let mut greatest = 0;
        for other in first..first + group_span {
            let loads = &self.cpu_loads[other];
            let has_capacity = loads.power >= FULL_POWER / 2 || (self.scenario.topology.smt && level == 0);
            if has_capacity && loads.tasks == 1 && loads.weight > pull.imbalance {
                continue;
            }
            let scaled = loads.weight * FULL_POWER / loads.power;
            if scaled > greatest {
                greatest = scaled;
                fullest = Some(other);
            }
        }
        fullest
    }

    /// Moves tasks worth up to `most` load, group by group, again while that was credited with something.
    fn pull(&mut self, route: Route, most: u64, budget: &mut Budget) -> u64 {
        let mut total = 0;
        loop {
            let moved = self.pull_round(route, most - total, budget);
            total += moved;
            let enough = route.occupied == Occupied::NewlyIdle && self.cpu_loads[route.to].tasks > 0;
            if moved == 0 || total >= most || enough {
                return total;
            }
        }
    }

    fn pull_round(&mut self, route: Route, most: u64, budget: &mut Budget) -> u64 {
        self.update_shares_of_load(route.from);
        let mut left = most;
        for group in 0..self.groups.len() {
            let q = self.queue_of(group, route.from);
            let (share, weight) = (self.queues[q].share_of_load, self.queues[q].load);
            if self.queues[q].tasks == 0 {
                continue;
            }
            if route.occupied != Occupied::Busy {
                self.why.steps.hierarchical_load_zero += u64::from(share == 0);
            }
            let here = mul_div(left, weight, share + 1);
            let moved = self.pull_from_queue(q, route, here, budget);
            if moved == 0 {
                continue;
            }
            let credited = mul_div(moved, share, weight + 1);
            if credited > left {
                return most.saturating_add(credited - left);
            }
            left -= credited;
        }
        most - left
    }

    /// Moves waiting tasks of one queue, each if half its weight is within the remaining load. Returns their
    /// weight.
    fn pull_from_queue(&mut self, q: usize, route: Route, most: u64, budget: &mut Budget) -> u64 {
        let Route { to, level, occupied, .. } = route;
        let mut candidates = std::mem::take(&mut self.scratch.candidates);
        self.list_waiting_tasks(q, budget, &mut candidates);
        let failed = self.domains[self.domain_at(to, level)].failed;
        let hot_counts = self.on(Mechanism::CacheHot) && failed <= self.nice_tries(level);
        let mut left = most;
        for &task in &candidates {
            let weight = self.entities[task as usize].load.stored;
            if weight / 2 > left {
                budget.too_heavy = true;
                continue;
            }
            if hot_counts && self.is_hot(task as usize) {
                budget.too_hot = true;
                continue;
            }
            self.migrate(task as usize, to);
            budget.moved += 1;
            left = left.saturating_sub(weight);
            if occupied == Occupied::NewlyIdle || left == 0 {
                break;
            }
        }
        let moved: u64 = candidates
            .iter()
            .filter(|&&task| self.tasks[task as usize].cpu as usize == to)
            .map(|&task| self.entities[task as usize].load.stored)
            .sum();
        self.scratch.candidates = candidates;
        moved
    }

    fn list_waiting_tasks(&self, q: usize, budget: &mut Budget, candidates: &mut Vec<u32>) {
        candidates.clear();
        let mut place = 0;
        while let Some(e) = self.queues[q].waiting.at(place) {
            if budget.looked_at >= self.scenario.tunables.migrate_batch {
                break;
            }
            place += 1;
            if self.entities[e as usize].members == NONE {
                budget.looked_at += 1;
                candidates.push(e);
            }
        }
    }

    fn is_hot(&self, task: usize) -> bool {
        let ran_ns = self.entities[task].exec_start_ns;
        ran_ns > 0 && self.now_ns - ran_ns < self.scenario.tunables.migration_cost_ns
    }

    /// Moves a waiting task to another CPU.
    fn migrate(&mut self, task: usize, to: usize) {
        self.dequeue_task(task, true);
        self.enqueue_task(task, to, false);
        if self.preempts(to, task) {
            self.must_reschedule(to);
        }
    }

    /// Stops the running task of `from` and moves the first movable task, it among them, to `to`.
    fn push_running(&mut self, from: usize, to: usize) {
        if self.cpu_loads[from].tasks <= 1 {
            return;
        }
        if let Some(task) = self.stop_running(from) {
            self.put_previous(task);
        }
        let first = (0..self.groups.len()).find_map(|group| {
            let queue = &self.queues[self.queue_of(group, from)];
            let mut waiting = (0..).map_while(|place| queue.waiting.at(place));
            waiting.find(|&e| self.entities[e as usize].members == NONE)
        });
        if let Some(task) = first {
            self.balance.active_moves += 1;
            self.migrate(task as usize, to);
        }
        self.must_reschedule(from);
    }
}

fn failure(budget: &Budget, imbalance: u64) -> Cause {
    if budget.moved > 0 {
        Cause::Pulled
    } else if budget.too_heavy && imbalance == 0 {
        Cause::ImbalanceZero
    } else if budget.too_heavy {
        Cause::TaskTooHeavy
    } else if budget.too_hot {
        Cause::CacheHot
    } else {
        Cause::NothingWaits
    }
}
