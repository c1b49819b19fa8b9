//! The simulated machine: its state, and the steps that change it.

use super::account::Account;
use super::balance::Scratch;
use super::events::Events;
use super::ideal::Ideal;
use super::outcome::{Balance, Outcome};
use super::state::{
    Activity, Behaviour, Cpu, CpuDomain, CpuLoad, Entity, Event, GroupState, NEVER_NS, NONE, Queue, SimEvent,
    Task,
};
use super::why::Why;
use crate::error::Error;
use crate::scenario::{Mechanism, Scenario};

/// Watches a run.
pub trait Observer {
    /// `task` ran on `cpu` from one time to another, in nanoseconds from the start of the run, warm-up
    /// included. Spans of one CPU come in order of time; a task that continues without a pause may have
    /// adjoining spans.
    fn ran(&mut self, cpu: usize, task: usize, from_ns: u64, to_ns: u64) {
        let _ = (cpu, task, from_ns, to_ns);
    }

    /// Another simulated second has passed, of `of`.
    fn second(&mut self, passed: u64, of: u64) {
        let _ = (passed, of);
    }
}

/// Watches nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// Runs `scenario` with `seed`.
///
/// # Errors
/// The error of [`Scenario::check`].
///
/// ```
/// use lineup_sched::scenario::{Scenario, Topology, parse_group};
/// use lineup_sched::sim::{Unobserved, simulate};
/// let mut scenario = Scenario::new(Topology::new(2, &[2]));
/// scenario.groups.push(parse_group("spin:tasks=3").unwrap());
/// scenario.time_ns = 1_000_000_000;
/// let outcome = simulate(&scenario, 1, &mut Unobserved).unwrap();
/// assert_eq!(outcome.idle_percent(), 0.0);
/// ```
pub fn simulate(scenario: &Scenario, seed: u64, observer: &mut dyn Observer) -> Result<Outcome, Error> {
    scenario.check()?;
    Ok(Sim::new(scenario, seed, observer).run())
}

pub(super) struct Sim<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) now_ns: u64,
    pub(super) tick: u64,
    pub(super) tick_ns: u64,
    pub(super) end_ns: u64,
    /// The stored weight of nice 0.
    pub(super) nice_0: u64,
    pub(super) events: Events,
    pub(super) made_events: u64,
    pub(super) tasks: Vec<Task>,
    pub(super) behaviours: Vec<Behaviour>,
    pub(super) entities: Vec<Entity>,
    pub(super) queues: Vec<Queue>,
    pub(super) groups: Vec<GroupState>,
    pub(super) cpus: Vec<Cpu>,
    pub(super) domains: Vec<CpuDomain>,
    pub(super) cpu_loads: Vec<CpuLoad>,
    /// One bit per CPU, 64 to a word: set while it runs nothing.
    pub(super) idle: Vec<u64>,
    /// CPUs that must choose a task before time advances.
    pub(super) pending: Vec<u32>,
    pub(super) next_kick_tick: u64,
    pub(super) scratch: Scratch,
    pub(super) account: Account,
    pub(super) ideal: Ideal,
    pub(super) why: Why,
    pub(super) balance: Balance,
}

