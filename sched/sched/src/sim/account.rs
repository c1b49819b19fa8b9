//! Measurements during the run.

use super::Sim;
use crate::scenario::Scenario;
use hdrhistogram::Histogram;

/// Sums over the measured part of the run; started over when the warm-up ends.
pub(super) struct Account {
    last_ns: u64,
    next_mark_ns: u64,
    measuring: bool,
    cpus: u64,
    running: u64,
    runnable: u64,
    /// CPU time spent idle since the last mark.
    idle_ns: u64,
    /// CPU time spent idle, second by second.
    pub(super) idle_by_second_ns: Vec<u64>,
    /// CPU time spent idle that a waiting task could have used.
    pub(super) missed_ns: u64,
    /// Time during which some task waited.
    pub(super) some_waited_ns: u64,
    pub(super) cpu_busy_ns: Vec<u64>,
    pub(super) latency_ns: Histogram<u64>,
    pub(super) switches: u64,
}

/// The interval by which outcomes are split.
pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// The longest latency that is distinguished: a thousand seconds.
const LONGEST_LATENCY_NS: u64 = 1_000 * SECOND_NS;

impl Account {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let cpus = scenario.topology.cpus;
        Self {
            last_ns: 0,
            next_mark_ns: scenario.warmup_ns,
            measuring: false,
            cpus: cpus as u64,
            running: 0,
            runnable: 0,
            idle_ns: 0,
            idle_by_second_ns: Vec::new(),
            missed_ns: 0,
            some_waited_ns: 0,
            cpu_busy_ns: vec![0; cpus],
            latency_ns: latencies(),
            switches: 0,
        }
    }

    /// When the next second ends, or the warm-up.
    pub(super) fn mark_ns(&self) -> u64 {
        self.next_mark_ns
    }

    pub(super) fn go_to(&mut self, now_ns: u64) {
        let span_ns = now_ns - self.last_ns;
        self.last_ns = now_ns;
        let idle = self.cpus - self.running;
        let waiting = self.runnable - self.running;
        self.idle_ns += span_ns * idle;
        self.missed_ns += span_ns * idle.min(waiting);
        if waiting > 0 {
            self.some_waited_ns += span_ns;
        }
    }

    pub(super) fn started(&mut self) {
        self.running += 1;
        self.switches += 1;
    }

    pub(super) fn stopped(&mut self) {
        self.running -= 1;
    }

    pub(super) fn runnable_changed(&mut self, up: bool) {
        if up {
            self.runnable += 1;
        } else {
            self.runnable -= 1;
        }
    }

    pub(super) fn some_waits(&self) -> bool {
        self.runnable > self.running
    }

    pub(super) fn latency(&mut self, ns: u64) {
        self.latency_ns.saturating_record(ns);
    }

    /// Counts the part after the last whole second.
    pub(super) fn end_partial_second(&mut self) {
        if self.measuring && self.last_ns + SECOND_NS > self.next_mark_ns {
            self.end_second();
        }
    }

    fn end_second(&mut self) {
        self.idle_by_second_ns.push(std::mem::take(&mut self.idle_ns));
    }
}

/// Two significant digits, up to the longest latency.
fn latencies() -> Histogram<u64> {
    Histogram::new_with_max(LONGEST_LATENCY_NS, 2).expect("two digits up to a constant are in range")
}

impl Sim<'_> {
    /// A second, or the warm-up, is over.
    pub(super) fn mark(&mut self) {
        self.charge_all();
        if self.account.measuring {
            self.account.end_second();
            let of = self.scenario.time_ns / SECOND_NS;
            self.observer.second(self.account.idle_by_second_ns.len() as u64, of);
        } else {
            self.start_measuring();
        }
        self.account.next_mark_ns = self.now_ns.saturating_add(SECOND_NS);
    }

    fn start_measuring(&mut self) {
        let account = &mut self.account;
        account.measuring = true;
        account.idle_ns = 0;
        account.missed_ns = 0;
        account.some_waited_ns = 0;
        account.switches = 0;
        account.cpu_busy_ns.fill(0);
        account.latency_ns.reset();
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
            if state.current != super::NONE {
                let (task, since_ns) = (state.current as usize, state.since_ns);
                state.since_ns = self.now_ns;
                self.charge(cpu, task, since_ns);
            }
            self.attribute_idle(cpu);
        }
    }
}
