//! Locks of the state that virtual CPUs share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A lock whose holder panicked still guards whole values: nothing here panics between two changes.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
