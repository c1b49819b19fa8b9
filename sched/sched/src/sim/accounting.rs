//! Marks and charges: the parts of a run booked where they belong.

use super::account::SECOND_NS;
use super::simulation::Sim;
use super::state::NONE;
use super::why::Cause;

impl Sim<'_> {
    /// A second, or the warm-up, is over.
    pub(super) fn mark(&mut self) {
        self.charge_all();
        if self.account.is_measuring() {
            self.account.end_second();
            let of = self.scenario.time_ns / SECOND_NS;
            self.observer.second(self.account.idle_by_second_ns.len() as u64, of);
        } else {
            self.start_measuring();
        }
        self.account.set_mark(self.now_ns);
    }

    fn start_measuring(&mut self) {
        self.account.start_measuring();
        self.balance = Default::default();
        self.why.start_over();
        self.ideal.start_over();
        for task in 0..self.tasks.len() {
            self.tasks[task].exec_before_ns = self.exec_ns(task);
        }
    }

    /// All the CPU time that `task` has had.
    pub(super) fn exec_ns(&self, task: usize) -> u64 {
        let entity = &self.entities[task];
        let running = self.cpus[self.tasks[task].cpu as usize].current == task as u32;
        entity.exec_ns + if running { self.now_ns - entity.exec_start_ns } else { 0 }
    }

    /// Books the CPU time of `task` on `cpu` since then. The task's own sum is kept with its virtual time.
    pub(super) fn charge(&mut self, cpu: usize, task: usize, since_ns: u64) {
        let ran_ns = self.now_ns - since_ns;
        self.account.cpu_busy_ns[cpu] += ran_ns;
        self.observer.ran(cpu, task, since_ns, self.now_ns);
    }

    /// Charges every running task up to now, so that sums are complete.
    pub(super) fn charge_all(&mut self) {
        for cpu in 0..self.cpus.len() {
            let state = &mut self.cpus[cpu];
            if state.current != NONE {
                let (task, since_ns) = (state.current as usize, state.since_ns);
                state.since_ns = self.now_ns;
                self.charge(cpu, task, since_ns);
            }
            self.attribute_idle(cpu);
        }
    }

    /// Books the idle time of `cpu` so far under its present cause, if it is idle.
    pub(super) fn attribute_idle(&mut self, cpu: usize) {
        self.why.attribute(cpu, self.cpus[cpu].current == NONE, self.account.some_waited_ns);
    }

    /// The CPU has just stopped running: nothing has been tried yet.
    pub(super) fn start_idle_span(&mut self, cpu: usize) {
        self.why.start_span(cpu, self.account.some_waited_ns);
    }

    /// Sets the reason why `cpu` is idle from here on.
    pub(super) fn set_cause(&mut self, cpu: usize, cause: Cause) {
        self.attribute_idle(cpu);
        self.why.set_cause(cpu, cause);
    }
}
