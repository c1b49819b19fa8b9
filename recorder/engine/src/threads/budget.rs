//! Limits the recorded calls to the same number for each thread, see [`lineup_recording::ThreadBudget`].

use crate::engine::Engine;
use crate::machine::{Abi, EntryData, Host};
use crate::shared::Shared;
use crate::threads::slots::Slots;
use lineup_recording::ThreadBudget;
use lineup_recording::native::region;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Data that an entry's code reads before it hands over: a thread's own, for each region.
#[repr(C)]
pub(crate) struct Spent([RegionSpent; region::MOST]);

/// A thread's limits for one region.
#[repr(C)]
struct RegionSpent {
    /// No call that begins before this cycle is recorded.
    until: u64,
    /// The counter of the thread's calls.
    count: *const AtomicU64,
}

/// Distances that the entries' code knows.
pub(crate) const SPENT_SHIFT: u8 = 4;
pub(crate) const SPENT_COUNT: i32 = 8;
const _: () = assert!(size_of::<RegionSpent>() == 1 << SPENT_SHIFT);
const _: () = assert!(std::mem::offset_of!(RegionSpent, count) == SPENT_COUNT as usize);

impl Spent {
    /// Limits of a thread that has recorded nothing yet; `None` where its calls cannot be counted.
    pub(crate) fn new(shared: &Shared, thread: u64) -> Option<Box<Spent>> {
        shared.thread_count(thread, 0)?;
        let count = |number| shared.thread_count(thread, number).map_or(std::ptr::null(), std::ptr::from_ref);
        Some(Box::new(Spent(std::array::from_fn(|number| RegionSpent {
            until: 0,
            count: count(number as u64),
        }))))
    }
}

/// A thread's recorded calls of a region.
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
    /// Whether this call is one of those to record of its thread. The thread is known.
    pub(crate) fn is_within_budget(&self, slots: &mut Slots) -> bool {
        let most = self.shared.control().calls_per_thread.load(Ordering::Relaxed);
        if most == 0 {
            return true;
        }
        // SAFETY: set by the entry's code, from entries that are never freed.
        let region = unsafe { (*(slots.entry as *const EntryData)).region_number };
        self.count_in_thread(slots, region);
        let Some(thread) = self.thread(slots) else { return false };
        let number = region as usize;
        if thread.taken.len() <= number {
            thread.taken.resize_with(number + 1, Taken::default);
        }
        let cycles = Host::counter();
        let is_taken = thread.taken[number].takes(cycles, most);
        // Until the next stretch of time begins no call has a lower position.
        if let Some(spent) =
            thread.spent.as_mut().filter(|_| !is_taken).and_then(|spent| spent.0.get_mut(number))
        {
            spent.until = ThreadBudget::end(cycles);
        }
        is_taken
    }

    /// Counts a call of a region in its thread, where the command wants that.
    pub(crate) fn count_in_thread(&self, slots: &Slots, region: u64) {
        if self.shared.control().calls_per_thread.load(Ordering::Relaxed) != 0
            && let Some(thread) = self.thread(slots)
        {
            self.shared.count_in_thread(thread.number, region);
        }
    }
}
