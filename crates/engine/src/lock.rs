//! A lock without the C library.

use std::cell::UnsafeCell;
use std::hint;
use std::sync::atomic::{AtomicU32, Ordering};

/// A value that one thread at a time uses, for short.
pub(crate) struct Lock<T> {
    /// The process of the holder, or 0.
    holder: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by the holder alone.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock { holder: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Does something with the value. In a process that was forked off while another thread of its parent held the lock,
    /// that thread is not there: the lock is taken from it.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let own = crate::system::process() as u32;
        let mut tries = 0u32;
        loop {
            let taken = self.holder.compare_exchange_weak(0, own, Ordering::Acquire, Ordering::Relaxed);
            match taken {
                Ok(_) => break,
                Err(other) if other != 0 && other != own => {
                    // Of this process nobody holds it.
                    let stolen =
                        self.holder.compare_exchange(other, own, Ordering::Acquire, Ordering::Relaxed);
                    if stolen.is_ok() {
                        break;
                    }
                }
                Err(_) => {}
            }
            tries += 1;
            match tries % 64 {
                // The holder may wait for our processor.
                0 => crate::system::sleep_ns(20_000),
                _ => hint::spin_loop(),
            }
        }
        // SAFETY: we hold it, so nobody else has a reference.
        let result = work(unsafe { &mut *self.value.get() });
        self.holder.store(0, Ordering::Release);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_in_another_process_does_not_keep_ours_waiting() {
        let lock = Lock::new(5);
        lock.holder.store(1, Ordering::Relaxed);
        assert_eq!(lock.with(|value| std::mem::replace(value, 6)), 5);
        assert_eq!((lock.with(|value| *value), lock.holder.load(Ordering::Relaxed)), (6, 0));
    }
}
