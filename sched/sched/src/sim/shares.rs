//! A group's weight on each CPU: its shares, divided among the CPUs by its load on each.

use super::arithmetic::mul_div;
use super::simulation::Sim;
use super::state::NONE;
use crate::scenario::Mechanism;
use crate::weights::MIN_SHARES;

impl Sim<'_> {
    /// Brings the averaged load of queue `q` up to now, and publishes it to the group if it changed by more
    /// than an eighth, or if `always` is set.
    pub(super) fn update_tracking(&mut self, q: usize, always: bool) {
        if self.queues[q].entity == NONE {
            return;
        }
        let window_ns = self.scenario.tunables.shares_window_ns;
        let queue = &mut self.queues[q];
        let load = queue.load;
        let tracking = &mut queue.tracking;
        let mut delta_ns = self.now_ns - tracking.stamp_ns;
        let slept =
            tracking.stamp_ns > tracking.loaded_ns && self.now_ns - tracking.loaded_ns > 4 * window_ns;
        if load > 0 && slept {
            tracking.period_ns = 0;
            tracking.sum = 0;
            delta_ns = window_ns - 1;
        }
        tracking.stamp_ns = self.now_ns;
        tracking.exec_since_update_ns = 0;
        tracking.period_ns += delta_ns;
        if load > 0 {
            tracking.loaded_ns = self.now_ns;
            tracking.sum = tracking.sum.saturating_add(delta_ns.saturating_mul(load));
        }
        if always || tracking.period_ns > window_ns || tracking.period_ns == 0 {
            self.publish(q, always);
        }
        let tracking = &mut self.queues[q].tracking;
        while tracking.period_ns > window_ns {
            tracking.period_ns /= 2;
            tracking.sum /= 2;
        }
    }

    fn publish(&mut self, q: usize, always: bool) {
        let group = self.group_of_queue(q);
        let tracking = &mut self.queues[q].tracking;
        let average = tracking.sum / (tracking.period_ns + 1);
        if always || average.abs_diff(tracking.contribution) > tracking.contribution / 8 {
            self.groups[group].load = self.groups[group].load - tracking.contribution + average;
            tracking.contribution = average;
        }
    }

    /// Recomputes the weight of the group of queue `q` on its CPU.
    pub(super) fn update_shares(&mut self, q: usize) {
        let queue = &self.queues[q];
        if queue.entity == NONE {
            return;
        }
        let group = &self.groups[self.group_of_queue(q)];
        let total = group.load - queue.tracking.contribution + queue.load;
        let mut stored = group.shares * queue.load / total.max(1);
        if stored < MIN_SHARES && self.on(Mechanism::Floor) {
            self.why.steps.weight_floored += u64::from(queue.load > 0 && stored < MIN_SHARES);
            stored = MIN_SHARES;
        }
        if stored > group.shares && self.on(Mechanism::Cap) {
            stored = group.shares;
        }
        self.reweight(queue.entity as usize, stored);
    }

    /// Brings all groups' weights on `cpu` up to now, as balancing does before it looks, innermost first.
    pub(super) fn update_all_shares(&mut self, cpu: usize) {
        for group in (1..self.groups.len()).rev() {
            let q = self.queue_of(group, cpu);
            let idle = self.queues[q].entities == 0 && self.queues[q].tracking.contribution == 0;
            if !idle {
                self.update_tracking(q, true);
                self.update_shares(q);
            }
        }
    }

    /// Updates the part of the CPU's load that each group's queue amounts to, from the root down.
    pub(super) fn update_shares_of_load(&mut self, cpu: usize) {
        self.queues[cpu].share_of_load = self.queues[cpu].load;
        for group in 1..self.groups.len() {
            let q = self.queue_of(group, cpu);
            let parent = &self.queues[self.queue_of(self.groups[group].parent as usize, cpu)];
            let stored = self.entities[self.queues[q].entity as usize].load.stored;
            let share = mul_div(parent.share_of_load, stored, parent.load + 1);
            self.queues[q].share_of_load = share;
        }
    }
}
