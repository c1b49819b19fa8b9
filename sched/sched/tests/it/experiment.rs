//! Experiments over seeds, sweeps and traces.

use lineup_sched::experiment::{Variant, run};
use lineup_sched::report::report;
use lineup_sched::scenario::{Scenario, Topology, parse_group};
use lineup_sched::sim::simulate;
use lineup_sched::sweep::{Axis, Grid};
use lineup_sched::trace::Trace;
use lineup_sched::weights::Resolution;
use std::sync::atomic::{AtomicUsize, Ordering};

fn variants() -> Vec<Variant> {
    let mut scenario = Scenario::new(Topology::new(8, &[2, 8]));
    scenario.groups.push(parse_group("low:shares=2,tasks=20,busy=~50ms,sleep=~50ms").expect("valid"));
    scenario.time_ns = 2_500_000_000;
    let at = |bits| {
        let mut scenario = scenario.clone();
        scenario.resolution = Resolution::new(bits).expect("in range");
        Variant { name: format!("R = {bits}"), scenario }
    };
    vec![at(0), at(10)]
}

#[test]
fn outcomes_do_not_depend_on_the_number_of_threads() {
    let variants = variants();
    let done = AtomicUsize::new(0);
    let count = |_| {
        done.fetch_add(1, Ordering::Relaxed);
    };
    let alone = run(&variants, &[1, 2, 3], 1, &count).expect("valid");
    let together = run(&variants, &[1, 2, 3], 8, &count).expect("valid");
    assert_eq!(alone, together);
    assert_eq!(done.into_inner(), 12);
    assert_eq!((alone.len(), alone[0].len()), (2, 3));
}

#[test]
fn a_report_has_intervals_and_paired_differences_where_seeds_allow() {
    let variants = variants();
    let seeds = [1, 2, 3, 4];
    let outcomes = run(&variants, &seeds, 2, &|_| {}).expect("valid");
    let full = report(&variants, &seeds, &outcomes).expect("finite");
    let idle = |variant: usize| full.variants[variant].figures.iter().find(|figure| figure.name == "idle");
    let (low, high) = (idle(0).expect("idle"), idle(1).expect("idle"));
    assert!(low.difference.is_none() && low.interval.is_some());
    let difference = high.difference.as_ref().expect("paired");
    let gap = high.mean.zip(low.mean).map(|(high, low)| high - low).expect("means");
    assert!((difference.mean - gap).abs() < 1e-9 && difference.interval[0] <= gap);
    assert_eq!(full.variants[0].idle_percent_by_second.len(), 3);
    let first: Vec<_> = outcomes.iter().map(|row| row[..1].to_vec()).collect();
    let single = report(&variants, &seeds[..1], &first).expect("finite");
    assert!(single.variants[1].figures.iter().all(|figure| figure.interval.is_none()));
}

#[test]
fn a_sweep_has_a_point_for_every_pair_of_values() {
    let x: Axis = "shares=2,64,1024".parse().expect("valid");
    let y: Axis = "domains=2,8;4,16".parse().expect("valid");
    let grid = Grid::new(&variants(), x, Some(y)).expect("valid");
    assert_eq!(grid.points.len(), 6);
    let (column, row, variants) = &grid.points[5];
    let scenario = &variants[1].scenario;
    assert_eq!((*column, *row), (2, 1));
    assert_eq!((scenario.groups[0].shares, scenario.topology.cpus), (1024, 16));
    assert!(Grid::new(variants, "shares=1".parse().expect("valid"), None).is_err());
    for bad in ["shares", "shares=x", "colour=1", "domains=2;x"] {
        assert!(bad.parse::<Axis>().is_err(), "{bad}");
    }
}

#[test]
fn a_trace_is_json_and_accounts_for_all_busy_time() {
    let mut scenario = variants().remove(0).scenario;
    scenario.warmup_ns = 0;
    scenario.groups[0].name = "a \"quoted\\ \n name".into();
    let mut trace = Trace::new(Vec::new(), &scenario).expect("memory");
    let outcome = simulate(&scenario, 1, &mut trace).expect("valid");
    let text = trace.finish().expect("memory");
    let document: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let events = document["traceEvents"].as_array().expect("events");
    let spans = events.iter().filter(|event| event["ph"] == "X");
    let micros: f64 = spans.clone().filter_map(|event| event["dur"].as_f64()).sum();
    let busy: u64 = outcome.cpu_busy_ns.iter().sum();
    assert!((micros * 1e3 - busy as f64).abs() < 1e6);
    assert!(spans.clone().count() > 100);
    assert_eq!(events.iter().filter(|event| event["name"] == "thread_name").count(), 8);
}
