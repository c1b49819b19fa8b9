//! The flag that ends a load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A flag that a load shares with the caller that ends it.
#[derive(Clone, Default, Debug)]
pub struct Stop(Arc<Flag>);

#[derive(Default, Debug)]
struct Flag {
    is_set: AtomicBool,
    /// Guards nothing: it orders the setting against those about to sleep.
    sleepers: Mutex<()>,
    wake: Condvar,
}

impl Stop {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets it; all loads that share it end soon.
    pub fn set(&self) {
        let _order = self.0.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.is_set.store(true, Ordering::Relaxed);
        self.0.wake.notify_all();
    }

    /// True once it is set.
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed)
    }

    /// Sleeps until then, or until the flag is set: in one piece, since a task that looked about now and then
    /// would show the scheduler wake-ups that its pattern does not have.
    pub fn sleep_until(&self, end: Instant) {
        let mut guard = self.0.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left == Duration::ZERO || self.is_set() {
                return;
            }
            let waited = self.0.wake.wait_timeout(guard, left);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_lasts_until_its_end_or_the_flag() {
        let stop = Stop::new();
        let end = Instant::now() + Duration::from_millis(5);
        stop.sleep_until(end);
        assert!(Instant::now() >= end);
        let sleeper = stop.clone();
        let asleep =
            std::thread::spawn(move || sleeper.sleep_until(Instant::now() + Duration::from_secs(3600)));
        stop.set();
        asleep.join().unwrap();
    }
}
