//! How the model's run time grows: a table of machines and tasks, and the target of 60 simulated seconds of
//! 16 CPUs and 50 tasks in less than one.

use lineup_sched::scenario::{Scenario, Topology, parse_group};
use lineup_sched::sim::{Unobserved, simulate};
use rustix::time::{ClockId, clock_gettime};

/// CPU time this process has had, in seconds: unlike the time on the wall it does not count what others ran.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// CPUs, domains, tasks, simulated seconds.
const CASES: &[(usize, &[usize], usize, u64)] = &[
    (16, &[2, 8, 16], 50, 60),
    (64, &[2, 8, 16, 64], 200, 60),
    (256, &[2, 8, 16, 256], 800, 60),
    (1024, &[2, 8, 16, 1024], 3_200, 60),
    (16, &[2, 8, 16], 1_563, 10),
    (64, &[2, 8, 16, 64], 6_250, 10),
    (256, &[2, 8, 16, 256], 25_000, 10),
    (1024, &[2, 8, 16, 1024], 100_000, 10),
];

fn main() {
    println!(
        "{:>6} {:>8} {:>3} {:>10} {:>10} {:>12} {:>10} {:>18}",
        "CPUs", "tasks", "R", "simulated", "CPU time", "events", "ns/event", "µs/CPU and second"
    );
    for &(cpus, domains, tasks, seconds) in CASES {
        let mut scenario = Scenario::new(Topology::new(cpus, domains));
        let group = format!("low:shares=2,tasks={tasks},busy=~100ms,sleep=~100ms");
        match parse_group(&group) {
            Ok(group) => scenario.groups.push(group),
            Err(error) => return eprintln!("{error}"),
        }
        scenario.time_ns = seconds * 1_000_000_000;
        let start = cpu_seconds();
        let outcome = match simulate(&scenario, 1, &mut Unobserved) {
            Ok(outcome) => outcome,
            Err(error) => return eprintln!("{error}"),
        };
        let real = cpu_seconds() - start;
        println!(
            "{cpus:>6} {tasks:>8} {:>3} {seconds:>8} s {real:>8.3} s {:>12} {:>10.1} {:>18.1}",
            scenario.resolution,
            outcome.events,
            real * 1e9 / outcome.events as f64,
            real * 1e6 / (cpus as f64 * (seconds + 1) as f64),
        );
    }
}
