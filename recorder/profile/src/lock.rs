//! Locks of the profile.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, also after a thread has panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
