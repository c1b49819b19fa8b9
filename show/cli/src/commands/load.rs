//! `lineup load`: background load to measure under. It ends with its parent, with its time, or with
//! the first signal, and takes its children and control groups along.

use crate::options::quantities::Span;
use crate::terminal::outcome::Outcome;
use crate::terminal::output::write_result;
use anyhow::{Context, Result, bail};
use lineup_load::cgroup::{Group, Hierarchy};
use lineup_load::memory::{Walk, stress, thrash};
use lineup_load::pingpong::{RoundTrips, round_trips};
use lineup_load::tasks::sleep_and_work;
use lineup_load::utilisation::{Snapshot, Utilisation};
use lineup_load::{LoadError, Stop};
use lineup_model::figure;
use lineup_stats::random::Seed;
use lineup_study::interrupt::Interrupts;
use lineup_study::process::{Streams, Waiting};
use lineup_study::run::Run;
use std::str::FromStr;
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// Puts load on the machine to measure under: memory stress, cache thrash, pipe ping-pong, weighted
/// groups of tasks. Prints a utilisation table with --every.
#[derive(clap::Args)]
pub(crate) struct Load {
    /// Memory workers: allocate, dirty, re-read, free, over and over.
    #[arg(long, default_value_t = 0)]
    vm: u32,
    /// Bytes per memory worker: 32M, 1G.
    #[arg(long, default_value = "256M")]
    vm_bytes: Bytes,
    /// Workers that thrash caches by sweeping a buffer line after line. Prefetchers see it coming: it
    /// empties caches less than the random walk does.
    #[arg(long, default_value_t = 0)]
    thrash_linear: u32,
    /// Workers that thrash caches by walking a random cycle through all lines of a buffer.
    #[arg(long, default_value_t = 0)]
    thrash_random: u32,
    /// Bytes per thrashing worker; several times the last-level cache is best.
    #[arg(long, default_value = "64M")]
    thrash_bytes: Bytes,
    /// Make this many round trips through a pair of pipes, say what one took, and end.
    #[arg(long, value_name = "TRIPS")]
    ping_pong: Option<u64>,
    /// Keep both ends of the ping-pong on this CPU.
    #[arg(long, requires = "ping_pong")]
    ping_pong_cpu: Option<u32>,
    /// A control group with this many CPU shares (1024 is usual) and tasks that sleep and work by
    /// turns, as SHARES:TASKS. May be repeated.
    #[arg(long = "group", value_name = "SHARES:TASKS")]
    groups: Vec<GroupPlan>,
    /// Tasks that sleep and work by turns, in no group of their own.
    #[arg(long, default_value_t = 0)]
    tasks: u32,
    /// Mean span of sleep and of work of the tasks.
    #[arg(long, default_value = "100ms")]
    task_span: Span,
    /// End after this long; without it, load until a signal ends it.
    #[arg(long)]
    time: Option<Span>,
    /// Print each CPU's utilisation at this interval, and the average at the end.
    #[arg(long, value_name = "SPAN")]
    every: Option<Span>,
    /// Seed of all random numbers.
    #[arg(long, default_value_t = Seed::default().0)]
    seed: u64,
}

/// A size typed as `32M`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bytes(u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, shift) = match text.char_indices().last() {
            Some((at, 'K' | 'k')) => (&text[..at], 10),
            Some((at, 'M' | 'm')) => (&text[..at], 20),
            Some((at, 'G' | 'g')) => (&text[..at], 30),
            _ => (text, 0),
        };
        let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
        bytes.map(Bytes).ok_or_else(|| format!("{text:?} is not a size; write 32M or 1G"))
    }
}

/// A group typed as `SHARES:TASKS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct GroupPlan {
    shares: u64,
    tasks: u32,
}

impl FromStr for GroupPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (shares, tasks) = text.split_once(':')?;
            Some(Self { shares: shares.parse().ok()?, tasks: tasks.parse().ok()? })
        };
        parse().ok_or_else(|| format!("{text:?} is not a group; write SHARES:TASKS such as 2:50"))
    }
}

/// The child of a group: dropped before its group, which must be empty to go.
struct Member {
    _child: Waiting,
    _group: Group,
}

/// Runs the command.
pub(crate) fn run(load: Load) -> Result<Outcome> {
    if is_idle(&load) {
        bail!(
            "nothing to do; give --vm, --thrash-random, --ping-pong, --tasks or --group (or --every to watch)"
        );
    }
    let interrupts = Interrupts::watch().context("watching for signals")?;
    let members = groups(&load, &interrupts)?;
    let stop = Stop::new();
    let workers = workers(&load, &stop);
    let trips = ping_pong(&load, &stop);
    let watched = watch(&load, &interrupts, trips.as_ref());
    stop.set();
    drop(members);
    for worker in workers {
        worker.join().unwrap_or(Ok(()))?;
    }
    if let Some(trips) = trips {
        let trips = trips.join().map_err(|_| anyhow::anyhow!("the ping-pong thread failed"))??;
        say(trips)?;
    }
    watched?;
    Ok(Outcome::Done)
}

fn is_idle(load: &Load) -> bool {
    let workers = [load.vm, load.thrash_linear, load.thrash_random, load.tasks];
    workers == [0; 4] && load.ping_pong.is_none() && load.groups.is_empty() && load.every.is_none()
}

