//! Calls of each thread that are recorded where each has as many, see [`lineup_recording::ThreadBudget`].

use crate::engine::Engine;
use crate::gates::Entry;
use crate::slots::Slots;
use lineup_recording::ThreadBudget;
use lineup_recording::native::word;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;

/// What a thread has recorded of a region.
#[derive(Default)]
pub(crate) struct Taken {
    own: ThreadBudget,
    /// The positions of its calls, highest first: those give way to lower ones.
    positions: BinaryHeap<u64>,
}

impl Taken {
    /// Whether a call that begins now is recorded.
    fn takes(&mut self, cycles: u64, most: u64) -> bool {
        let position = self.own.position(cycles);
        if self.positions.len() as u64 >= most {
            if self.positions.peek().is_none_or(|highest| *highest <= position) {
                return false;
            }
            self.positions.pop();
        }
        self.positions.push(position);
        self.own.take();
        true
    }
}

impl Engine {
    /// Whether this call is one of those that are recorded of its thread. The thread is known.
    pub(crate) fn is_within_budget(&self, slots: &mut Slots) -> bool {
        let most = self.shared.word(word::CALLS_PER_THREAD).load(Ordering::Relaxed);
        if most == 0 {
            return true;
        }
        // SAFETY: set by the entry's code, from entries that are never freed.
        let region = unsafe { (*(slots.entry as *const Entry)).region_number };
        self.count_in_thread(slots, region);
        let Some(thread) = self.thread(slots) else { return false };
        let number = region as usize;
        if thread.taken.len() <= number {
            thread.taken.resize_with(number + 1, Taken::default);
        }
        // SAFETY: every x86-64 processor has the counter.
        let cycles = unsafe { std::arch::x86_64::_rdtsc() };
        thread.taken[number].takes(cycles, most)
    }

    /// Counts a call of a region in its thread, where that is wanted.
    pub(crate) fn count_in_thread(&self, slots: &Slots, region: u64) {
        if self.shared.word(word::CALLS_PER_THREAD).load(Ordering::Relaxed) != 0
            && let Some(thread) = self.thread(slots)
        {
            self.shared.count_in_thread(thread.number, region);
        }
    }
}
