//! Puts records into the order of time.
//!
//! Perf reads the kernel's buffers one after the other, and marks the end of each round through all. A record of one
//! round may be later than a record of the next, but not later than a record of the round after that. So at a round's
//! end all records up to the latest time of the round before are in order, and may be returned.

use crate::bytes::read_full;
use crate::error::SamplesError;
use crate::record::{PADDING_BYTES, unpadded};
use std::io::Read;
use std::ops::Range;

/// Bytes without a round's end after which the earlier half of the records is returned nonetheless.
const MOST_WAITING_BYTES: usize = 64 << 20;

/// The head of a record that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) number: u32,
    pub(crate) misc: u16,
    pub(crate) event: usize,
}

#[derive(Clone, Debug)]
struct PendingRecord {
    time: u64,
    at: Range<usize>,
    waiting: Waiting,
}

/// Records that wait for their turn.
#[derive(Default, Debug)]
pub(crate) struct Rounds {
    /// Bodies, one after the other, each with its padding.
    bodies: Vec<u8>,
    /// The body that was read last, of which nothing is kept yet.
    last: Range<usize>,
    entries: Vec<PendingRecord>,
    /// The number of entries that may be returned, and the number already returned.
    ready: usize,
    told: usize,
    /// The latest time of this round, and of the one before.
    latest: u64,
    latest_before: u64,
    /// The latest time that was returned.
    latest_told: u64,
    out_of_order: u64,
}

impl Rounds {
    pub(crate) fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    pub(crate) fn has_more(&self) -> bool {
        self.told < self.ready
    }

    /// The time of the next record that may be returned.
    pub(crate) fn next_time(&self) -> Option<u64> {
        self.entries.get(self.told).filter(|_| self.told < self.ready).map(|entry| entry.time)
    }

    /// Counts a record that is returned in between, when it comes after a later one.
    pub(crate) fn tell_between(&mut self, time: u64) {
        self.out_of_order += u64::from(time < self.latest_told);
    }

    /// Reads a body and returns the number of its bytes. It is kept only when [`Rounds::keep`] follows.
    pub(crate) fn read_body(&mut self, input: &mut impl Read, count: usize) -> Result<usize, SamplesError> {
        self.clear_told();
        let start = self.bodies.len();
        self.bodies.resize(start + count + PADDING_BYTES, 0);
        self.last = start..start + count;
        let got = match self.bodies.get_mut(start..start + count) {
            Some(body) => read_full(input, body)?,
            None => 0,
        };
        if got < count {
            self.drop_last();
        }
        Ok(got)
    }

    /// The body that was read last.
    pub(crate) fn read_last(&self) -> &[u8] {
        self.bodies.get(self.last.clone()).unwrap_or_default()
    }

    /// Forgets it.
    pub(crate) fn drop_last(&mut self) {
        self.bodies.truncate(self.last.start);
    }

    /// Keeps it.
    pub(crate) fn keep(&mut self, time: u64, waiting: Waiting) {
        self.latest = self.latest.max(time);
        if time < self.latest_told {
            self.out_of_order += 1;
        }
        self.entries.push(PendingRecord { time, at: self.last.clone(), waiting });
        if self.bodies.len() > MOST_WAITING_BYTES {
            self.sort();
            self.ready = self.entries.len() / 2 + 1;
        }
    }

    pub(crate) fn end_round(&mut self) {
        self.sort();
        self.ready = self.entries.partition_point(|entry| entry.time <= self.latest_before);
        self.latest_before = self.latest;
    }

    pub(crate) fn end_all(&mut self) {
        self.sort();
        self.ready = self.entries.len();
    }

    /// Stable, so that records of one time stay in the order of reading.
    fn sort(&mut self) {
        self.entries.sort_by_key(|entry| entry.time);
    }

    /// Moves to the next record that may be returned.
    pub(crate) fn advance(&mut self) -> Option<Waiting> {
        let entry = self.entries.get(self.told).filter(|_| self.told < self.ready)?;
        self.told += 1;
        self.latest_told = self.latest_told.max(entry.time);
        Some(entry.waiting)
    }

    /// The body of the record that was returned last.
    pub(crate) fn body(&self) -> &[u8] {
        unpadded(self.padded_body())
    }

    /// The same with its padding.
    pub(crate) fn padded_body(&self) -> &[u8] {
        let entry = self.told.checked_sub(1).and_then(|told| self.entries.get(told));
        entry.map(|entry| self.padded(&entry.at)).unwrap_or_default()
    }

    fn padded(&self, at: &Range<usize>) -> &[u8] {
        self.bodies.get(at.start..at.end + PADDING_BYTES).unwrap_or_default()
    }

    /// Frees the room of returned records, and moves the rest together.
    fn clear_told(&mut self) {
        if self.told == 0 || self.has_more() {
            return;
        }
        self.entries.drain(..self.told);
        (self.told, self.ready) = (0, 0);
        let kept: usize = self.entries.iter().map(|entry| entry.at.len() + PADDING_BYTES).sum();
        let mut bodies = Vec::with_capacity(kept + 4096);
        let mut entries = std::mem::take(&mut self.entries);
        for entry in &mut entries {
            let start = bodies.len();
            bodies.extend_from_slice(self.padded(&entry.at));
            entry.at = start..start + entry.at.len();
        }
        self.entries = entries;
        self.bodies = bodies;
    }
}
