//! Locks that keep threads from running side by side.

use crate::threads::report::{BetweenThreads, LockReport, Of};

/// A lock that keeps threads from running side by side.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Serialising<'l> {
    /// It.
    pub lock: &'l LockReport,
    /// The share of the time of all calls for which it is held.
    pub held: f64,
    /// The share for which it is asked for.
    pub asked: f64,
}

impl Serialising<'_> {
    /// The largest number of threads that can be at work at once, if all do the work of the recorded calls; `None` if
    /// that is all of them.
    pub fn most_threads(&self) -> Option<f64> {
        // Waiting is no work.
        let most = (1.0 - self.asked).max(self.held) / self.held.max(f64::MIN_POSITIVE);
        Some(most).filter(|most| *most < self.lock.threads as f64)
    }
}

impl BetweenThreads {
    /// The locks that only one thread has at a time and that are held for so much of the calls' time, or asked for so
    /// long, that threads hardly run side by side; the worst first. Nothing of kernels, whose times are counts of
    /// accesses.
    pub fn serialising(&self) -> Vec<Serialising<'_>> {
        const LEAST_HELD: f64 = 0.3;
        const LEAST_ASKED: f64 = 0.1;
        let time: u64 = self.threads.iter().map(|thread| thread.time).sum();
        let share = |part: u64| (part as f64 / time.max(1) as f64).min(1.0);
        let several = self
            .locks
            .iter()
            .filter(|lock| self.of == Of::Threads && lock.threads > 1 && lock.kind.is_exclusive());
        let all = several.map(|lock| Serialising {
            lock,
            held: share(lock.held_time),
            asked: share(lock.asked_time),
        });
        let is_worth_a_word = |one: &Serialising<'_>| {
            one.asked >= LEAST_ASKED || one.held >= LEAST_HELD && one.most_threads().is_some()
        };
        let mut all: Vec<Serialising<'_>> = all.filter(is_worth_a_word).collect();
        all.sort_by(|one, other| (other.held + other.asked).total_cmp(&(one.held + one.asked)));
        all
    }

    /// True when no recorded call was under way while one of another thread was.
    pub fn is_without_overlap(&self) -> bool {
        self.threads.iter().all(|thread| thread.time_beside_others == 0)
    }
}
