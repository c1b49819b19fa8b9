//! A lock without the C library.

use crate::system;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::{hint, ptr};

/// A word that holds the number of this process, or 0; null where no word exists. The kernel empties it in forked
/// processes, and leaves it to those that borrow this one's memory and so its locks.
static OWN: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Keeps this process's number in a word from now on: asking the kernel takes longer than most locks are held. The word
/// must be emptied in processes that are forked off, and stay until [`forget`] is called.
pub(crate) fn remember(word: &'static AtomicU32) {
    OWN.store(ptr::from_ref(word).cast_mut(), Ordering::Release);
}

/// Called before the word of [`remember`] goes.
pub(crate) fn forget() {
    OWN.store(ptr::null_mut(), Ordering::Release);
}

/// Whether this process borrows another's memory: the state there is the other's.
pub(crate) fn is_borrowed() -> bool {
    own_process() != system::process() as u32
}

fn own_process() -> u32 {
    let ask = || system::process() as u32;
    // SAFETY: null, or a word that stays, as `remember` was promised.
    let Some(word) = (unsafe { OWN.load(Ordering::Acquire).as_ref() }) else { return ask() };
    match word.load(Ordering::Relaxed) {
        0 => {
            let own = ask();
            word.store(own, Ordering::Relaxed);
            own
        }
        own => own,
    }
}

/// A value that one thread at a time uses, for a short time.
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

    /// Runs `work` with the value. A process may have been forked while another thread of its parent held the lock.
    /// That thread does not exist in it, so the lock is taken over.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let own = own_process();
        let mut tries = 0u32;
        loop {
            let taken = self.holder.compare_exchange_weak(0, own, Ordering::Acquire, Ordering::Relaxed);
            match taken {
                Ok(_) => break,
                Err(other) if other != 0 && other != own => {
                    // No thread of this process holds it.
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
                0 => system::sleep_ns(20_000),
                _ => hint::spin_loop(),
            }
        }
        // SAFETY: we hold it, so no other thread has a reference.
        let result = work(unsafe { &mut *self.value.get() });
        self.holder.store(0, Ordering::Release);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_asked_for_once_and_again_where_the_word_is_empty() {
        static WORD: AtomicU32 = AtomicU32::new(0);
        remember(&WORD);
        let own = std::process::id();
        assert_eq!((own_process(), WORD.swap(0, Ordering::Relaxed)), (own, own));
        assert_eq!((own_process(), WORD.load(Ordering::Relaxed)), (own, own));
        forget();
        assert_eq!(own_process(), own);
    }

    #[test]
    fn a_holder_in_another_process_does_not_keep_ours_waiting() {
        let lock = Lock::new(5);
        lock.holder.store(1, Ordering::Relaxed);
        assert_eq!(lock.with(|value| std::mem::replace(value, 6)), 5);
        assert_eq!((lock.with(|value| *value), lock.holder.load(Ordering::Relaxed)), (6, 0));
    }
}
