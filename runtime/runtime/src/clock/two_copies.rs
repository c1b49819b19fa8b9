//! Two copies behind a sequence count: in which order they are stored and loaded. Nothing else is in this file, so
//! that a test can run it on modelled memory.

use super::atomics::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// One copy, loaded and stored a word at a time.
pub(super) trait Bank {
    type Value;
    fn load(&self) -> Self::Value;
    fn store(&self, value: &Self::Value);
}

#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct TwoCopies<B> {
    /// Even: readers use bank 0. Odd: bank 1.
    pub(super) sequence: AtomicU64,
    pub(super) banks: [B; 2],
}

impl<B: Bank> TwoCopies<B> {
    /// The result of `make` for a consistent value. A signal handler that interrupts [`TwoCopies::publish`] on the same
    /// thread reads at once: nothing changes while it runs.
    #[inline(always)]
    pub(super) fn read<R>(&self, mut make: impl FnMut(B::Value) -> R) -> R {
        loop {
            let sequence = self.sequence.load(Acquire);
            let made = make(self.banks[(sequence & 1) as usize].load());
            fence(Acquire);
            if self.sequence.load(Relaxed) == sequence {
                return made;
            }
        }
    }

    /// Stores a new value. `fill` stores it into the bank that it gets, and returns it. One writer at a time.
    /// `between` runs between the steps.
    pub(super) fn publish(&self, fill: impl FnOnce(&B) -> B::Value, between: &mut dyn FnMut()) {
        let sequence = self.sequence.load(Relaxed);
        between();
        // Release: bank 1, to which this sends readers, was stored after the count of the update before.
        self.sequence.store(sequence + 1, Release);
        fence(Release);
        between();
        let value = fill(&self.banks[0]);
        between();
        self.sequence.store(sequence + 2, Release);
        fence(Release);
        between();
        self.banks[1].store(&value);
        between();
    }
}
