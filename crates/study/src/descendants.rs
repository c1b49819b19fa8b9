//! The processes of a run: what was started and all that came from it, also what left the process group.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often the processes are looked through: one may have forked while it was being looked for.
const ROUNDS: usize = 20;

/// Runs started so far.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// How the processes of a run are known: by their group, and by a variable in the environment that they began with.
#[derive(Clone, Debug)]
pub(crate) struct Descendants {
    group: Pid,
    mark: Mark,
}

/// A variable that only the processes of one run have.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    name: OsString,
    value: OsString,
}

/// What a living process does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Living {
    pub(crate) pid: Pid,
    /// Processor time used so far, in the system's ticks.
    pub(crate) ticks: u64,
    /// It runs, or waits for a disk.
    pub(crate) is_working: bool,
}

impl Mark {
    /// A mark of a run of its own, made of one that all runs have.
    pub(crate) fn new((name, common): (&str, &OsStr)) -> Self {
        let mut value = common.to_owned();
        value.push(format!(".{}", RUNS.fetch_add(1, Ordering::Relaxed)));
        Mark { name: name.into(), value }
    }

    pub(crate) fn variable(&self) -> (&OsStr, &OsStr) {
        (&self.name, &self.value)
    }

    fn is_on(&self, pid: Pid) -> bool {
        let wanted = [self.name.as_bytes(), b"=", self.value.as_bytes()].concat();
        has_variable(pid, |variable| variable == wanted)
    }
}

impl Descendants {
    pub(crate) fn new(group: Pid, mark: Mark) -> Self {
        Descendants { group, mark }
    }

    /// Those that live, the leader of the group included.
    pub(crate) fn living(&self) -> Vec<Living> {
        all().filter_map(|pid| self.look_at(pid)).collect()
    }

    /// What a process does; `None` when it is none of these, or has ended.
    fn look_at(&self, pid: Pid) -> Option<Living> {
        let status = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        let (group, living) = parse(pid, &status)?;
        (group == self.group.as_raw_nonzero().get() || self.mark.is_on(pid)).then_some(living)
    }

    /// Tells all of them to end.
    pub(crate) fn signal(&self, signal: Signal) {
        // Who is gone needs no signal.
        let _ = kill_process_group(self.group, signal);
        for living in self.living() {
            let _ = kill_process(living.pid, signal);
        }
    }

    /// Ends all of them, and what they start meanwhile.
    pub(crate) fn kill(&self) {
        let _ = kill_process_group(self.group, Signal::KILL);
        for _ in 0..ROUNDS {
            let living = self.living();
            if living.is_empty() {
                return;
            }
            for one in living {
                let _ = kill_process(one.pid, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Every process of the system.
pub(crate) fn all() -> impl Iterator<Item = Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

/// Whether the environment that a process began with has such a variable, `NAME=VALUE`; not when we may not look.
pub(crate) fn has_variable(pid: Pid, is_wanted: impl Fn(&[u8]) -> bool) -> bool {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(is_wanted)
}

/// The group and the work of a process, from what follows its name, which may hold anything, in parentheses; `None` for one
/// that has ended.
fn parse(pid: Pid, status: &str) -> Option<(i32, Living)> {
    let (_, values) = status.rsplit_once(')')?;
    let values: Vec<&str> = values.split_whitespace().collect();
    let [state, _, group, ..] = *values else { return None };
    let number = |index: usize| values.get(index)?.parse::<u64>().ok();
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    let ticks = number(11)? + number(12)?;
    Some((group.parse().ok()?, Living { pid, ticks, is_working: matches!(state, "R" | "D") }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_from_its_status_whatever_its_name() {
        let pid = Pid::from_raw(12).unwrap();
        let status =
            |state: &str| format!("12 (a) b (c) {state} 1 77 77 0 -1 4194560 1 0 0 0 30 4 0 0 20 0 1 0");
        let (group, living) = parse(pid, &status("S")).unwrap();
        assert_eq!((group, living), (77, Living { pid, ticks: 34, is_working: false }));
        assert!(parse(pid, &status("R")).unwrap().1.is_working);
        assert_eq!(parse(pid, &status("Z")), None, "it has ended");
        assert_eq!(parse(pid, "nonsense"), None);
    }

    #[test]
    fn runs_have_marks_of_their_own() {
        let common = ("LINEUP_RUN", OsStr::new("12ab"));
        let (one, other) = (Mark::new(common), Mark::new(common));
        assert_ne!(one.variable().1, other.variable().1);
        assert!(one.variable().1.as_bytes().starts_with(b"12ab."));
    }
}
