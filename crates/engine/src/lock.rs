//! A lock without the C library.

use std::cell::UnsafeCell;
use std::hint;
use std::sync::atomic::{AtomicU32, Ordering};

/// A value that one thread at a time uses, for short.
pub(crate) struct Lock<T> {
    is_held: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by the holder alone.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock { is_held: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Does something with the value.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut tries = 0u32;
        while self.is_held.swap(1, Ordering::Acquire) != 0 {
            tries += 1;
            match tries % 64 {
                // The holder may wait for our processor.
                0 => crate::system::sleep_ns(20_000),
                _ => hint::spin_loop(),
            }
        }
        // SAFETY: we hold it, so nobody else has a reference.
        let result = work(unsafe { &mut *self.value.get() });
        self.is_held.store(0, Ordering::Release);
        result
    }
}
