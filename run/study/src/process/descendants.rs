//! The processes of a run, as `/proc` shows them: all that descend from the run's keeper, see
//! [`crate::process::keeper`].

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

/// The longest wait for killed processes. Those of another user cannot be killed.
pub(crate) const KILLED: Duration = Duration::from_secs(10);

/// A process's descendants. A look sees them at about that time only: only the keeper knows when none is left.
#[derive(Clone, Debug)]
pub(crate) struct Descendants {
    ancestor: Pid,
}

/// A living process and its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Living {
    pub(crate) pid: Pid,
    /// Processor time used so far, in the system's ticks.
    pub(crate) ticks: u64,
    /// It runs, or waits for a disk.
    pub(crate) is_working: bool,
}

/// A process, and the numbers of its parent and its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Process {
    parent: i32,
    group: i32,
    /// `None` for one that has ended.
    living: Option<Living>,
}

impl Descendants {
    /// All that descend from it, and not itself.
    pub(crate) fn of(ancestor: Pid) -> Self {
        Descendants { ancestor }
    }

    /// The living descendants.
    pub(crate) fn living(&self) -> Vec<Living> {
        let (ours, _) = self.parted();
        ours.into_iter().filter_map(|process| process.living).collect()
    }

    /// The processes of the system that descend from it, and the others.
    fn parted(&self) -> (Vec<Process>, Vec<Process>) {
        let processes: BTreeMap<i32, Process> =
            all().filter_map(|pid| Some((pid.as_raw_nonzero().get(), look_at(pid)?))).collect();
        let descends = |pid: &i32| self.is_above(*pid, |pid| processes.get(&pid).map(|one| one.parent));
        let (ours, others): (Vec<_>, Vec<_>) = processes.iter().partition(|(pid, _)| descends(pid));
        let alone = |parted: Vec<(&i32, &Process)>| parted.into_iter().map(|(_, process)| *process).collect();
        (alone(ours), alone(others))
    }

    /// Sends all of them a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let (ours, others) = self.parted();
        // All of a group at once: none of them can make another meanwhile that does not get it.
        let mut groups: BTreeSet<i32> = ours.iter().map(|process| process.group).collect();
        for other in &others {
            groups.remove(&other.group);
        }
        for group in groups.iter().filter_map(|group| Pid::from_raw(*group)) {
            let _ = kill_process_group(group, signal);
        }
        let alone = ours.iter().filter(|process| !groups.contains(&process.group));
        for living in alone.filter_map(|process| process.living) {
            // Another process may meanwhile have the number of one that has ended.
            let Ok(process) = pidfd_open(living.pid, PidfdFlags::empty()) else { continue };
            if self.have(living.pid) {
                let _ = pidfd_send_signal(&process, signal);
            }
        }
    }

    /// Whether a process descends from the ancestor now.
    pub(crate) fn have(&self, pid: Pid) -> bool {
        let parent = |pid: i32| look_at(Pid::from_raw(pid)?).map(|one| one.parent);
        self.is_above(pid.as_raw_nonzero().get(), parent)
    }

    /// Follows each process's parent up; true when the ancestor is among them.
    fn is_above(&self, pid: i32, parent: impl Fn(i32) -> Option<i32>) -> bool {
        let above = std::iter::successors(parent(pid), |pid| parent(*pid)).take_while(|pid| *pid > 0);
        above.into_iter().any(|pid| pid == self.ancestor.as_raw_nonzero().get())
    }
}

/// Every process of the system.
pub(crate) fn all() -> impl Iterator<Item = Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

/// Searches a process's initial environment for a variable, `NAME=VALUE`; false when it may not be read.
pub(crate) fn has_variable(pid: Pid, is_wanted: impl Fn(&[u8]) -> bool) -> bool {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(is_wanted)
}

/// A process's state; `None` when the process does not exist.
fn look_at(pid: Pid) -> Option<Process> {
    let status = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    parse(pid, &status)
}

/// A process's parent and state, from its status line. Its name stands first, in parentheses, and may hold any
/// characters.
fn parse(pid: Pid, status: &str) -> Option<Process> {
    let (_, values) = status.rsplit_once(')')?;
    let values: Vec<&str> = values.split_whitespace().collect();
    let [state, parent, group, ..] = *values else { return None };
    let number = |index: usize| values.get(index)?.parse::<u64>().ok();
    // The first thread may have ended before others.
    let has_ended = matches!(state, "X" | "x") || (state == "Z" && number(17)? <= 1);
    let ticks = number(11)? + number(12)?;
    let living = Living { pid, ticks, is_working: matches!(state, "R" | "D") };
    let (parent, group) = (parent.parse().ok()?, group.parse().ok()?);
    Some(Process { parent, group, living: (!has_ended).then_some(living) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_from_its_status_whatever_its_name() {
        let pid = Pid::from_raw(12).unwrap();
        let status = |state: &str, threads: u32| {
            format!("12 (a) b (c) {state} 1 77 77 0 -1 4194560 1 0 0 0 30 4 0 0 20 0 {threads} 0")
        };
        let living = Living { pid, ticks: 34, is_working: false };
        assert_eq!(parse(pid, &status("S", 1)), Some(Process { parent: 1, group: 77, living: Some(living) }));
        assert!(parse(pid, &status("R", 1)).unwrap().living.unwrap().is_working);
        assert_eq!(parse(pid, &status("Z", 1)).unwrap().living, None, "it has ended");
        assert_eq!(parse(pid, &status("Z", 2)).unwrap().living, Some(living), "its first thread has");
        assert_eq!(parse(pid, "nonsense"), None);
    }

    #[test]
    fn whoever_has_it_above_descends_from_it() {
        let descendants = Descendants::of(Pid::from_raw(5).unwrap());
        let parents = BTreeMap::from([(5, 1), (6, 5), (9, 6), (7, 1), (8, 3)]);
        let descends = |pid| descendants.is_above(pid, |pid| parents.get(&pid).copied());
        assert!(descends(6) && descends(9));
        assert!(!descends(5) && !descends(7) && !descends(8) && !descends(1));
    }
}
