//! Invariants that hold after every step of every scenario.

use super::simulation::{Sim, Unobserved};
use super::state::{Activity, FIRST_VRUNTIME, NONE};
use crate::scenario::{Clock, Group, Mechanism, Pattern, ROOT, Scenario, Span, TaskSet, Topology};
use crate::weights::Resolution;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

pub(crate) fn patterns() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        Just(Pattern::Always),
        (1..40 * MS, 1..40 * MS).prop_map(|(busy, sleep)| Pattern::Random {
            busy: Span::around(busy),
            sleep: Span::around(sleep)
        }),
        proptest::collection::vec((1..20 * MS, 1..20 * MS), 1..4).prop_map(Pattern::Script),
    ]
}

fn task_sets() -> impl Strategy<Value = TaskSet> {
    let clocks = prop_oneof![Just(Clock::Wall), Just(Clock::Cpu), Just(Clock::Timetable)];
    (1_usize..6, -20_i8..20, patterns(), clocks).prop_map(|(count, nice, pattern, clock)| TaskSet {
        count,
        nice,
        pattern,
        clock,
    })
}

/// Any machine of up to 16 CPUs, any tree of up to five groups, any mechanisms.
pub(crate) fn scenarios() -> impl Strategy<Value = Scenario> {
    let machines = prop_oneof![
        Just((1, vec![])),
        Just((2, vec![2])),
        Just((3, vec![3])),
        Just((4, vec![2, 4])),
        Just((8, vec![2, 4, 8])),
        Just((16, vec![2, 8, 16])),
    ];
    let groups = proptest::collection::vec(
        (any::<prop::sample::Index>(), 2_u64..4096, proptest::collection::vec(task_sets(), 0..3)),
        1..6,
    );
    (machines, groups, prop_oneof![Just(0_u8), Just(10), 0..=10_u8], any::<u32>()).prop_map(
        |((cpus, domains), groups, bits, off)| {
            let mut scenario = Scenario::new(Topology::new(cpus, &domains));
            for (at, (parent, shares, tasks)) in groups.into_iter().enumerate() {
                let parent = match parent.index(at + 1) {
                    0 => ROOT.to_string(),
                    parent => format!("g{parent}"),
                };
                scenario.groups.push(Group { name: format!("g{}", at + 1), parent, shares, tasks });
            }
            let always = TaskSet { count: 1, nice: 0, pattern: Pattern::Always, clock: Clock::Cpu };
            let in_root = Group { name: ROOT.into(), parent: ROOT.into(), shares: 1024, tasks: vec![always] };
            scenario.groups.push(in_root);
            scenario.resolution = Resolution::new(bits).unwrap_or(Resolution::NONE);
            for (bit, mechanism) in Mechanism::ALL.iter().enumerate() {
                if off >> bit & 1 == 1 {
                    scenario.mechanisms = scenario.mechanisms.without(*mechanism);
                }
            }
            scenario.time_ns = 400 * MS;
            scenario.warmup_ns = 100 * MS;
            scenario
        },
    )
}

impl Sim<'_> {
    fn assert_consistent(&self) {
        let mut running = vec![false; self.tasks.len()];
        for (cpu, state) in self.cpus.iter().enumerate() {
            let marked_idle = self.idle[cpu / 64] >> (cpu % 64) & 1 == 1;
            assert_eq!(marked_idle, state.current == NONE);
            assert_eq!(
                state.current == NONE,
                self.cpu_loads[cpu].tasks == 0,
                "CPU {cpu} idles beside its tasks"
            );
            if state.current != NONE {
                let task = state.current as usize;
                assert_eq!(self.tasks[task].cpu as usize, cpu, "task {task} runs where it is not queued");
                assert!(!std::mem::replace(&mut running[task], true), "task {task} runs twice");
            }
        }
        let mut waiting = vec![0_u32; self.entities.len()];
        for queue in &self.queues {
            (0..).map_while(|place| queue.waiting.at(place)).for_each(|e| waiting[e as usize] += 1);
        }
        for (task, state) in self.tasks.iter().enumerate() {
            let queued = self.entities[task].queued;
            assert_eq!(queued, state.activity != Activity::Sleeping, "task {task} is lost");
            assert_eq!(waiting[task], u32::from(queued && !running[task]), "task {task} is not waiting once");
        }
        for q in 0..self.queues.len() {
            self.assert_queue_adds_up(q);
        }
        for (group, state) in self.groups.iter().enumerate().skip(1) {
            let queues = group * self.cpus.len()..(group + 1) * self.cpus.len();
            let published: u64 = self.queues[queues].iter().map(|queue| queue.tracking.contribution).sum();
            assert_eq!(state.load, published, "load of group {group}");
        }
    }

    fn assert_queue_adds_up(&self, q: usize) {
        let on_it = self.entities.iter().filter(|entity| entity.queued && entity.queue as usize == q);
        let (count, load) = on_it.fold((0, 0), |sum, entity| (sum.0 + 1, sum.1 + entity.load.stored));
        let queue = &self.queues[q];
        assert_eq!((queue.entities, queue.load), (count, load), "queue {q}");
        if let Some(loads) = self.cpu_loads.get(q) {
            assert_eq!((loads.weight, loads.tasks), (load, queue.tasks_below));
        }
        if queue.entity != NONE {
            assert_eq!(self.entities[queue.entity as usize].queued, count > 0, "entity of queue {q}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_step_keeps_tasks_loads_and_virtual_time_in_order(scenario in scenarios(), seed in any::<u64>()) {
        prop_assert_eq!(scenario.check(), Ok(()));
        let mut observer = Unobserved;
        let mut sim = Sim::new(&scenario, seed, &mut observer);
        let mut times = vec![FIRST_VRUNTIME; sim.queues.len()];
        while sim.step() {
            sim.assert_consistent();
            for (time, queue) in times.iter_mut().zip(&sim.queues) {
                prop_assert!(*time <= queue.min_vruntime, "virtual time went back");
                *time = queue.min_vruntime;
            }
        }
    }
}
