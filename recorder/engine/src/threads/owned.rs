//! Property of threads in a program whose threads end without a report.

use crate::system;
use crate::system::lock::Lock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set when no C library reports the end of a thread.
static IS_ALONE: AtomicBool = AtomicBool::new(false);

/// Whether the program has no C library that could be called.
pub(crate) fn is_alone() -> bool {
    IS_ALONE.load(Ordering::Relaxed)
}

/// Notes that it has none.
pub(crate) fn set_alone() {
    IS_ALONE.store(true, Ordering::Relaxed);
}

/// Property of threads that they do not give back, because nothing reports a thread's end: each with its owner's number
/// in the system.
pub(crate) struct Owned<T>(Lock<Vec<(u64, T)>>);

impl<T> Owned<T> {
    pub(crate) const fn new() -> Owned<T> {
        Owned(Lock::new(Vec::new()))
    }

    /// Keeps it for this thread, until that ends.
    pub(crate) fn keep(&self, what: T) {
        if is_alone() {
            let signals = system::block_signals();
            self.0.with(|all| all.push((system::thread(), what)));
            system::restore_signals(signals);
        }
    }

    /// The property of a thread that has ended. Always `None` where ends are reported.
    pub(crate) fn take(&self) -> Option<T> {
        if !is_alone() {
            return None;
        }
        let signals = system::block_signals();
        let is_left = |(owner, _): &(u64, T)| !system::is_thread(*owner);
        let taken = self.0.with(|all| all.iter().position(is_left).map(|place| all.swap_remove(place).1));
        system::restore_signals(signals);
        taken
    }
}
