//! Records that a recorder has not yet written to the recording, in memory that outlives it.
//!
//! The command makes a file in memory and hands its path over; every process of the recorded program maps it. Its first
//! page holds counters that all processes share. Each thread keeps the records that it packed but did not write in a
//! slot of its own; a record counts only once the slot's length includes it. However the program ends, the command
//! finds the missing records there. All words are 64 bits, little endian.

use crate::error::RecordingError;
use crate::file::frame::MAX_BLOCK_BYTES;
use std::io;

/// First word of every journal.
pub const MAGIC: u64 = u64::from_le_bytes(*b"LINEUPJR");

/// Bytes of the counters.
pub const COUNTER_BYTES: u64 = 1 << 16;

/// Bytes of a slot, its two words of state included.
pub const SLOT_BYTES: u64 = 1 << 21;

/// Slots, and so threads over all processes that have one; later threads do without.
pub const SLOTS: u64 = 4096;

/// Bytes of a journal. Pages that nothing was written to take no memory.
pub const JOURNAL_BYTES: u64 = COUNTER_BYTES + SLOTS * SLOT_BYTES;

/// Most regions whose calls are counted in a journal.
pub const MOST_REGIONS: usize = COUNTER_BYTES as usize / 8 - counter::FIRST_REGION;

/// Numbers of the counters' words.
pub mod counter {
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// The next position in the order of events.
    pub const CLOCK: usize = 1;
    /// The number of the next thread.
    pub const NEXT_THREAD: usize = 2;
    /// The number of the next process.
    pub const NEXT_PROCESS: usize = 3;
    /// The number of the next slot.
    pub const NEXT_SLOT: usize = 4;
    /// The error number with which writing the recording failed; 0 when none did.
    pub const FAILURE: usize = 5;
    /// Processes that are recorded and have not ended.
    pub const ALIVE: usize = 6;
    /// Calls seen of the first region; those of the others follow.
    pub const FIRST_REGION: usize = 8;
}

/// The beginning of a slot.
pub fn slot_at(slot: u64) -> u64 {
    COUNTER_BYTES + slot * SLOT_BYTES
}

/// Words at the start of a slot.
pub mod slot {
    /// Bytes of whole records in it.
    pub const LENGTH: usize = 0;
    /// 1 while these are being written to the recording, and so may already stand there.
    pub const IS_WRITTEN: usize = 1;
    /// Bytes before the records.
    pub const HEAD_BYTES: u64 = 16;
}

/// Records that a thread had not written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pending {
    /// The records, for [`crate::Encoder::append_packed`].
    pub records: Vec<u8>,
    /// True when they may stand in the recording as well, all of them.
    pub may_be_written: bool,
}

/// The contents of a journal when the program has ended.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Journal {
    /// Calls seen of each region; more entries than there are regions.
    pub seen: Vec<u64>,
    /// Threads that began, over all processes.
    pub threads: u64,
    /// Processes that began.
    pub processes: u64,
    /// Processes that have not ended in good order.
    pub alive: u64,
    /// The error number with which writing failed.
    pub failure: Option<i32>,
    /// The records not yet written, by slot.
    pub pending: Vec<Pending>,
}

impl Journal {
    /// Reads a journal of `bytes` bytes; `read` fills a buffer from a position on and returns the number of bytes read.
    ///
    /// # Errors
    /// Those of `read`, and [`RecordingError::NotARecording`] for anything else than a journal.
    pub fn read(
        bytes: u64,
        read: impl Fn(u64, &mut [u8]) -> io::Result<usize>,
    ) -> Result<Journal, RecordingError> {
        let mut counters = vec![0; usize::try_from(bytes.min(COUNTER_BYTES)).unwrap_or_default()];
        let filled = read(0, &mut counters)?;
        let words: Vec<u64> = counters[..filled.min(counters.len())]
            .chunks_exact(8)
            .filter_map(|word| word.try_into().ok().map(u64::from_le_bytes))
            .collect();
        let word = |number: usize| words.get(number).copied().unwrap_or_default();
        if word(counter::MAGIC) != MAGIC {
            return Err(RecordingError::NotARecording);
        }
        let slots = word(counter::NEXT_SLOT).min(SLOTS);
        let pending = (0..slots).filter_map(|slot| pending(bytes, slot_at(slot), &read).transpose());
        Ok(Journal {
            seen: words.get(counter::FIRST_REGION..).unwrap_or_default().to_vec(),
            threads: word(counter::NEXT_THREAD),
            processes: word(counter::NEXT_PROCESS),
            alive: word(counter::ALIVE),
            failure: i32::try_from(word(counter::FAILURE)).ok().filter(|failure| *failure != 0),
            pending: pending.collect::<io::Result<_>>()?,
        })
    }
}

/// The records of the slot at a position; `None` when it has none.
fn pending(
    bytes: u64,
    at: u64,
    read: &impl Fn(u64, &mut [u8]) -> io::Result<usize>,
) -> io::Result<Option<Pending>> {
    let mut head = [0; slot::HEAD_BYTES as usize];
    if bytes < at.saturating_add(SLOT_BYTES) || read(at, &mut head)? < head.len() {
        return Ok(None);
    }
    let word = |number: usize| {
        head[8 * number..8 * number + 8].iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte))
    };
    let length = usize::try_from(word(slot::LENGTH)).unwrap_or(usize::MAX);
    if length == 0 || length > (SLOT_BYTES - slot::HEAD_BYTES) as usize || length > MAX_BLOCK_BYTES {
        return Ok(None);
    }
    let mut records = vec![0; length];
    let filled = read(at + slot::HEAD_BYTES, &mut records)?;
    Ok((filled == length).then_some(Pending { records, may_be_written: word(slot::IS_WRITTEN) != 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(journal: &[u8]) -> Result<Journal, RecordingError> {
        Journal::read(journal.len() as u64, |at, buffer| {
            let from = journal.get(at as usize..).unwrap_or_default();
            let count = from.len().min(buffer.len());
            buffer[..count].copy_from_slice(&from[..count]);
            Ok(count)
        })
    }

    fn journal(slots: u64) -> Vec<u8> {
        let mut bytes = vec![0; (COUNTER_BYTES + slots * SLOT_BYTES) as usize];
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 8 * counter::NEXT_SLOT, slots);
        put(&mut bytes, 8 * counter::NEXT_THREAD, 3);
        put(&mut bytes, 8 * (counter::FIRST_REGION + 1), 77);
        bytes
    }

    fn put(bytes: &mut [u8], at: usize, value: u64) {
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    #[test]
    fn what_was_not_written_is_found_and_nothing_beyond_the_length() {
        let mut bytes = journal(2);
        let at = slot_at(1) as usize;
        bytes[at + 16..at + 20].copy_from_slice(b"abcd");
        put(&mut bytes, at, 3);
        put(&mut bytes, at + 8, 1);
        let found = read(&bytes).unwrap();
        assert_eq!(found.pending, [Pending { records: b"abc".to_vec(), may_be_written: true }]);
        assert_eq!((found.threads, found.seen[1], found.failure), (3, 77, None));
    }

    #[test]
    fn a_length_beyond_the_slot_gives_nothing() {
        let mut bytes = journal(1);
        put(&mut bytes, slot_at(0) as usize, SLOT_BYTES);
        assert_eq!(read(&bytes).unwrap().pending, []);
        assert!(read(&[0; 100]).is_err());
    }
}
