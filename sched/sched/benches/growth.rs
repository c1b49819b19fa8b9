//! Growth of the model's run time with the machine: events, CPU time and nanoseconds per event by CPUs and
//! tasks, and the cost of an event relative to the smallest machine of its block. Growth is linear while that
//! ratio stays at one. The first line is the target of 60 simulated seconds of 16 CPUs and 50 tasks in less
//! than one.

use lineup_sched::error::Error;
use lineup_sched::scenario::{Scenario, Topology, parse_group};
use lineup_sched::sim::{Unobserved, simulate};
use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process, in seconds: unlike wall-clock time it does not count other processes.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A machine and its load.
struct Case {
    cpus: usize,
    domains: &'static [usize],
    tasks: usize,
    simulated_s: u64,
}

const fn case(cpus: usize, domains: &'static [usize], tasks: usize, simulated_s: u64) -> Case {
    Case { cpus, domains, tasks, simulated_s }
}

/// Three tasks per CPU, and about a hundred.
const BLOCKS: &[&[Case]] = &[
    &[
        case(16, &[2, 8, 16], 50, 60),
        case(64, &[2, 8, 16, 64], 200, 60),
        case(256, &[2, 8, 16, 256], 800, 60),
        case(1024, &[2, 8, 16, 1024], 3_200, 60),
    ],
    &[
        case(16, &[2, 8, 16], 1_563, 10),
        case(64, &[2, 8, 16, 64], 6_250, 10),
        case(256, &[2, 8, 16, 256], 25_000, 10),
        case(1024, &[2, 8, 16, 1024], 100_000, 10),
    ],
];

/// Runs of every case. The fastest counts, since other processes can only slow one down.
const RUNS: usize = 3;

/// Events, and CPU seconds of the fastest run.
fn measured(case: &Case) -> Result<(u64, f64), Error> {
    let mut scenario = Scenario::new(Topology::new(case.cpus, case.domains));
    let group = format!("low:shares=2,tasks={},busy=~100ms,sleep=~100ms", case.tasks);
    scenario.groups.push(parse_group(&group)?);
    scenario.time_ns = case.simulated_s * 1_000_000_000;
    let mut events = 0;
    let mut fastest_s = f64::INFINITY;
    for _ in 0..RUNS {
        let start_s = cpu_seconds();
        events = simulate(&scenario, 1, &mut Unobserved)?.events;
        fastest_s = fastest_s.min(cpu_seconds() - start_s);
    }
    Ok((events, fastest_s))
}

fn main() -> Result<(), Error> {
    println!("  CPUs   tasks  simulated      events  CPU time  ns/event  ratio");
    for block in BLOCKS {
        let mut first_ns = None;
        for case in *block {
            let (events, seconds) = measured(case)?;
            let event_ns = seconds * 1e9 / events as f64;
            println!(
                "{:>6} {:>7} {:>8} s {events:>11} {seconds:>7.3} s {event_ns:>9.1} {:>6.2}",
                case.cpus,
                case.tasks,
                case.simulated_s,
                event_ns / *first_ns.get_or_insert(event_ns),
            );
        }
        println!();
    }
    Ok(())
}
