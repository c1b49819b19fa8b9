//! This machine: its CPUs, and the threads of a control group.

use anyhow::{Context, Result, bail};
use lineup_sched::observed::{Observed, ObservedGroup, ObservedThread};
use lineup_sched::scenario::{ROOT, Topology};
use lineup_sched::weights::{NICE_0_WEIGHT, shares_of_cpu_weight};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The CPUs of this machine, with threads of a core and CPUs that share the last cache as domains.
pub(crate) fn topology() -> Result<Topology> {
    let cpus = std::thread::available_parallelism().context("counting the CPUs")?.get();
    let cpu = Path::new("/sys/devices/system/cpu/cpu0");
    let threads = members(&cpu.join("topology/thread_siblings_list"));
    let last_cache =
        (0..8).rev().find_map(|index| members(&cpu.join(format!("cache/index{index}/shared_cpu_list"))));
    let mut spans = Vec::new();
    for span in [threads, last_cache].into_iter().flatten() {
        let smaller = spans.last().copied().unwrap_or(1);
        if span > smaller && span % smaller == 0 && cpus.is_multiple_of(span) {
            spans.push(span);
        }
    }
    let mut topology = Topology::new(cpus, &spans);
    topology.smt = threads.is_some_and(|threads| threads > 1) && topology.domains.len() > 1;
    Ok(topology)
}

/// The number of CPUs in a list such as `0-3,8-11`.
fn members(path: &Path) -> Option<usize> {
    let text = fs::read_to_string(path).ok()?;
    let mut count = 0;
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        count += last.parse::<usize>().ok()?.checked_sub(first.parse().ok()?)? + 1;
    }
    Some(count)
}

/// A group of the tree, before its threads are known.
struct GroupFolder {
    path: PathBuf,
    name: String,
    parent: String,
    shares: u64,
}

/// Watches the control group at `path` and those below it for `window_ns`.
pub(crate) fn observe(path: &Path, window_ns: u64) -> Result<Observed> {
    let mut found = Vec::new();
    let name = path.file_name().map_or("root", |name| name.to_str().unwrap_or("root"));
    find(path, name, ROOT, &mut found)?;
    let before = threads(&found)?;
    let start = Instant::now();
    std::thread::sleep(Duration::from_nanos(window_ns));
    let after = threads(&found)?;
    let window_ns = u64::try_from(start.elapsed().as_nanos()).context("the window is too long")?;
    let groups = found
        .into_iter()
        .zip(before.into_iter().zip(after))
        .map(|(found, (before, after))| ObservedGroup {
            name: found.name,
            parent: found.parent,
            shares: found.shares,
            threads: changes(&before, &after),
        })
        .collect();
    Ok(Observed { window_ns, groups })
}

fn find(path: &Path, name: &str, parent: &str, found: &mut Vec<GroupFolder>) -> Result<()> {
    let shares = shares(path)?;
    found.push(GroupFolder { path: path.to_path_buf(), name: name.into(), parent: parent.into(), shares });
    let entries = fs::read_dir(path).with_context(|| format!("reading {}", path.display()))?;
    let mut below: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    below.sort();
    for child in below {
        let leaf = child.file_name().unwrap_or_default().to_string_lossy().into_owned();
        find(&child, &format!("{name}/{leaf}"), name, found)?;
    }
    Ok(())
}

/// `cpu.shares`, or `cpu.weight` in its unit; a group at the top of the tree has neither.
fn shares(path: &Path) -> Result<u64> {
    if !path.join("cgroup.procs").exists() {
        bail!("{} is no control group (it has no cgroup.procs)", path.display());
    }
    let read =
        |file: &str| fs::read_to_string(path.join(file)).ok().and_then(|text| text.trim().parse().ok());
    match (read("cpu.shares"), read("cpu.weight")) {
        (Some(shares), _) => Ok(shares),
        (None, Some(weight)) => shares_of_cpu_weight(weight)
            .with_context(|| format!("{}: cpu.weight is {weight}, not 1 to 10000", path.display())),
        (None, None) => Ok(NICE_0_WEIGHT),
    }
}

/// Each group's threads with the scheduler's counts so far.
fn threads(found: &[GroupFolder]) -> Result<Vec<HashMap<u32, ObservedThread>>> {
    found.iter().map(|group| group_threads(&group.path)).collect()
}

fn group_threads(path: &Path) -> Result<HashMap<u32, ObservedThread>> {
    let list =
        ["tasks", "cgroup.threads"].into_iter().find_map(|file| fs::read_to_string(path.join(file)).ok());
    let list = list.with_context(|| format!("{}: reading its threads", path.display()))?;
    let mut threads = HashMap::new();
    for tid in list.lines().filter_map(|line| line.trim().parse::<u32>().ok()) {
        // A thread may be gone by now.
        let Ok(text) = fs::read_to_string(format!("/proc/{tid}/schedstat")) else { continue };
        let mut fields = text.split_whitespace().map(|field| field.parse::<u64>().ok());
        if let (Some(Some(ran_ns)), Some(Some(waited_ns)), Some(Some(turns))) =
            (fields.next(), fields.next(), fields.next())
        {
            threads.insert(tid, ObservedThread { ran_ns, waited_ns, turns });
        }
    }
    Ok(threads)
}

/// The changes of threads that were present both times, in the order of their numbers.
fn changes(
    before: &HashMap<u32, ObservedThread>,
    after: &HashMap<u32, ObservedThread>,
) -> Vec<ObservedThread> {
    let mut both: Vec<_> =
        after.iter().filter_map(|(tid, after)| Some((tid, before.get(tid)?, after))).collect();
    both.sort_by_key(|(tid, _, _)| **tid);
    both.into_iter()
        .map(|(_, before, after)| ObservedThread {
            ran_ns: after.ran_ns.saturating_sub(before.ran_ns),
            waited_ns: after.waited_ns.saturating_sub(before.waited_ns),
            turns: after.turns.saturating_sub(before.turns),
        })
        .collect()
}
