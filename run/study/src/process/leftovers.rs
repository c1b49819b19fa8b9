//! Processes that still run when the first one has ended: waited for or ended, the same in every run of a program.

use crate::error::Result;
use crate::process::child::Waiting;
use crate::process::run::{IDLE, Leftovers};
use std::time::{Duration, Instant};

/// The polling interval for the remaining processes.
const LOOK: Duration = Duration::from_millis(20);

/// Waits for them as the run demands, and ends the rest. Returns the time from `started` to the end of the last one
/// that ended by itself, and the number that had to be ended.
pub(crate) fn settle(
    waiting: &Waiting,
    started: Instant,
    deadline: Option<Instant>,
) -> Result<(Duration, usize)> {
    let (run, interrupts) = waiting.origin();
    let mut took = started.elapsed();
    // The processes that lived at the last look.
    let mut left = None;
    let mut work = Work::default();
    while !waiting.is_over(LOOK)? {
        interrupts.check()?;
        let living = waiting.descendants().living();
        if left.is_some_and(|left| living.len() < left) {
            took = started.elapsed();
        }
        left = Some(living.len());
        let ticks = living.iter().map(|one| one.ticks).sum();
        let is_idle = work.is_idle(ticks, living.iter().any(|one| one.is_working));
        let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let is_ended = match run.leftovers {
            Leftovers::WhileWorking => is_idle,
            Leftovers::Wait => false,
            Leftovers::End => true,
        };
        if is_ended || is_late {
            waiting.stop()?;
            return Ok((took, living.len()));
        }
    }
    Ok((left.map_or(took, |_| started.elapsed()), 0))
}

/// When processes last did something.
struct Work {
    ticks: u64,
    last: Instant,
}

impl Default for Work {
    fn default() -> Self {
        Work { ticks: 0, last: Instant::now() }
    }
}

impl Work {
    /// True when they have done nothing for long, judged by their processor time until now.
    fn is_idle(&mut self, ticks: u64, is_working: bool) -> bool {
        if is_working || ticks != self.ticks {
            *self = Work { ticks, last: Instant::now() };
        }
        self.last.elapsed() >= IDLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_idle_when_their_time_stands_still() {
        let mut work = Work::default();
        assert!(!work.is_idle(5, false));
        work.last -= IDLE;
        assert!(!work.is_idle(6, false), "they worked since");
        work.last -= IDLE;
        assert!(!work.is_idle(6, true), "they work now");
        work.last -= IDLE;
        assert!(work.is_idle(6, false));
    }
}
