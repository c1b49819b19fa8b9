//! The log of a thread: it fills a chunk of the shared memory, and hands it over.

use super::state::Engine;
use crate::machine::{Abi, Host};
use crate::threads::slots::Slots;
use lineup_recording::native::{chunk, record};
use std::sync::atomic::Ordering;

const UNREAD: &str = "the log was not read for some seconds";

impl Engine {
    /// Gets a chunk for the thread. False when none is free soon: then this call is not recorded.
    pub(super) fn has_chunk(&self, slots: &mut Slots) -> bool {
        const MOST_ROUNDS: u32 = 2_000;
        let Some(thread) = self.thread(slots) else { return false };
        if thread.chunk.is_none() {
            let taken = self.shared.take_chunk(thread.number, MOST_ROUNDS);
            thread.chunk = taken.map(|(number, start)| (number, start as u64));
            let Some((_, start)) = thread.chunk else {
                if !self.shared.is_read() {
                    self.stop(UNREAD);
                }
                self.shared.control().passed_over.fetch_add(1, Ordering::Relaxed);
                return false;
            };
            slots.log = start;
        }
        true
    }

    /// The thread's call has ended: others may need its chunk.
    pub(super) fn share_chunk(&self, slots: &Slots) {
        if self.shared.is_scarce() {
            self.hand_chunk_over(slots);
        }
    }

    /// The thread has no chunk until it needs one.
    pub(crate) fn hand_chunk_over(&self, slots: &Slots) {
        if let Some((chunk, start)) = self.thread(slots).and_then(|thread| thread.chunk.take()) {
            self.shared.submit_chunk(chunk, slots.log - start);
        }
    }

    /// Logs the time. False when the log cannot be written any more.
    pub(crate) fn log_time(&self, slots: &mut Slots) -> bool {
        self.log(slots, &time_record())
    }

    /// Writes a record. False when the log cannot be written any more.
    pub(crate) fn log(&self, slots: &mut Slots, words: &[u64]) -> bool {
        if is_full(slots) && !self.next_chunk(slots) {
            return false;
        }
        write(slots, words);
        true
    }

    /// Hands the thread's chunk over and takes another.
    pub(super) fn next_chunk(&self, slots: &mut Slots) -> bool {
        let Some(thread) = self.thread(slots) else { return false };
        let Some((chunk, start)) = thread.chunk else { return false };
        // The times at the end of this chunk and at the beginning of the next order the accesses of other threads in
        // between. Whole programs are counted without an order.
        if self.whole.is_none() {
            write(slots, &time_record());
        }
        self.shared.submit_chunk(chunk, slots.log - start);
        match self.shared.take_chunk(thread.number, u32::MAX) {
            Some((number, start)) => {
                thread.chunk = Some((number, start as u64));
                slots.log = start as u64;
                if self.whole.is_none() {
                    write(slots, &time_record());
                }
                true
            }
            None => {
                self.stop(UNREAD);
                // Later records overwrite this one.
                slots.log = start;
                false
            }
        }
    }

    /// Publishes the log up to here for reading.
    pub(crate) fn commit(&self, slots: &Slots) {
        if let Some((chunk, start)) = self.thread(slots).and_then(|thread| thread.chunk) {
            self.shared.commit_chunk(chunk, (slots.log - start).min(chunk::BYTES));
        }
    }
}

/// The time in the log's form.
fn time_record() -> [u64; record::TIME_WORDS] {
    [u64::from(record::TIME) << 32, Host::counter()]
}

/// Writes to the log at its end: behind a full chunk there is room for more than two records.
pub(crate) fn write(slots: &mut Slots, words: &[u64]) {
    for word in words {
        // SAFETY: the thread's chunk has room.
        unsafe { (slots.log as *mut u64).write(*word) };
        slots.log += 8;
    }
}

/// Whether the thread's chunk is full.
pub(super) fn is_full(slots: &Slots) -> bool {
    slots.log >> 16 & 0xff != 0
}