/// One child per group, moved into it before it starts to work.
fn groups(load: &Load, interrupts: &Interrupts) -> Result<Vec<Member>> {
    if load.groups.is_empty() {
        return Ok(Vec::new());
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").context("reading the mounts")?;
    let hierarchy = Hierarchy::find(&mounts)?;
    hierarchy.sweep(|owner| std::path::Path::new(&format!("/proc/{owner}")).exists());
    let mut members = Vec::new();
    for (number, plan) in (0u32..).zip(&load.groups) {
        let group = hierarchy.create(std::process::id(), number, plan.shares)?;
        let ourselves = std::env::current_exe().context("finding the lineup program itself")?;
        let command = [
            ourselves.into_os_string(),
            "load".into(),
            format!("--tasks={}", plan.tasks).into(),
            format!("--task-span={}ms", load.task_span.0 / 1_000_000).into(),
            format!("--seed={}", Seed(load.seed).part(number.into()).0).into(),
        ];
        let invocation = Run { command: command.to_vec(), ..Run::default() };
        let mut child = Waiting::start(&invocation, Streams::Shown, interrupts)?;
        group.add(u32::try_from(child.pid().as_raw_nonzero().get())?)?;
        child.release()?;
        members.push(Member { _child: child, _group: group });
    }
    Ok(members)
}

/// All loads that are threads of this process.
fn workers(load: &Load, stop: &Stop) -> Vec<JoinHandle<Result<(), LoadError>>> {
    let mut workers = Vec::new();
    for _ in 0..load.vm {
        let (bytes, stop) = (load.vm_bytes.0, stop.clone());
        workers.push(spawn(move || stress(bytes, &stop).map(drop)));
    }
    for (walk, count) in [(Walk::Linear, load.thrash_linear), (Walk::Random, load.thrash_random)] {
        for worker in 0..count {
            let (bytes, stop) = (load.thrash_bytes.0, stop.clone());
            let seed = Seed(load.seed).part(worker.into());
            workers.push(spawn(move || thrash(bytes, walk, seed, &stop).map(drop)));
        }
    }
    if load.tasks > 0 {
        let (tasks, span) = (load.tasks, Duration::from_nanos(load.task_span.0));
        let (seed, stop) = (Seed(load.seed), stop.clone());
        workers.push(spawn(move || {
            sleep_and_work(tasks, span, seed, &stop);
            Ok(())
        }));
    }
    workers
}

fn ping_pong(load: &Load, stop: &Stop) -> Option<JoinHandle<Result<RoundTrips, LoadError>>> {
    let (count, cpu, stop) = (load.ping_pong?, load.ping_pong_cpu, stop.clone());
    Some(spawn(move || round_trips(count, cpu, &stop)))
}

/// A line to read, and lines that `lineup compare` and `measure` parse: a trip's time, and the CPUs of its ends, which
/// decide it.
fn say(trips: RoundTrips) -> Result<()> {
    let (Some(each), Some(apart)) = (trips.nanoseconds_each(), trips.apart_percent()) else { return Ok(()) };
    let line = format!(
        "{} round trips in {}, {} each, the ends on different CPUs in {}\n\
         lineup-metric round-trip {each:.1} ns\nlineup-metric ends-apart {apart:.3} %\n",
        trips.count,
        figure::time_ns(trips.elapsed.as_nanos() as f64),
        figure::time_ns(each),
        figure::share(apart / 100.0)
    );
    write_result(None, &line)
}

/// The longest wait between checks for the load's end.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until the load is to end, and prints the utilisation on the way.
fn watch(
    load: &Load,
    interrupts: &Interrupts,
    trips: Option<&JoinHandle<Result<RoundTrips, LoadError>>>,
) -> Result<()> {
    let started = Instant::now();
    let end = load.time.map(|span| Duration::from_nanos(span.0));
    let every = load.every.map(|span| Duration::from_nanos(span.0));
    let first = snapshot()?;
    let (mut last, mut due) = (first.clone(), every);
    if every.is_some() {
        write_result(None, &format!("{:>8} {}\n", "seconds", Utilisation::header()))?;
    }
    loop {
        let elapsed = started.elapsed();
        let is_over = end.is_some_and(|end| elapsed >= end)
            || interrupts.check().is_err()
            || trips.is_some_and(JoinHandle::is_finished);
        if due.is_some_and(|due| elapsed >= due) {
            let now = snapshot()?;
            print_table(&format!("{:.1}", elapsed.as_secs_f64()), &now.since(&last))?;
            (last, due) = (now, due.zip(every).map(|(due, every)| due + every));
        }
        if is_over {
            break;
        }
        sleep(LOOK);
    }
    if every.is_some() {
        print_table("Average", &snapshot()?.since(&first))?;
    }
    Ok(())
}

fn snapshot() -> Result<Snapshot> {
    let text = std::fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
    Ok(Snapshot::parse(&text)?)
}

fn print_table(when: &str, used: &Utilisation) -> Result<()> {
    let lines: Vec<String> = used.lines().iter().map(|line| format!("{when:>8} {line}\n")).collect();
    write_result(None, &lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_groups_are_read() {
        assert_eq!("32M".parse(), Ok(Bytes(32 << 20)));
        assert_eq!("4096".parse(), Ok(Bytes(4096)));
        assert_eq!("2:50".parse(), Ok(GroupPlan { shares: 2, tasks: 50 }));
        for bad in ["", "M", "1T", "99999999999G", "-1"] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad}");
        }
        for bad in ["2", "2:", ":5", "a:b", "2:-1"] {
            assert!(bad.parse::<GroupPlan>().is_err(), "{bad}");
        }
    }
}
