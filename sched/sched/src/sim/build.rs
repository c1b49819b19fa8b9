//! From a scenario to the simulation's first state.

use super::account::{Account, SECOND_NS};
use super::balance::Scratch;
use super::events::Events;
use super::heap::Heap;
use super::ideal::Ideal;
use super::outcome::Balance;
use super::random::Stream;
use super::simulation::{Observer, Sim};
use super::state::{
    Activity, Behaviour, Cpu, CpuDomain, CpuLoad, Entity, FIRST_VRUNTIME, GroupState, LoadTracking, NEVER_NS,
    NONE, Queue, SimEvent, Task,
};
use super::why::Why;
use crate::scenario::{FULL_POWER, ROOT, Scenario};
use crate::weights::delta::LoadWeight;
use crate::weights::{NICE_0_WEIGHT, nice_weight};
use std::collections::HashMap;

impl<'a> Sim<'a> {
    /// `scenario` must have passed its check.
    pub(super) fn new(scenario: &'a Scenario, seed: u64, observer: &'a mut dyn Observer) -> Self {
        let cpus = scenario.topology.cpus;
        let order = parents_first(scenario);
        let groups = group_states(scenario, &order);
        let (tasks, behaviours) = task_states(scenario, &order, seed);
        let end_ns = scenario.warmup_ns + scenario.time_ns;
        let bits = scenario.resolution.bits();
        let mut sim = Sim {
            scenario,
            observer,
            now_ns: 0,
            tick: 0,
            tick_ns: SECOND_NS / scenario.tunables.hz,
            end_ns,
            nice_0: NICE_0_WEIGHT << bits,
            events: Events::new(),
            made_events: 0,
            behaviours,
            entities: Vec::with_capacity(tasks.len() + groups.len() * cpus),
            queues: Vec::with_capacity(groups.len() * cpus),
            cpus: (0..cpus).map(|_| idle_cpu(scenario)).collect(),
            domains: vec![UNBALANCED; cpus * scenario.topology.domains.len()],
            cpu_loads: vec![CpuLoad { power: cpu_power(scenario), ..CpuLoad::default() }; cpus],
            idle: idle_words(cpus),
            pending: Vec::with_capacity(cpus),
            next_kick_tick: 0,
            scratch: Scratch::default(),
            account: Account::new(scenario),
            ideal: Ideal::new(scenario, &order, &groups),
            why: Why::new(cpus),
            balance: Balance::default(),
            tasks,
            groups,
        };
        sim.make_entities(scenario, &order);
        sim.first_wakes();
        sim
    }

    fn make_entities(&mut self, scenario: &Scenario, order: &[usize]) {
        for &group in order {
            for set in &scenario.groups[group].tasks {
                let stored = nice_weight(set.nice).unwrap_or(NICE_0_WEIGHT) << scenario.resolution.bits();
                let load = self.load_weight(stored);
                self.entities.extend((0..set.count).map(|_| entity(load, NONE)));
            }
        }
        for group in 0..self.groups.len() {
            for cpu in 0..self.cpus.len() {
                let q = self.queue_of(group, cpu) as u32;
                let mut queue = empty_queue();
                if group > 0 {
                    let parent = self.queue_of(self.groups[group].parent as usize, cpu) as u32;
                    queue.entity = self.entities.len() as u32;
                    let mut standing = entity(self.load_weight(self.groups[group].shares), q);
                    standing.queue = parent;
                    self.entities.push(standing);
                }
                self.queues.push(queue);
            }
        }
    }

    /// Every task first sleeps for up to as long as it ever does, so that they do not start in step.
    fn first_wakes(&mut self) {
        for task in 0..self.tasks.len() {
            let longest_ns = self.longest_sleep_ns(task);
            let at_ns = self.tasks[task].stream.within(0, longest_ns);
            let group = self.tasks[task].group as usize;
            self.entities[task].queue = self.queue_of(group, self.tasks[task].cpu as usize) as u32;
            self.at(at_ns, SimEvent::Wake { task: task as u32 });
        }
    }
}

impl Scenario {
    /// A name for every task, in the order of [`super::Outcome::task_ns`].
    pub fn task_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for group in parents_first(self).into_iter().map(|at| &self.groups[at]) {
            let count = group.tasks.iter().map(|set| set.count).sum();
            names.extend((0..count).map(|number| format!("{} {number}", group.name)));
        }
        names
    }
}

