//! A scenario from an observation of real groups and their threads.

use crate::error::Error;
use crate::scenario::{Clock, Group, Pattern, Scenario, Span, TaskSet, Topology};
use crate::weights::Resolution;

/// Observation of a machine's groups during a window.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// Length of the window, in nanoseconds.
    pub window_ns: u64,
    /// The groups, parents before children.
    pub groups: Vec<ObservedGroup>,
}

/// One group.
#[derive(Clone, PartialEq, Debug)]
pub struct ObservedGroup {
    /// Its name.
    pub name: String,
    /// Its parent's name, or [`crate::scenario::ROOT`].
    pub parent: String,
    /// Its weight, as `cpu.shares`.
    pub shares: u64,
    /// Its threads that were there at both ends of the window.
    pub threads: Vec<ObservedThread>,
}

/// A thread's activity in the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObservedThread {
    /// Time it ran.
    pub ran_ns: u64,
    /// Time it was runnable and waited.
    pub waited_ns: u64,
    /// The number of times it was put on a CPU.
    pub turns: u64,
}

/// Threads that ran for less than this part of the window are left out: one in a thousand.
const LEAST_SHARE: u64 = 1_000;

impl ObservedThread {
    /// Bursts of the mean observed length. The sleeps keep the thread's share of busy time, taken over the
    /// time in which it did not wait. `None` if it ran too little to matter.
    fn behaviour(&self, window_ns: u64) -> Option<TaskSet> {
        if self.turns == 0 || self.ran_ns < window_ns / LEAST_SHARE {
            return None;
        }
        let own_ns = window_ns.saturating_sub(self.waited_ns).max(self.ran_ns);
        let asleep_ns = own_ns - self.ran_ns;
        let pattern = if asleep_ns < own_ns / 50 {
            Pattern::Always
        } else {
            let mean = |ns: u64| Span::around((ns / self.turns).max(1));
            Pattern::Random { busy: mean(self.ran_ns), sleep: mean(asleep_ns) }
        };
        Some(TaskSet { count: 1, nice: 0, pattern, clock: Clock::Cpu })
    }
}

impl Observed {
    /// A scenario of these groups on `topology`, at the resolution that 64-bit systems use today.
    ///
    /// # Errors
    /// [`Error::Scenario`] if no thread ran enough to matter, or a group's weight is out of range.
    pub fn scenario(&self, topology: Topology) -> Result<Scenario, Error> {
        let mut scenario = Scenario::new(topology);
        scenario.resolution = Resolution::TEN;
        let group = |group: &ObservedGroup| Group {
            name: group.name.clone(),
            parent: group.parent.clone(),
            shares: group.shares,
            tasks: group.threads.iter().filter_map(|thread| thread.behaviour(self.window_ns)).collect(),
        };
        scenario.groups = self.groups.iter().map(group).collect();
        if scenario.tasks() == 0 {
            let reason = "no thread of these groups ran for a thousandth of the window; look for longer, or \
                          while they work";
            return Err(Error::scenario("groups", reason));
        }
        scenario.check()?;
        Ok(scenario)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ROOT;
    use crate::sim::{Unobserved, simulate};

    const SECOND: u64 = 1_000_000_000;

    fn observed(threads: Vec<ObservedThread>) -> Observed {
        let group = ObservedGroup { name: "g".into(), parent: ROOT.into(), shares: 1024, threads };
        Observed { window_ns: 5 * SECOND, groups: vec![group] }
    }

    #[test]
    fn a_thread_that_never_waited_is_as_busy_in_the_model() {
        let thread = ObservedThread { ran_ns: SECOND, waited_ns: 0, turns: 100 };
        let scenario = observed(vec![thread]).scenario(Topology::new(2, &[])).expect("it ran");
        let outcome = simulate(&scenario, 1, &mut Unobserved).expect("valid");
        assert!((outcome.usr_percent() - 10.0).abs() < 1.0, "{}", outcome.usr_percent());
    }

    #[test]
    fn a_thread_that_only_waited_or_ran_is_busy_without_end() {
        let thread = ObservedThread { ran_ns: 2 * SECOND, waited_ns: 3 * SECOND, turns: 700 };
        let scenario = observed(vec![thread]).scenario(Topology::new(2, &[])).expect("it ran");
        assert_eq!(scenario.groups[0].tasks[0].pattern, Pattern::Always);
    }

    #[test]
    fn idle_groups_are_refused() {
        let thread = ObservedThread { ran_ns: 1_000, waited_ns: 0, turns: 3 };
        assert!(observed(vec![thread]).scenario(Topology::new(2, &[])).is_err());
    }
}
