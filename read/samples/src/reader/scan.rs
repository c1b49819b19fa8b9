//! Scans a file's records for traces before any record is returned. Traces stand where perf read them, which may be
//! long after the events they describe.

use crate::bytes::{Fields, read_full};
use crate::error::SamplesError;
use std::io::{Read, Seek, SeekFrom};

/// Bytes read at once: two of the longest records.
const WINDOW_BYTES: usize = 128 << 10;
const HEAD_BYTES: u64 = 8;

/// The function that reads bytes at another position of an input, without moving on in it. A pipe has none.
pub(crate) type ReadElsewhere<R> = fn(&mut R, u64, &mut [u8]) -> Result<usize, SamplesError>;

/// For a file.
pub(crate) fn read_elsewhere<R: Read + Seek>(
    input: &mut R,
    at: u64,
    into: &mut [u8],
) -> Result<usize, SamplesError> {
    let here = input.stream_position()?;
    input.seek(SeekFrom::Start(at))?;
    let got = read_full(input, into)?;
    input.seek(SeekFrom::Start(here))?;
    Ok(got)
}

/// A record's kind, and the beginning of its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordHead {
    pub(crate) number: u32,
    pub(crate) at: u64,
    body_bytes: usize,
}

/// Iterates over the heads of records.
#[derive(Debug)]
pub(crate) struct Scan {
    next: u64,
    end: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl Scan {
    /// From a byte of the file on, up to another.
    pub(crate) fn new(next: u64, end: u64) -> Scan {
        Scan { next, end, window: Vec::new(), window_at: 0 }
    }

    /// The next record; `None` at the end, or where the file is damaged.
    pub(crate) fn next<R>(
        &mut self,
        input: &mut R,
        read: ReadElsewhere<R>,
    ) -> Result<Option<RecordHead>, SamplesError> {
        if self.next >= self.end {
            return Ok(None);
        }
        let at = self.next;
        let Some(head) = self.bytes(at, HEAD_BYTES as usize, input, read)? else { return Ok(None) };
        let mut fields = Fields::new(head);
        let (number, _misc, size) = (fields.u32(), fields.u16(), fields.u16());
        let body_bytes = size.and_then(|size| u64::from(size).checked_sub(HEAD_BYTES));
        let (Some(number), Some(body_bytes)) = (number, body_bytes) else { return Ok(None) };
        let at = at.saturating_add(HEAD_BYTES);
        self.next = at.saturating_add(body_bytes);
        Ok(Some(RecordHead { number, at, body_bytes: body_bytes as usize }))
    }

    /// The body of a record; `None` when the file ends before it does.
    pub(crate) fn body<R>(
        &mut self,
        found: RecordHead,
        input: &mut R,
        read: ReadElsewhere<R>,
    ) -> Result<Option<&[u8]>, SamplesError> {
        self.bytes(found.at, found.body_bytes, input, read)
    }

    /// Passes over bytes behind a record that are no records. Returns their beginning.
    pub(crate) fn pass_over(&mut self, size_bytes: u64) -> u64 {
        let at = self.next;
        self.next = at.saturating_add(size_bytes);
        at
    }

    fn bytes<R>(
        &mut self,
        at: u64,
        count: usize,
        input: &mut R,
        read: ReadElsewhere<R>,
    ) -> Result<Option<&[u8]>, SamplesError> {
        let is_inside = at
            .checked_sub(self.window_at)
            .is_some_and(|from| from.saturating_add(count as u64) <= self.window.len() as u64);
        if !is_inside {
            self.window.resize(WINDOW_BYTES, 0);
            let got = read(input, at, &mut self.window)?;
            self.window.truncate(got);
            self.window_at = at;
        }
        let from = (at - self.window_at) as usize;
        Ok(self.window.get(from..from.saturating_add(count)))
    }
}