/// Indices of the scenario's groups, each after its parent.
fn parents_first(scenario: &Scenario) -> Vec<usize> {
    let at: HashMap<&str, usize> =
        scenario.groups.iter().enumerate().map(|(at, group)| (group.name.as_str(), at)).collect();
    let depth = |mut group: usize| {
        let mut depth = 0;
        while let Some(&parent) = at.get(scenario.groups[group].parent.as_str()) {
            if scenario.groups[group].name == ROOT {
                break;
            }
            group = parent;
            depth += 1;
        }
        depth
    };
    let mut order: Vec<usize> = (0..scenario.groups.len()).collect();
    order.sort_by_cached_key(|&group| (depth(group), group));
    order
}

fn group_states(scenario: &Scenario, order: &[usize]) -> Vec<GroupState> {
    let root = GroupState { parent: NONE, shares: NICE_0_WEIGHT, load: 0, depth: 0, source: None };
    let mut groups = vec![root];
    let mut by_name = HashMap::from([(ROOT, 0_u32)]);
    for &at in order {
        let group = &scenario.groups[at];
        if group.name == ROOT {
            continue;
        }
        let parent = by_name.get(group.parent.as_str()).copied().unwrap_or(0);
        by_name.insert(&group.name, groups.len() as u32);
        let depth = groups[parent as usize].depth + 1;
        let shares = group.shares << scenario.resolution.bits();
        groups.push(GroupState { parent, shares, load: 0, depth, source: Some(at) });
    }
    groups
}

fn task_states(scenario: &Scenario, order: &[usize], seed: u64) -> (Vec<Task>, Vec<Behaviour>) {
    let mut tasks = Vec::with_capacity(scenario.tasks());
    let mut behaviours = Vec::new();
    let mut next_group = 1;
    for &at in order {
        let group = if scenario.groups[at].name == ROOT {
            0
        } else {
            next_group += 1;
            next_group - 1
        };
        for set in &scenario.groups[at].tasks {
            for _ in 0..set.count {
                let number = tasks.len();
                tasks.push(Task {
                    stream: Stream::new(seed, number as u64),
                    pattern: behaviours.len() as u32,
                    group,
                    cpu: (number % scenario.topology.cpus) as u32,
                    activity: Activity::Sleeping,
                    step: 0,
                    woken_ns: None,
                    exec_before_ns: 0,
                });
            }
            behaviours.push(Behaviour { pattern: set.pattern.clone(), clock: set.clock, runnable: 0 });
        }
    }
    (tasks, behaviours)
}

/// A domain's state before its first pass.
const UNBALANCED: CpuDomain = CpuDomain { last_balance_tick: 0, interval_ticks: 1, failed: 0 };

fn idle_cpu(scenario: &Scenario) -> Cpu {
    Cpu {
        current: NONE,
        since_ns: 0,
        burst_end_ns: NEVER_NS,
        burst_order: 0,
        switches: 0,
        must_reschedule: false,
        idle_stamp_ns: NEVER_NS,
        average_idle_ns: 2 * scenario.tunables.migration_cost_ns,
        next_balance_tick: 0,
    }
}

fn cpu_power(scenario: &Scenario) -> u64 {
    match (scenario.topology.smt, scenario.topology.domains.first()) {
        (true, Some(&threads)) => (scenario.tunables.smt_core_power / threads as u64).max(1),
        _ => FULL_POWER,
    }
}

fn idle_words(cpus: usize) -> Vec<u64> {
    let mut words = vec![0; cpus.div_ceil(64)];
    for cpu in 0..cpus {
        words[cpu / 64] |= 1 << (cpu % 64);
    }
    words
}

fn entity(load: LoadWeight, members: u32) -> Entity {
    Entity {
        vruntime: FIRST_VRUNTIME,
        load,
        exec_start_ns: 0,
        exec_ns: 0,
        exec_at_pick_ns: 0,
        queue: NONE,
        members,
        queued: false,
    }
}

fn empty_queue() -> Queue {
    Queue {
        waiting: Heap::default(),
        min_vruntime: FIRST_VRUNTIME,
        load: 0,
        entities: 0,
        tasks: 0,
        tasks_below: 0,
        current: NONE,
        entity: NONE,
        tracking: LoadTracking::default(),
        share_of_load: 0,
    }
}
