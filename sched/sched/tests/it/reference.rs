//! Observations of the 2011 reference, as claims about intervals over seeds.

use lineup_sched::scenario::{Mechanism, Scenario, Topology, parse_group};
use lineup_sched::sim::{Outcome, Unobserved, simulate};
use lineup_sched::weights::Resolution;
use lineup_stats::interval::{Interval, t_interval};
use lineup_stats::paired::PairedBlocks;

/// Fifty tasks in a group of these shares, uniform 0 to 200 ms busy and asleep.
fn scenario(cpus: usize, domains: &[usize], shares: u64, clock: &str) -> Scenario {
    let mut scenario = Scenario::new(Topology::new(cpus, domains));
    let group = format!("low:shares={shares},tasks=50,busy=~100ms,sleep=~100ms,clock={clock}");
    scenario.groups.push(parse_group(&group).expect("a valid group"));
    scenario
}

fn outcomes(scenario: &Scenario, bits: u8, seeds: u64) -> Vec<Outcome> {
    let mut scenario = scenario.clone();
    scenario.resolution = Resolution::new(bits).expect("in range");
    (0..seeds).map(|seed| simulate(&scenario, seed, &mut Unobserved).expect("valid")).collect()
}

fn idle(scenario: &Scenario, bits: u8, seeds: u64) -> Vec<f64> {
    outcomes(scenario, bits, seeds).iter().map(Outcome::idle_percent).collect()
}

/// The machine's additional idle time without extra bits, compared with ten.
fn lost(scenario: &Scenario) -> Interval {
    let blocks = PairedBlocks::from_means(idle(scenario, 10, 10), idle(scenario, 0, 10)).expect("pairs");
    blocks.difference(0.95).expect("ten pairs").interval
}

/// E[(16 − Bin(50, ½))⁺] / 16 in per cent: the idle time that no scheduler can avoid if tasks are busy half
/// the time, independently of it and of one another.
fn binomial_floor() -> f64 {
    let mut probability = 0.5_f64.powi(50);
    let mut idle = 0.0;
    for busy in 0..16 {
        idle += f64::from(16 - busy) * probability;
        probability *= f64::from(50 - busy) / f64::from(busy + 1);
    }
    100.0 * idle / 16.0
}

#[test]
fn the_floor_is_a_thirtieth_of_a_per_cent() {
    assert!((binomial_floor() - 0.033).abs() < 0.0005);
}

#[test]
fn ten_bits_reach_the_binomial_floor() {
    for domains in [&[16][..], &[2, 8, 16], &[4, 16]] {
        let outcomes = outcomes(&scenario(16, domains, 2, "timetable"), 10, 40);
        let unavoidable: Vec<f64> =
            outcomes.iter().map(|outcome| outcome.idle_percent() - outcome.missed_percent()).collect();
        let interval = t_interval(&unavoidable, 0.99).expect("forty seeds");
        assert!(interval.contains(binomial_floor()), "{domains:?}: {interval:?}");
        let missed: Vec<f64> = outcomes.iter().map(Outcome::missed_percent).collect();
        let interval = t_interval(&missed, 0.95).expect("forty seeds");
        assert!(interval.high < 0.02, "{domains:?}: {interval:?}");
    }
}

#[test]
fn without_patience_for_hot_tasks_all_idle_time_is_the_floor() {
    // With the usual patience a hundredth of a point is missed on top of it: tasks that ran a moment ago stay.
    let mut scenario = scenario(16, &[2, 8, 16], 2, "timetable");
    let patient = t_interval(&idle(&scenario, 10, 40), 0.95).expect("forty seeds");
    scenario.tunables.migration_cost_ns = 0;
    let eager = t_interval(&idle(&scenario, 10, 40), 0.95).expect("forty seeds");
    assert!(eager.contains(binomial_floor()), "{eager:?}");
    assert!(patient.low > binomial_floor() && patient.high < 0.05, "{patient:?}");
}

#[test]
fn no_extra_bits_leave_cpus_idle_where_cores_have_threads() {
    let with_threads = lost(&scenario(16, &[2, 8, 16], 2, "wall"));
    assert!(with_threads.low > 1.0, "{with_threads:?}");
    let small_caches = lost(&scenario(16, &[4, 16], 2, "wall"));
    assert!(small_caches.low > 0.2, "{small_caches:?}");
    let flat = lost(&scenario(16, &[16], 2, "wall"));
    assert!(flat.high < 0.1, "{flat:?}");
}

#[test]
fn pulling_by_idle_cpus_hides_half_of_it_and_the_floor_of_weights_some() {
    let full = scenario(16, &[2, 8, 16], 2, "wall");
    let without = |mechanism| {
        let mut scenario = full.clone();
        scenario.mechanisms = scenario.mechanisms.without(mechanism);
        lost(&scenario)
    };
    assert!(without(Mechanism::IdlePull).low > lost(&full).high);
    assert!(without(Mechanism::Floor).low > lost(&full).high);
}

#[test]
fn small_shares_behave_alike_and_sixty_four_close_the_gap() {
    let gap = |shares| lost(&scenario(16, &[2, 8, 16], shares, "wall"));
    let (two, eight, sixty_four) = (gap(2), gap(8), gap(64));
    assert!(eight.low > two.low / 2.0, "{eight:?} against {two:?}");
    assert!(sixty_four.high < two.low / 10.0, "{sixty_four:?} against {two:?}");
}

#[test]
fn two_cpus_show_no_effect() {
    for domains in [&[2][..], &[]] {
        let mut two = scenario(2, domains, 2, "wall");
        two.groups[0].tasks[0].count = 8;
        let difference = lost(&two);
        assert!(difference.contains(0.0), "resolution, domains {domains:?}: {difference:?}");
        let mut usual = two.clone();
        usual.groups[0].shares = 1024;
        let missed = |scenario| -> Vec<f64> {
            outcomes(scenario, 10, 20).iter().map(Outcome::missed_percent).collect()
        };
        let blocks = PairedBlocks::from_means(missed(&usual), missed(&two)).expect("pairs");
        let difference = blocks.difference(0.95).expect("twenty pairs").interval;
        assert!(difference.contains(0.0), "weight, domains {domains:?}: {difference:?}");
    }
}
