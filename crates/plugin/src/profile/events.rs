//! What callbacks leave for the model: code fetched and data accessed, in their order.
//!
//! All of it passes from one processor to another, so it is packed; and the model goes through each kind in a loop of its
//! own, so each kind has a list of its own.

use super::Run;
use crate::describe::Description;

/// Events of each kind in a batch: 320 KiB, so that a few batches stay in the host's caches.
const EVENTS: usize = 1 << 14;

/// The emulator puts at most so many instructions into a block, so that it has at most so many runs.
const MOST_RUNS: usize = 512;

/// The lower bits of an access tell its size, which is two to their power.
const SIZE_BITS: u32 = 4;
/// In place of a size: the address is in the list of wide ones, at the number in its place.
const WIDE: u64 = (1 << SIZE_BITS) - 1;

/// A run was fetched.
#[derive(Clone, Copy, Default)]
pub(super) struct Fetched {
    pub(super) run: u32,
    /// Accesses of the same batch that came before.
    pub(super) accesses_before: u32,
}

/// Where and how much was accessed, packed.
#[derive(Clone, Copy, Default)]
pub(super) struct Place(u64);

/// Events of one thread.
pub(super) struct Batch {
    fetched: Box<[Fetched; EVENTS]>,
    fetched_count: usize,
    places: Box<[Place; EVENTS]>,
    counters: Box<[u32; EVENTS]>,
    access_count: usize,
    /// Addresses, with the sizes of their accesses, that have no room in a [`Place`].
    wide: Vec<(u64, u64)>,
    /// Runs that this thread's model does not know yet.
    pub(super) new_runs: Vec<Run>,
}

/// `EVENTS` empty places, made on the heap: stacks of guest threads are small.
fn places<T: Clone + Default>() -> Box<[T; EVENTS]> {
    vec![T::default(); EVENTS].try_into().unwrap_or_else(|_| unreachable!("of this very length"))
}

impl Batch {
    pub(super) fn new() -> Batch {
        Batch {
            fetched: places(),
            fetched_count: 0,
            places: places(),
            counters: places(),
            access_count: 0,
            wide: Vec::new(),
            new_runs: Vec::new(),
        }
    }

    /// True when every run of a block has room.
    #[inline]
    pub(super) fn has_room_for_block(&self) -> bool {
        self.fetched_count <= EVENTS - MOST_RUNS
    }

    /// Notes that a run was fetched, where there is room.
    #[inline]
    pub(super) fn fetch(&mut self, run: u32) {
        if let Some(place) = self.fetched.get_mut(self.fetched_count) {
            *place = Fetched { run, accesses_before: self.access_count as u32 };
            self.fetched_count += 1;
        }
    }

    /// Notes an access that `counter` counts; false when there is no room left, or the address has none.
    #[inline]
    pub(super) fn access(&mut self, counter: u32, address: u64, what: &Description) -> bool {
        let has_room = address >> (u64::BITS - SIZE_BITS) == 0;
        has_room && self.put(counter, Place(address << SIZE_BITS | u64::from(what.size_shift)))
    }

    /// Notes an access whatever its address; false when there is no room left.
    pub(super) fn access_wide(&mut self, counter: u32, address: u64, what: &Description) -> bool {
        let is_noted = self.put(counter, Place((self.wide.len() as u64) << SIZE_BITS | WIDE));
        if is_noted {
            self.wide.push((address, u64::from(what.size_bytes())));
        }
        is_noted
    }

    #[inline]
    fn put(&mut self, counter: u32, place: Place) -> bool {
        let at = self.access_count;
        let has_room = at < EVENTS;
        if has_room {
            self.places[at] = place;
            self.counters[at] = counter;
            self.access_count = at + 1;
        }
        has_room
    }

    pub(super) fn fetched(&self) -> &[Fetched] {
        &self.fetched[..self.fetched_count]
    }

    /// Where data was accessed.
    pub(super) fn places(&self) -> &[Place] {
        &self.places[..self.access_count]
    }

    /// What counts each of these accesses.
    pub(super) fn counters(&self) -> &[u32] {
        &self.counters[..self.access_count]
    }

    /// Address and size of an access.
    #[inline]
    pub(super) fn unpack(&self, place: Place) -> (u64, u64) {
        let (address, size) = (place.0 >> SIZE_BITS, place.0 & WIDE);
        if size == WIDE {
            return self.wide.get(address as usize).copied().unwrap_or_default();
        }
        (address, 1 << size)
    }

    pub(super) fn clear(&mut self) {
        (self.fetched_count, self.access_count) = (0, 0);
        self.wide.clear();
        self.new_runs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE_OF_FOUR: Description = Description::told(0, 2, true);
    const LOAD_OF_SIXTEEN: Description = Description::told(0, 4, false);

    #[test]
    fn accesses_come_back_as_they_were_noted() {
        let mut batch = Batch::new();
        let high = u64::MAX - 7;
        assert!(batch.access(10, 0x7fff_1234_5678, &STORE_OF_FOUR));
        assert!(!batch.access(20, high, &LOAD_OF_SIXTEEN), "an address of 64 bits has no room");
        assert!(batch.access_wide(20, high, &LOAD_OF_SIXTEEN));
        let unpacked: Vec<_> = batch.places().iter().map(|place| batch.unpack(*place)).collect();
        assert_eq!(unpacked, [(0x7fff_1234_5678, 4), (high, 16)]);
        assert_eq!(batch.counters(), [10, 20]);
    }

    #[test]
    fn a_full_batch_takes_no_more_until_it_is_cleared() {
        let mut batch = Batch::new();
        let mut blocks = 0;
        while batch.has_room_for_block() {
            (0..MOST_RUNS as u32).for_each(|run| batch.fetch(run));
            blocks += 1;
        }
        assert!((0..EVENTS).all(|_| batch.access(0, 8, &STORE_OF_FOUR)));
        assert!(!batch.access(0, 8, &STORE_OF_FOUR) && !batch.access_wide(0, u64::MAX, &STORE_OF_FOUR));
        assert_eq!((batch.fetched().len(), batch.places().len()), (blocks * MOST_RUNS, EVENTS));
        batch.clear();
        assert!(batch.has_room_for_block() && batch.access(0, 8, &STORE_OF_FOUR));
    }
}
