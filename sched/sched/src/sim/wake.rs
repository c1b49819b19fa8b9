//! The tasks' behaviour, and the choice of the CPU where they wake up.

use super::simulation::Sim;
use super::state::{Activity, NEVER_NS, NONE};
use crate::scenario::{Clock, Mechanism, Pattern};

impl Sim<'_> {
    /// The end of a task's sleep: its timer fires on the CPU it last ran on.
    pub(super) fn wake(&mut self, task: usize) {
        self.tasks[task].activity = self.draw_burst(task);
        self.tasks[task].woken_ns = Some(self.now_ns);
        self.count_runnable(task, true);
        let last = self.tasks[task].cpu as usize;
        let cpu = self.place(last);
        self.balance.wake_moves += u64::from(cpu != last);
        let q = self.entities[task].queue as usize;
        let min_vruntime = self.queues[q].min_vruntime;
        let entity = &mut self.entities[task];
        entity.vruntime = entity.vruntime.wrapping_sub(min_vruntime);
        self.enqueue_task(task, cpu, true);
        if self.preempts(cpu, task) {
            self.must_reschedule(cpu);
        }
        self.end_idle_span(cpu);
    }

    /// The task's CPU if it is idle; otherwise the first idle one of the smallest domain; otherwise still its
    /// own.
    fn place(&self, last: usize) -> usize {
        if !self.on(Mechanism::WakeIdle) || self.is_idle(last) {
            return last;
        }
        let Some(&span) = self.scenario.topology.domains.first() else { return last };
        let first = last / span * span;
        self.idle_within(first, first + span).unwrap_or(last)
    }

    pub(super) fn is_idle(&self, cpu: usize) -> bool {
        self.cpus[cpu].current == NONE && self.cpu_loads[cpu].tasks == 0
    }

    /// The first idle CPU of `from..to`.
    fn idle_within(&self, from: usize, to: usize) -> Option<usize> {
        let mut cpu = from;
        while cpu < to {
            let word = self.idle[cpu / 64] >> (cpu % 64);
            if word == 0 {
                cpu = (cpu / 64 + 1) * 64;
                continue;
            }
            cpu += word.trailing_zeros() as usize;
            if cpu < to && self.is_idle(cpu) {
                return Some(cpu);
            }
            cpu += 1;
        }
        None
    }

    /// Averages how long `cpu` was idle, now that a task woke up on it.
    fn end_idle_span(&mut self, cpu: usize) {
        let longest_ns = 2 * self.scenario.tunables.migration_cost_ns;
        let state = &mut self.cpus[cpu];
        let stamp_ns = std::mem::replace(&mut state.idle_stamp_ns, NEVER_NS);
        if stamp_ns == NEVER_NS {
            return;
        }
        let span_ns = self.now_ns - stamp_ns;
        if span_ns > longest_ns {
            state.average_idle_ns = longest_ns;
        } else {
            let average_ns = state.average_idle_ns as i64;
            state.average_idle_ns = (average_ns + ((span_ns as i64 - average_ns) >> 3)) as u64;
        }
    }

    /// When the next sleep of a task that falls asleep now is over.
    pub(super) fn sleep_ends_ns(&mut self, task: usize) -> u64 {
        let from_ns =
            match (self.behaviours[self.tasks[task].pattern as usize].clock, self.tasks[task].activity) {
                (Clock::Timetable, Activity::Until(due_ns)) => due_ns,
                _ => self.now_ns,
            };
        let sleep_ns = self.draw_sleep(task);
        from_ns.saturating_add(sleep_ns).max(self.now_ns.saturating_add(1))
    }

    fn draw_burst(&mut self, task: usize) -> Activity {
        let exec_ns = self.entities[task].exec_ns;
        let task = &mut self.tasks[task];
        let behaviour = &self.behaviours[task.pattern as usize];
        let busy_ns = match &behaviour.pattern {
            Pattern::Always => return Activity::Forever,
            Pattern::Random { busy, .. } => task.stream.length_ns(*busy),
            Pattern::Script(steps) => steps[task.step as usize].0.max(1),
        };
        match behaviour.clock {
            Clock::Wall | Clock::Timetable => Activity::Until(self.now_ns.saturating_add(busy_ns)),
            Clock::Cpu => Activity::UntilExec(exec_ns.saturating_add(busy_ns)),
        }
    }

    fn draw_sleep(&mut self, task: usize) -> u64 {
        let task = &mut self.tasks[task];
        match &self.behaviours[task.pattern as usize].pattern {
            Pattern::Always => u64::MAX,
            Pattern::Random { sleep, .. } => task.stream.length_ns(*sleep),
            Pattern::Script(steps) => {
                let sleep_ns = steps[task.step as usize].1.max(1);
                task.step = (task.step + 1) % steps.len() as u32;
                sleep_ns
            }
        }
    }

    /// The longest this task may sleep before it first wakes. Scripts start together, at once.
    pub(super) fn longest_sleep_ns(&self, task: usize) -> u64 {
        match &self.behaviours[self.tasks[task].pattern as usize].pattern {
            Pattern::Random { sleep, .. } => sleep.greatest_ns(),
            Pattern::Script(_) | Pattern::Always => 0,
        }
    }

    pub(super) fn count_runnable(&mut self, task: usize, runnable: bool) {
        let set = &mut self.behaviours[self.tasks[task].pattern as usize];
        if runnable {
            set.runnable += 1;
        } else {
            set.runnable -= 1;
        }
        self.account.runnable_changed(runnable);
    }
}
