//! The model as a black box: conservation laws, schedules worked out by hand, and an independent ideal.

use lineup_sched::scenario::{Clock, Group, Pattern, ROOT, Scenario, TaskSet, Topology, parse_group};
use lineup_sched::sim::{Observer, Outcome, Unobserved, simulate};
use lineup_sched::weights::{Resolution, nice_weight};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ran {
    cpu: usize,
    task: usize,
    from_ns: u64,
    to_ns: u64,
}

#[derive(Default)]
struct Recorder(Vec<Ran>);

impl Observer for Recorder {
    fn ran(&mut self, cpu: usize, task: usize, from_ns: u64, to_ns: u64) {
        self.0.push(Ran { cpu, task, from_ns, to_ns });
    }
}

fn scenario(cpus: usize, domains: &[usize], groups: &[&str]) -> Scenario {
    let mut scenario = Scenario::new(Topology::new(cpus, domains));
    scenario.groups = groups.iter().map(|text| parse_group(text).expect("a valid group")).collect();
    scenario
}

fn run(scenario: &Scenario, seed: u64) -> Outcome {
    simulate(scenario, seed, &mut Unobserved).expect("a valid scenario")
}

fn set(count: usize, nice: i8, pattern: Pattern, clock: Clock) -> TaskSet {
    TaskSet { count, nice, pattern, clock }
}

fn in_root(tasks: Vec<TaskSet>) -> Group {
    Group { name: ROOT.into(), parent: ROOT.into(), shares: 1024, tasks }
}