impl Sim<'_> {
    pub(super) fn on(&self, mechanism: Mechanism) -> bool {
        self.scenario.mechanisms.has(mechanism)
    }

    pub(super) fn queue_of(&self, group: usize, cpu: usize) -> usize {
        group * self.cpus.len() + cpu
    }

    pub(super) fn group_of_queue(&self, q: usize) -> usize {
        q / self.cpus.len()
    }

    fn run(mut self) -> Outcome {
        while self.step() {}
        self.outcome()
    }

    /// Advances to the next event, and lets every CPU that it concerns choose anew. `false` at the end of the
    /// run.
    pub(super) fn step(&mut self) -> bool {
        let slot = self.events.present();
        let event_ns = self.events.first_ns().unwrap_or(u64::MAX);
        if self.events.present() != slot && self.outgrows_cache() {
            self.fetch_due_tasks();
        }
        let tick_ns = (self.tick + 1).saturating_mul(self.tick_ns);
        let next_ns = event_ns.min(tick_ns).min(self.account.mark_ns());
        if next_ns > self.end_ns {
            self.go_to(self.end_ns);
            return false;
        }
        self.go_to(next_ns);
        if self.account.mark_ns() == next_ns {
            self.mark();
        } else if event_ns == next_ns {
            if let Some(event) = self.events.pop() {
                self.happen(event.what);
            }
        } else {
            self.tick += 1;
            self.tick_all();
        }
        self.reschedule_pending();
        true
    }

    /// Whether tasks take more memory than the caches near a CPU have, at two lines each.
    fn outgrows_cache(&self) -> bool {
        self.tasks.len() > 4096
    }

    /// Loads the memory that the events of a slot need, all at once. Events handled one by one would each
    /// wait for memory, as soon as there are more tasks than the cache holds.
    fn fetch_due_tasks(&self) {
        let touch = |event: &Event| match event.what {
            SimEvent::Wake { task } => self.tasks[task as usize].cpu ^ self.entities[task as usize].queue,
            SimEvent::BurstEnd { cpu, .. } => cpu,
        };
        std::hint::black_box(self.events.due().iter().map(touch).fold(0, |sum, part| sum ^ part));
    }

    /// The same for the tasks that run, which a tick charges.
    fn fetch_running(&self) {
        let running = self.cpus.iter().filter(|cpu| cpu.current != NONE);
        std::hint::black_box(
            running.map(|cpu| self.entities[cpu.current as usize].queue).fold(0, |sum, q| sum ^ q),
        );
    }

    fn go_to(&mut self, now_ns: u64) {
        self.account.go_to(now_ns);
        self.now_ns = now_ns;
    }

    fn happen(&mut self, what: SimEvent) {
        match what {
            SimEvent::Wake { task } => self.wake(task as usize),
            SimEvent::BurstEnd { cpu, switches } => {
                if self.cpus[cpu as usize].switches == switches {
                    self.fall_asleep(cpu as usize);
                }
            }
        }
    }

    pub(super) fn at(&mut self, at_ns: u64, what: SimEvent) {
        if at_ns <= self.end_ns {
            self.made_events += 1;
            self.events.push(Event { at_ns, order: self.made_events, what });
        }
    }

    /// The burst of the running task of `cpu` is over.
    fn fall_asleep(&mut self, cpu: usize) {
        let task = self.cpus[cpu].current as usize;
        let wake_ns = self.sleep_ends_ns(task);
        self.tasks[task].activity = Activity::Sleeping;
        self.dequeue_task(task, false);
        self.count_runnable(task, false);
        self.at(wake_ns, SimEvent::Wake { task: task as u32 });
        self.must_reschedule(cpu);
    }

    pub(super) fn must_reschedule(&mut self, cpu: usize) {
        if !self.cpus[cpu].must_reschedule {
            self.cpus[cpu].must_reschedule = true;
            self.pending.push(cpu as u32);
        }
    }

    fn reschedule_pending(&mut self) {
        while let Some(cpu) = self.pending.pop() {
            if self.cpus[cpu as usize].must_reschedule {
                self.reschedule(cpu as usize);
            }
        }
    }

    /// Lets `cpu` choose which task to run.
    fn reschedule(&mut self, cpu: usize) {
        self.cpus[cpu].must_reschedule = false;
        let previous = self.stop_running(cpu);
        if let Some(task) = previous {
            self.put_previous(task);
        }
        if self.cpu_loads[cpu].tasks == 0 && previous.is_some() {
            self.fall_idle(cpu);
            // The CPU chooses below, so the pulled task needs no second choice.
            self.cpus[cpu].must_reschedule = false;
        }
        if let Some(task) = self.pick_next(cpu) {
            self.start_running(cpu, task);
        }
    }

    /// Ends the running task's span on `cpu`. The CPU counts as idle until another starts.
    pub(super) fn stop_running(&mut self, cpu: usize) -> Option<usize> {
        let state = &mut self.cpus[cpu];
        state.switches = state.switches.wrapping_add(1);
        let task = std::mem::replace(&mut state.current, NONE);
        if task == NONE {
            return None;
        }
        let since_ns = state.since_ns;
        state.burst_end_ns = NEVER_NS;
        self.charge(cpu, task as usize, since_ns);
        self.idle[cpu / 64] |= 1 << (cpu % 64);
        self.account.stopped();
        self.start_idle_span(cpu);
        Some(task as usize)
    }

    fn start_running(&mut self, cpu: usize, task: usize) {
        let state = &mut self.cpus[cpu];
        state.since_ns = self.now_ns;
        self.idle[cpu / 64] &= !(1 << (cpu % 64));
        self.attribute_idle(cpu);
        self.cpus[cpu].current = task as u32;
        self.account.started();
        if let Some(woken_ns) = self.tasks[task].woken_ns.take() {
            self.account.latency(self.now_ns - woken_ns);
        }
        let end_ns = match self.tasks[task].activity {
            Activity::Until(end_ns) => {
                end_ns.max(self.now_ns.saturating_add(self.scenario.tunables.clock_check_ns))
            }
            Activity::UntilExec(exec_ns) => {
                self.now_ns.saturating_add(exec_ns.saturating_sub(self.entities[task].exec_ns))
            }
            Activity::Sleeping | Activity::Forever => return,
        };
        if end_ns <= self.end_ns {
            self.made_events += 1;
            self.cpus[cpu].burst_end_ns = end_ns;
            self.cpus[cpu].burst_order = self.made_events;
            self.queue_burst_end(cpu);
        }
    }

    /// Queues the end of the burst that runs on `cpu` if it comes no later than the next tick.
    fn queue_burst_end(&mut self, cpu: usize) {
        let state = &mut self.cpus[cpu];
        if state.burst_end_ns <= (self.tick + 1).saturating_mul(self.tick_ns) {
            let at_ns = std::mem::replace(&mut state.burst_end_ns, NEVER_NS);
            let what = SimEvent::BurstEnd { cpu: cpu as u32, switches: state.switches };
            self.events.push(Event { at_ns, order: state.burst_order, what });
        }
    }

    fn tick_all(&mut self) {
        self.ideal.sample(&self.behaviours, &self.scenario.topology, self.tick_ns);
        if self.outgrows_cache() {
            self.fetch_running();
        }
        for cpu in 0..self.cpus.len() {
            self.update_history(cpu);
        }
        for cpu in 0..self.cpus.len() {
            let current = self.cpus[cpu].current;
            if current != NONE {
                self.tick_current(cpu, current as usize);
            }
            self.queue_burst_end(cpu);
            self.balance_at_tick(cpu);
            // The next CPU's pass must see the decisions of this one.
            if self.cpus[cpu].must_reschedule {
                self.reschedule(cpu);
            }
        }
    }

    /// The load as of this tick, and half of it with half of the average before, rounded up as it rises.
    fn update_history(&mut self, cpu: usize) {
        let loads = &mut self.cpu_loads[cpu];
        let average = loads.history[1];
        loads.history[0] = loads.weight;
        loads.history[1] = (average + loads.weight + u64::from(loads.weight > average)) >> 1;
    }
}
