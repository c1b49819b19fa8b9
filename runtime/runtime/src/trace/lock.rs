//! Locks that time themselves, and can be given up.

use super::region::Region;
use super::{is_on, probe};
use crate::clock::now_ns;
use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, MutexGuard, PoisonError, TryLockError};

/// Takes a lock by `try_take` or, if that fails, `take`, and notes how long that lasted.
#[inline]
pub(super) fn acquire(lock: &Region, address: usize, try_take: impl FnOnce() -> bool, take: impl FnOnce()) {
    if !is_on() {
        take();
        return;
    }
    if try_take() {
        let now = now_ns();
        probe::lock_taken(lock, address, now, now);
        return;
    }
    let start_ns = now_ns();
    take();
    probe::lock_taken(lock, address, start_ns, now_ns());
}

/// As [`acquire`], but gives up after the bound of the region's arm when it was assigned one. False: given up.
#[inline]
pub(super) fn acquire_bounded(
    lock: &Region,
    address: usize,
    mut try_take: impl FnMut() -> bool,
    take: impl FnOnce(),
) -> bool {
    if !is_on() {
        take();
        return true;
    }
    let start_ns = now_ns();
    if try_take() {
        probe::lock_taken(lock, address, start_ns, start_ns);
        return true;
    }
    let Some(bound_ns) = probe::give_up_bound_ns() else {
        take();
        probe::lock_taken(lock, address, start_ns, now_ns());
        return true;
    };
    loop {
        if try_take() {
            probe::lock_taken(lock, address, start_ns, now_ns());
            return true;
        }
        let now = now_ns();
        if now.saturating_sub(start_ns) >= bound_ns {
            probe::lock_given_up(lock, address, start_ns, now);
            return false;
        }
        std::hint::spin_loop();
    }
}

/// A `std::sync::Mutex` whose waits and holds are traced.
///
/// ```
/// use lineup_runtime::trace::{Region, TracedMutex};
///
/// static QUEUE: TracedMutex<Vec<u32>> = TracedMutex::new(Region::lock(c"queue"), Vec::new());
/// QUEUE.lock().unwrap().push(1);
/// assert_eq!(QUEUE.lock().unwrap().len(), 1);
/// ```
#[derive(Debug)]
pub struct TracedMutex<T> {
    name: Region,
    inner: std::sync::Mutex<T>,
}

/// The lock held.
#[derive(Debug)]
pub struct TracedGuard<'a, T> {
    guard: Option<MutexGuard<'a, T>>,
    address: usize,
}

impl<T> TracedMutex<T> {
    /// A lock called `name`.
    pub const fn new(name: Region, value: T) -> Self {
        Self { name, inner: std::sync::Mutex::new(value) }
    }

    fn address(&self) -> usize {
        &raw const self.inner as usize
    }

    /// Takes the lock.
    ///
    /// # Errors
    ///
    /// As [`std::sync::Mutex::lock`]: when a holder panicked.
    pub fn lock(&self) -> LockResult<TracedGuard<'_, T>> {
        let taken = std::cell::Cell::new(None);
        acquire(
            &self.name,
            self.address(),
            || {
                taken.set(self.try_take());
                self.is_taken(&taken)
            },
            || taken.set(Some(self.inner.lock())),
        );
        self.finish(taken.into_inner().unwrap_or_else(|| self.inner.lock()))
    }

    /// Takes the lock, or gives it up when the region around was assigned that arm and its bound has passed: the
    /// caller must be able to do without. `None`: given up.
    pub fn lock_bounded(&self) -> Option<LockResult<TracedGuard<'_, T>>> {
        let taken = std::cell::Cell::new(None);
        let got = acquire_bounded(
            &self.name,
            self.address(),
            || {
                taken.set(self.try_take());
                self.is_taken(&taken)
            },
            || taken.set(Some(self.inner.lock())),
        );
        let result = taken.into_inner();
        result.filter(|_| got).map(|result| self.finish(result))
    }

    fn try_take(&self) -> Option<LockResult<MutexGuard<'_, T>>> {
        match self.inner.try_lock() {
            Ok(guard) => Some(Ok(guard)),
            Err(TryLockError::Poisoned(error)) => Some(Err(error)),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn is_taken<'a>(&self, taken: &std::cell::Cell<Option<LockResult<MutexGuard<'a, T>>>>) -> bool {
        let value = taken.take();
        let is_some = value.is_some();
        taken.set(value);
        is_some
    }

    fn finish<'a>(&self, result: LockResult<MutexGuard<'a, T>>) -> LockResult<TracedGuard<'a, T>> {
        let address = self.address();
        match result {
            Ok(guard) => Ok(TracedGuard { guard: Some(guard), address }),
            Err(error) => Err(PoisonError::new(TracedGuard { guard: Some(error.into_inner()), address })),
        }
    }
}

impl<T> Drop for TracedGuard<'_, T> {
    fn drop(&mut self) {
        let now = if is_on() { Some(now_ns()) } else { None };
        self.guard = None;
        if let Some(now) = now {
            probe::lock_released(self.address, now);
        }
    }
}

impl<T> Deref for TracedGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        match &self.guard {
            Some(guard) => guard,
            None => unreachable!("the guard is taken out when it is dropped alone"),
        }
    }
}

impl<T> DerefMut for TracedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.guard {
            Some(guard) => guard,
            None => unreachable!("the guard is taken out when it is dropped alone"),
        }
    }
}