/// No span of one CPU, or of one task, overlaps another.
fn assert_no_overlap(mut spans: Vec<Ran>, key: fn(&Ran) -> usize) {
    spans.sort_by_key(|span| (key(span), span.from_ns, span.to_ns));
    for pair in spans.windows(2) {
        if key(&pair[0]) == key(&pair[1]) {
            assert!(pair[0].to_ns <= pair[1].from_ns, "{pair:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn time_is_conserved_and_nothing_runs_twice(
        cpus in 1_usize..9, shares in 2_u64..3000, tasks in 1_usize..20, busy in 1_u64..30, sleep in 1_u64..30,
        bits in 0_u8..=10, seed in any::<u64>(),
    ) {
        let low = format!("low:shares={shares},tasks={tasks},busy=~{busy}ms,sleep=~{sleep}ms");
        let mut scenario = scenario(cpus, &[], &[&low, "spin:tasks=2", "in:parent=low,tasks=3,busy=~5ms,sleep=3ms,clock=cpu"]);
        scenario.resolution = Resolution::new(bits).expect("in range");
        scenario.time_ns = 2 * SECOND + 345 * MS;
        scenario.warmup_ns = 0;
        let mut recorder = Recorder::default();
        let outcome = simulate(&scenario, seed, &mut recorder).expect("valid");
        let busy: u64 = outcome.cpu_busy_ns.iter().sum();
        let idle: u64 = outcome.idle_by_second_ns.iter().sum();
        prop_assert_eq!(busy + idle, outcome.capacity_ns());
        prop_assert_eq!(outcome.task_ns.iter().sum::<u64>(), busy);
        prop_assert_eq!(recorder.0.iter().map(|ran| ran.to_ns - ran.from_ns).sum::<u64>(), busy);
        prop_assert!(outcome.missed_ns <= idle);
        assert_no_overlap(recorder.0.clone(), |ran| ran.cpu);
        assert_no_overlap(recorder.0, |ran| ran.task);
    }

    #[test]
    fn one_cpu_never_idles_while_a_task_waits(tasks in 1_usize..9, seed in any::<u64>()) {
        let mut scenario = scenario(1, &[], &[&format!("g:tasks={tasks},busy=~9ms,sleep=~20ms,clock=cpu")]);
        scenario.time_ns = 2 * SECOND;
        prop_assert_eq!(run(&scenario, seed).missed_ns, 0);
    }

    /// The ideal: at every moment each task progresses in proportion to its weight. Worked out in steps of ten
    /// microseconds without any of the model's code but the nice table.
    #[test]
    fn one_cpu_follows_the_ideal_within_a_few_slices(nices in proptest::collection::vec(-5_i8..6, 2..6)) {
        let mut scenario = scenario(1, &[], &[]);
        let spin = |nice: &i8| set(1, *nice, Pattern::Always, Clock::Cpu);
        scenario.groups.push(in_root(nices.iter().map(spin).collect()));
        scenario.time_ns = 5 * SECOND;
        scenario.warmup_ns = 0;
        let outcome = run(&scenario, 0);
        let weights: Vec<u64> = nices.iter().map(|nice| nice_weight(*nice).expect("in range")).collect();
        let total: u64 = weights.iter().sum();
        let mut due_ns = vec![0.0; nices.len()];
        for _ in 0..5 * SECOND / 10_000 {
            for (due, weight) in due_ns.iter_mut().zip(&weights) {
                *due += 10_000.0 * *weight as f64 / total as f64;
            }
        }
        for (ran, due) in outcome.task_ns.iter().zip(&due_ns) {
            prop_assert!((*ran as f64 - due).abs() < 12.0 * MS as f64, "{:?} against {due_ns:?}", outcome.task_ns);
        }
    }
}

#[test]
fn equal_tasks_of_equal_weight_share_equally_within_a_tick() {
    // Six tasks and a period of 6 ms: a slice is one tick.
    for tasks in [2, 3, 6] {
        let mut scenario = scenario(1, &[], &[&format!("g:tasks={tasks}")]);
        scenario.time_ns = 12 * SECOND;
        scenario.warmup_ns = 0;
        scenario.tunables.latency_ns = tasks * MS;
        let outcome = run(&scenario, 0);
        let (least, most) = (outcome.task_ns.iter().min(), outcome.task_ns.iter().max());
        let apart = most.zip(least).map(|(most, least)| most - least);
        assert!(apart.is_some_and(|apart| apart <= 2 * MS), "{tasks} tasks: {:?}", outcome.task_ns);
    }
}

#[test]
fn two_scripts_on_one_cpu_worked_out_by_hand() {
    // A works 3 ms and sleeps 7, B works 2 ms and sleeps 3; both start at 0.
    let script = |busy, sleep| set(1, 0, Pattern::Script(vec![(busy * MS, sleep * MS)]), Clock::Cpu);
    let mut scenario = scenario(1, &[], &[]);
    scenario.groups.push(in_root(vec![script(3, 7), script(2, 3)]));
    scenario.tunables.hz = 10;
    scenario.time_ns = 14 * MS;
    scenario.warmup_ns = 0;
    let mut recorder = Recorder::default();
    simulate(&scenario, 0, &mut recorder).expect("valid");
    let spans: Vec<_> = recorder.0.iter().map(|ran| (ran.task, ran.from_ns / MS, ran.to_ns / MS)).collect();
    // A runs first: B is no further behind. B waits, runs 3 to 5, sleeps to 8, and has the CPU alone to 10.
    // A wakes at 10 when B has just fallen asleep, and runs to 13. B wakes at 13.
    assert_eq!(spans, [(0, 0, 3), (1, 3, 5), (1, 8, 10), (0, 10, 13), (1, 13, 14)]);
}

#[test]
fn three_tasks_on_two_cpus_take_turns_in_pairs() {
    // Balancing moves whichever task waits, so turns are fair in the long run only; standing still would give
    // one task a whole CPU and the others half a one.
    for bits in [0, 10] {
        let mut scenario = scenario(2, &[2], &["g:tasks=3"]);
        scenario.resolution = Resolution::new(bits).expect("in range");
        let outcome = run(&scenario, 0);
        assert_eq!(outcome.idle_percent(), 0.0);
        assert!(outcome.balance.busy.moved > 100);
        for ran_ns in outcome.task_ns {
            let share = ran_ns as f64 / outcome.time_ns as f64;
            assert!((0.55..0.8).contains(&share), "{bits} bits: {share}");
        }
    }
}

#[test]
fn groups_that_all_compete_converge_to_their_weights() {
    let groups =
        ["a:shares=1024,tasks=8", "b:shares=2048,tasks=8", "c:shares=512,tasks=8", "d:parent=c,tasks=8"];
    for bits in [0, 10] {
        let mut scenario = scenario(4, &[4], &groups);
        scenario.resolution = Resolution::new(bits).expect("in range");
        scenario.time_ns = 60 * SECOND;
        for group in run(&scenario, 0).groups {
            let error = group.error_percent().expect("something is due");
            assert!(error.abs() < 3.0, "{bits} bits, {}: {error} %", group.name);
        }
    }
}

#[test]
fn a_seed_determines_everything() {
    let scenario = scenario(16, &[2, 8, 16], &["low:shares=2,tasks=50,busy=~100ms,sleep=~100ms"]);
    let mut short = scenario;
    short.time_ns = 3 * SECOND;
    assert_eq!(run(&short, 7), run(&short, 7));
    assert_ne!(run(&short, 7).task_ns, run(&short, 8).task_ns);
}

#[test]
fn every_wake_up_is_counted_and_latency_is_zero_on_a_free_machine() {
    let mut scenario = scenario(8, &[8], &["g:tasks=4,busy=10ms,sleep=10ms"]);
    scenario.time_ns = 10 * SECOND;
    let latency = run(&scenario, 1).latency.expect("tasks woke");
    assert_eq!((latency.count, latency.max_ns), (4 * 500, 0));
    let spinning = scenario.clone();
    let mut never = spinning;
    never.groups = vec![parse_group("g:tasks=4").expect("valid")];
    assert_eq!(run(&never, 1).latency, None);
}
