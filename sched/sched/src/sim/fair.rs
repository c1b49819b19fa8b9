//! One CPU's queues: virtual time, the choice of the next task, and the end of its turn.

use super::simulation::Sim;
use super::state::{Entity, NONE};
use crate::scenario::Mechanism;
use crate::weights::delta::LoadWeight;

impl Sim<'_> {
    /// A span of real time as virtual time of an entity with this weight.
    fn virtual_ns(&self, delta_ns: u64, load: LoadWeight) -> u64 {
        if load.stored == self.nice_0 {
            return delta_ns;
        }
        self.scenario.arithmetic.apply(delta_ns, self.nice_0, load, self.scenario.resolution)
    }

    pub(super) fn load_weight(&self, stored: u64) -> LoadWeight {
        self.scenario.arithmetic.load_weight(stored, self.scenario.resolution)
    }

    /// Charges the running entity of queue `q` for its time since it was last charged.
    pub(super) fn update_current(&mut self, q: usize) {
        let current = self.queues[q].current;
        if current == NONE {
            return;
        }
        let Entity { exec_start_ns, load, .. } = self.entities[current as usize];
        let delta_ns = self.now_ns - exec_start_ns;
        if delta_ns == 0 {
            return;
        }
        let virtual_ns = self.virtual_ns(delta_ns, load);
        let entity = &mut self.entities[current as usize];
        entity.exec_ns += delta_ns;
        entity.vruntime = entity.vruntime.wrapping_add(virtual_ns);
        entity.exec_start_ns = self.now_ns;
        self.queues[q].tracking.exec_since_update_ns += delta_ns;
        self.update_min_vruntime(q);
    }

    /// The queue's own time: that of the entity furthest behind, but never going back.
    fn update_min_vruntime(&mut self, q: usize) {
        let queue = &self.queues[q];
        let current = (queue.current != NONE).then(|| self.entities[queue.current as usize].vruntime);
        let first = queue.waiting.first_key();
        let least = match (current, first) {
            (Some(current), Some(first)) => current.min(first),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => return,
        };
        self.queues[q].min_vruntime = queue.min_vruntime.max(least);
    }

    /// Sets the load of queue `q`, keeping the copy that balancing reads.
    fn set_load(&mut self, q: usize, load: u64) {
        self.queues[q].load = load;
        if let Some(cpu) = self.cpu_loads.get_mut(q) {
            cpu.weight = load;
        }
    }

    pub(super) fn reweight(&mut self, e: usize, stored: u64) {
        let old = self.entities[e].load.stored;
        if old == stored {
            return;
        }
        if self.entities[e].queued {
            let q = self.entities[e].queue as usize;
            if self.queues[q].current == e as u32 {
                self.update_current(q);
            }
            self.set_load(q, self.queues[q].load - old + stored);
        }
        self.entities[e].load = self.load_weight(stored);
    }

    fn enqueue_entity(&mut self, e: usize, woken: bool, relative: bool) {
        let q = self.entities[e].queue as usize;
        if relative {
            let entity = &mut self.entities[e];
            entity.vruntime = entity.vruntime.wrapping_add(self.queues[q].min_vruntime);
        }
        self.update_current(q);
        self.update_tracking(q, false);
        self.set_load(q, self.queues[q].load + self.entities[e].load.stored);
        self.queues[q].entities += 1;
        self.queues[q].tasks += u32::from(self.entities[e].members == NONE);
        self.update_shares(q);
        if woken {
            self.place_woken(q, e);
        }
        self.entities[e].queued = true;
        if self.queues[q].current != e as u32 {
            self.queues[q].waiting.insert(self.entities[e].vruntime, e as u32);
        }
    }

    /// A woken entity starts at its queue's time, less some credit for having slept, unless it is ahead.
    fn place_woken(&mut self, q: usize, e: usize) {
        let credit =
            if self.on(Mechanism::SleeperCredit) { self.scenario.tunables.latency_ns / 2 } else { 0 };
        let start = self.queues[q].min_vruntime.saturating_sub(credit);
        let entity = &mut self.entities[e];
        // The sign of a difference of wrapped times gives their order.
        if (entity.vruntime.wrapping_sub(start) as i64) < 0 {
            entity.vruntime = start;
        }
    }

    fn dequeue_entity(&mut self, e: usize, relative: bool) {
        let q = self.entities[e].queue as usize;
        self.update_current(q);
        if self.queues[q].current != e as u32 {
            self.queues[q].waiting.remove(e as u32);
        }
        self.entities[e].queued = false;
        self.update_tracking(q, false);
        self.set_load(q, self.queues[q].load - self.entities[e].load.stored);
        self.queues[q].entities -= 1;
        self.queues[q].tasks -= u32::from(self.entities[e].members == NONE);
        self.update_min_vruntime(q);
        self.update_shares(q);
        if relative {
            let entity = &mut self.entities[e];
            entity.vruntime = entity.vruntime.wrapping_sub(self.queues[q].min_vruntime);
        }
    }

    /// Puts a task, whose virtual time is relative to its queue's, on its group's queue on `cpu`, and groups
    /// that were empty there on theirs.
    pub(super) fn enqueue_task(&mut self, task: usize, cpu: usize, woken: bool) {
        self.tasks[task].cpu = cpu as u32;
        let q = self.queue_of(self.tasks[task].group as usize, cpu);
        self.entities[task].queue = q as u32;
        self.cpu_loads[cpu].tasks += 1;
        self.enqueue_entity(task, woken, true);
        let mut e = self.queues[q].entity;
        self.queues[q].tasks_below += 1;
        let mut climbing = true;
        while e != NONE {
            let q = self.entities[e as usize].queue as usize;
            self.queues[q].tasks_below += 1;
            climbing &= !self.entities[e as usize].queued;
            if climbing {
                self.enqueue_entity(e as usize, true, false);
            } else {
                self.update_tracking(q, false);
                self.update_shares(q);
            }
            e = self.queues[q].entity;
        }
    }

    /// Takes a task off its queue, and groups that become empty off theirs. `relative` makes its virtual time
    /// relative to the queue it leaves.
    pub(super) fn dequeue_task(&mut self, task: usize, relative: bool) {
        self.cpu_loads[self.tasks[task].cpu as usize].tasks -= 1;
        self.dequeue_entity(task, relative);
        let q = self.entities[task].queue as usize;
        self.queues[q].tasks_below -= 1;
        let mut emptied = self.queues[q].entities == 0;
        let mut e = self.queues[q].entity;
        while e != NONE {
            let q = self.entities[e as usize].queue as usize;
            self.queues[q].tasks_below -= 1;
            if emptied {
                self.dequeue_entity(e as usize, false);
                emptied = self.queues[q].entities == 0;
            } else {
                self.update_tracking(q, false);
                self.update_shares(q);
            }
            e = self.queues[q].entity;
        }
    }

    /// Returns the running task and its groups to the waiting, where they are still queued.
    pub(super) fn put_previous(&mut self, task: usize) {
        let mut e = task as u32;
        while e != NONE {
            let q = self.entities[e as usize].queue as usize;
            if self.entities[e as usize].queued {
                self.update_current(q);
                self.queues[q].waiting.insert(self.entities[e as usize].vruntime, e);
            }
            self.queues[q].current = NONE;
            e = self.queues[q].entity;
        }
    }

    /// The task furthest behind in virtual time, group by group from the root.
    pub(super) fn pick_next(&mut self, cpu: usize) -> Option<usize> {
        let mut q = cpu;
        loop {
            let (_, e) = self.queues[q].waiting.first()?;
            self.queues[q].waiting.remove(e);
            self.queues[q].current = e;
            let entity = &mut self.entities[e as usize];
            entity.exec_start_ns = self.now_ns;
            entity.exec_at_pick_ns = entity.exec_ns;
            if entity.members == NONE {
                return Some(e as usize);
            }
            q = entity.members as usize;
        }
    }

    /// The effect of a tick on the running task of `cpu`.
    pub(super) fn tick_current(&mut self, cpu: usize, task: usize) {
        let mut e = task as u32;
        while e != NONE {
            let q = self.entities[e as usize].queue as usize;
            self.update_current(q);
            if self.queues[q].tracking.exec_since_update_ns > self.scenario.tunables.shares_window_ns {
                self.update_tracking(q, false);
                self.update_shares(q);
            }
            if self.queues[q].entities > 1 && self.has_run_enough(q, e as usize) {
                self.cpus[cpu].must_reschedule = true;
            }
            e = self.queues[q].entity;
        }
    }

    /// Whether the running entity of `q` has had its slice, or is ahead of the first waiting one by more.
    fn has_run_enough(&self, q: usize, e: usize) -> bool {
        let entity = &self.entities[e];
        let slice_ns = self.slice_ns(e);
        let ran_ns = entity.exec_ns - entity.exec_at_pick_ns;
        if ran_ns > slice_ns {
            return true;
        }
        if ran_ns < self.scenario.tunables.min_granularity_ns {
            return false;
        }
        let ahead = |first: u64| entity.vruntime.saturating_sub(first) > slice_ns;
        self.queues[q].waiting.first_key().is_some_and(ahead)
    }

    /// The entity's part of a period in which every entity of its queue runs once, and of its group's part of
    /// theirs.
    fn slice_ns(&self, e: usize) -> u64 {
        let tunables = &self.scenario.tunables;
        let q = self.entities[e].queue as usize;
        let long_enough = u64::from(self.queues[q].entities) * tunables.min_granularity_ns;
        let mut slice_ns = tunables.latency_ns.max(long_enough);
        let mut e = e as u32;
        while e != NONE {
            let entity = &self.entities[e as usize];
            let queue = &self.queues[entity.queue as usize];
            let over = self.load_weight(queue.load);
            let stored = entity.load.stored;
            slice_ns = self.scenario.arithmetic.apply(slice_ns, stored, over, self.scenario.resolution);
            e = queue.entity;
        }
        slice_ns
    }

    /// Whether `task`, just queued on `cpu`, takes over from the running task: where their ancestors share a
    /// queue, it must be behind by more than the granularity in its own virtual time.
    pub(super) fn preempts(&mut self, cpu: usize, task: usize) -> bool {
        let current = self.cpus[cpu].current;
        if current == NONE {
            return true;
        }
        if !self.on(Mechanism::WakePreempt) {
            return false;
        }
        let (mut ours, mut theirs) = (task, current as usize);
        while self.entities[ours].queue != self.entities[theirs].queue {
            let (depth, other) = (self.depth(ours), self.depth(theirs));
            if depth >= other {
                ours = self.queues[self.entities[ours].queue as usize].entity as usize;
            }
            if other >= depth {
                theirs = self.queues[self.entities[theirs].queue as usize].entity as usize;
            }
        }
        self.update_current(self.entities[ours].queue as usize);
        let behind = self.entities[theirs].vruntime.saturating_sub(self.entities[ours].vruntime);
        let granularity_ns = self.scenario.tunables.wakeup_granularity_ns;
        behind > 0 && behind > self.virtual_ns(granularity_ns, self.entities[ours].load)
    }

    fn depth(&self, e: usize) -> u32 {
        self.groups[self.group_of_queue(self.entities[e].queue as usize)].depth
    }
}
