//! The calls of threads, where each thread may have the same number.

use lineup_model::access::{Call, ThreadId};
use lineup_recording::ThreadBudget;
use std::collections::{HashMap, HashSet};

/// The positions of each thread's calls in the order of recording, see [`ThreadBudget`].
#[derive(Default)]
pub(super) struct Threads {
    budgets: HashMap<(ThreadId, u16), ThreadBudget>,
    /// By thread: inner calls whose outer call is still to follow, which share its fate, as region and position in the
    /// order of events.
    inner: HashMap<ThreadId, Vec<(u16, u64)>>,
    calls: HashMap<(ThreadId, u16), Vec<(u64, u64)>>,
}

impl Threads {
    /// Takes in a thread's next call; the calls arrive in the order of their ends.
    pub(super) fn take(&mut self, call: &Call) {
        let inner = self.inner.entry(call.thread).or_default();
        inner.push((call.region.0, call.entered_at));
        // One inside another has no times of its own.
        let Some(time) = call.times.first() else { return };
        let budget = self.budgets.entry((call.thread, call.region.0)).or_default();
        let position = budget.position(time.cycles);
        budget.take();
        for (region, entered_at) in std::mem::take(inner) {
            self.calls.entry((call.thread, region)).or_default().push((position, entered_at));
        }
    }

    /// The calls beyond the budget, by their positions in the order of events.
    pub(super) fn left_out(self, most: usize) -> HashSet<u64> {
        let mut left_out = HashSet::new();
        for mut calls in self.calls.into_values() {
            calls.sort_unstable();
            left_out.extend(calls.into_iter().skip(most).map(|(_, entered_at)| entered_at));
        }
        left_out
    }
}
