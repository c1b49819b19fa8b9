//! Measurements during the run.

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

    pub(super) fn is_measuring(&self) -> bool {
        self.measuring
    }

    /// The warm-up is over: everything starts over.
    pub(super) fn start_measuring(&mut self) {
        self.measuring = true;
        self.idle_ns = 0;
        self.missed_ns = 0;
        self.some_waited_ns = 0;
        self.switches = 0;
        self.cpu_busy_ns.fill(0);
        self.latency_ns.reset();
    }

    /// The next second ends a second from now.
    pub(super) fn set_mark(&mut self, now_ns: u64) {
        self.next_mark_ns = now_ns.saturating_add(SECOND_NS);
    }

    pub(super) fn end_second(&mut self) {
        self.idle_by_second_ns.push(std::mem::take(&mut self.idle_ns));
    }
}

/// Two significant digits, up to the longest latency.
fn latencies() -> Histogram<u64> {
    Histogram::new_with_max(LONGEST_LATENCY_NS, 2).expect("two digits up to a constant are in range")
}
