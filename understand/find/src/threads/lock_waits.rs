//! Locks that threads wait for: a layout does not help where one lock makes threads take turns.

use crate::hand_findings::LockWaits;
use crate::stalls::counts::FunctionCounts;
use crate::threads::contention::{LEAST_WAITS, Waits};
use crate::work::Work;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A lock with a smaller share of all waits of threads is not listed. Most waits may be for the data that it hands over.
const LEAST_SHARE: f64 = 0.02;
/// Locks that are listed, and functions of each.
const MOST_LOCKS: usize = 3;
const MOST_FUNCTIONS: usize = 3;

/// The first words of the C library's functions that take and give back locks. C++'s `std::mutex` calls them as well.
const LOCKING: [&str; 3] = ["pthread_mutex_", "pthread_rwlock_", "pthread_spin_"];

impl Work<'_, '_> {
    /// The locks that threads wait for, most waits first: the C library's, and words that code takes by itself.
    pub(crate) fn lock_waits(&mut self) -> Vec<LockWaits> {
        let mut locks: BTreeMap<String, Waits> = BTreeMap::new();
        let mut functions: BTreeMap<String, u64> = BTreeMap::new();
        let by_use = std::mem::take(&mut self.between.by_use);
        for ((pc, spot), waits) in by_use {
            let Some(counts) = self.attribution.function_of(pc) else { continue };
            if is_locking(&counts.name) {
                let name = self.lock_name(spot);
                let known = locks.entry(name).or_default();
                *known = known.plus(waits);
            } else if counts.image == self.program {
                *functions.entry(counts.name.clone()).or_default() += waits.all();
            }
        }
        for (spot, word) in self.taken_words() {
            let known = locks.entry(self.lock_name(spot)).or_default();
            *known = known.plus(Waits { of_same_bytes: word.waits, of_line_alone: 0 });
        }
        let all = self.between.all.all();
        locks.retain(|_, waits| waits.all() >= LEAST_WAITS && waits.all() as f64 >= LEAST_SHARE * all as f64);
        if locks.is_empty() {
            return Vec::new();
        }
        let functions = self.functions_beside_locks(functions);
        let mut found: Vec<LockWaits> = locks
            .into_iter()
            .map(|(name, waits)| LockWaits {
                name,
                functions: functions.clone(),
                waits: self.thread_waits(waits),
                share: waits.all() as f64 / all.max(1) as f64,
                next: self.next_of_locks(&functions),
            })
            .collect();
        found.sort_by(|one, other| {
            other.waits.all().total_cmp(&one.waits.all()).then_with(|| one.name.cmp(&other.name))
        });
        found.truncate(MOST_LOCKS);
        found
    }

    /// The program's functions that wait most, as they use what a lock hands over. Where none waits, the one with most
    /// instructions.
    fn functions_beside_locks(&self, waiting: BTreeMap<String, u64>) -> Vec<String> {
        let mut functions: Vec<(String, u64)> = waiting.into_iter().filter(|(_, waits)| *waits > 0).collect();
        if functions.is_empty() {
            let own = |counts: &&FunctionCounts| counts.image == self.program;
            let busiest =
                self.attribution.functions.iter().filter(own).max_by_key(|counts| counts.instructions);
            functions.extend(busiest.map(|counts| (counts.name.clone(), counts.instructions)));
        }
        functions.sort_by_key(|(name, waits)| (Reverse(*waits), name.clone()));
        functions.into_iter().take(MOST_FUNCTIONS).map(|(name, _)| name).collect()
    }

    /// The member or variable that a lock's word is in, without the C library's own members.
    fn lock_name(&mut self, spot: u32) -> String {
        let name = self.word_name(spot);
        let parts = name.split('.').enumerate().take_while(|(at, part)| *at == 0 || !part.starts_with("__"));
        parts.map(|(_, part)| part).collect::<Vec<_>>().join(".")
    }
}

/// True for a function of the C library that takes a lock or gives it back.
pub(super) fn is_locking(function: &str) -> bool {
    let name = function.trim_start_matches('_');
    let name = name.strip_prefix("GI_").unwrap_or(name).trim_start_matches('_');
    LOCKING.iter().any(|begin| name.starts_with(begin)) || name.starts_with("lll_lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_locks_are_known_by_the_names_that_the_c_library_gives_them() {
        for name in [
            "pthread_mutex_lock",
            "___pthread_mutex_lock",
            "__GI___pthread_mutex_unlock",
            "__pthread_rwlock_rdlock",
        ] {
            assert!(is_locking(name), "{name}");
        }
        for name in ["pthread_create", "handle", "___pthread_mutexattr_init", "lock"] {
            assert!(!is_locking(name), "{name}");
        }
    }
}
