//! Traces of several CPUs or threads, put into the order of time.
//!
//! Each of the kernel's buffers has its own trace, of which a file holds chunks. The decoder keeps the next record of
//! each trace, and returns the earliest of these. The kernel's descriptions of a buffer (`PERF_RECORD_AUX`) cut its
//! trace into parts: no record continues from one part into the next.

use super::info::Clock;
use super::record::{Decoder, Step, TraceRecord};
use crate::error::SamplesError;
use foldhash::HashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Bytes read at once for all traces, and the least and the most for one.
const READ_BYTES: u64 = 32 << 20;
const LEAST_READ_BYTES: u64 = 4096;
const MOST_READ_BYTES: u64 = 256 << 10;
/// The bytes of a pipe's traces held in memory beyond which the earliest records are returned without waiting.
const MOST_HELD_BYTES: u64 = 64 << 20;
/// The maximum number of parts that are kept. Beyond them records are still read, and only cut-off ones are not
/// recognised.
const MOST_PARTS: usize = 1 << 18;
/// Chunks that wait for their turn.
const MOST_CHUNKS: usize = 1 << 20;
/// The order of a record without a time: last.
const LAST: u64 = u64::MAX;

/// The owner of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Whose {
    Cpu(u32),
    Thread(u32),
}

/// A part of a trace, which the kernel wrote at once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Part {
    /// The position behind it.
    pub(crate) end: u64,
    pub(crate) time_ns: Option<u64>,
    /// The process and thread that ran when it was written.
    pub(crate) process: Option<u32>,
    pub(crate) thread: Option<u32>,
}

/// The place of a chunk's bytes.
#[derive(Debug)]
pub(crate) enum ChunkBytes {
    /// In the file, at this byte.
    File(u64),
    /// Here.
    Held(Vec<u8>),
}

#[derive(Debug)]
struct Chunk {
    /// Its position in the trace.
    position: u64,
    size_bytes: u64,
    place: ChunkBytes,
}

/// A record whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DueRecord {
    pub(crate) record: TraceRecord,
    pub(crate) time_ns: Option<u64>,
    pub(crate) whose: Whose,
    /// The part that it lies in, where the kernel reported one.
    pub(crate) part: Option<Part>,
}

impl DueRecord {
    /// The CPU, where buffers are of CPUs.
    pub(crate) fn cpu(&self) -> Option<u32> {
        match self.whose {
            Whose::Cpu(cpu) => Some(cpu),
            Whose::Thread(_) => None,
        }
    }
}

/// Reads bytes of the file from a position on; how many there were.
pub(crate) type ReadAt<'r> = dyn FnMut(u64, &mut [u8]) -> Result<usize, SamplesError> + 'r;

#[derive(Debug)]
struct Queue {
    whose: Whose,
    chunks: VecDeque<Chunk>,
    held_bytes: u64,
    /// Bytes of the first chunk that were read, and how many of them were decoded.
    bytes: Vec<u8>,
    decoded: usize,
    /// The number of bytes read of the first chunk.
    read_bytes: u64,
    /// The decoder's position in the trace, and the end of the current part; known while a chunk is open.
    position: u64,
    limit: u64,
    is_open: bool,
    decoder: Decoder,
    next: Option<DueRecord>,
}

/// Counts over all traces.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counts {
    pub(crate) bytes: u64,
    pub(crate) records: u64,
    /// Records without their end, or without an instruction and an address.
    pub(crate) unreadable: u64,
}

/// All traces of a file.
#[derive(Default, Debug)]
pub(crate) struct Traces {
    clock: Option<Clock>,
    queues: Vec<Queue>,
    by_whose: HashMap<Whose, usize>,
    parts: HashMap<Whose, Vec<Part>>,
    kept_parts: usize,
    /// By order, the queues whose next record is known; and the queues that got new chunks since.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    stale: Vec<usize>,
    held_bytes: u64,
    waiting_chunks: usize,
    counts: Counts,
}

impl Traces {
    pub(crate) fn new(clock: Option<Clock>) -> Traces {
        Traces { clock, ..Traces::default() }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// True when more is held in memory than shall be.
    pub(crate) fn is_full(&self) -> bool {
        self.held_bytes > MOST_HELD_BYTES
    }

    /// Stores the kernel's description of a part. Parts come in their order.
    pub(crate) fn see_part(&mut self, whose: Whose, part: Part) {
        let own = self.parts.entry(whose).or_default();
        if own.last().is_none_or(|last| last.end < part.end) && self.kept_parts < MOST_PARTS {
            own.push(part);
            self.kept_parts += 1;
        }
    }

    /// Adds a chunk that begins at this position of a trace; false when there are too many.
    pub(crate) fn see_chunk(
        &mut self,
        whose: Whose,
        position: u64,
        size_bytes: u64,
        place: ChunkBytes,
    ) -> bool {
        if size_bytes == 0 {
            return true;
        }
        if self.waiting_chunks >= MOST_CHUNKS {
            return false;
        }
        self.waiting_chunks += 1;
        self.counts.bytes = self.counts.bytes.saturating_add(size_bytes);
        let held_bytes = if matches!(place, ChunkBytes::Held(_)) { size_bytes } else { 0 };
        self.held_bytes += held_bytes;
        let next = self.queues.len();
        let number = *self.by_whose.entry(whose).or_insert(next);
        if number == next {
            self.queues.push(Queue::new(whose));
        }
        if let Some(queue) = self.queues.get_mut(number) {
            queue.held_bytes += held_bytes;
            queue.chunks.push_back(Chunk { position, size_bytes, place });
            // The others are in order already.
            if queue.next.is_none() {
                self.stale.push(number);
            }
        }
        true
    }

    /// The order of the earliest record, as a time.
    pub(crate) fn first(&mut self, read: &mut ReadAt<'_>) -> Result<Option<u64>, SamplesError> {
        while let Some(number) = self.stale.pop() {
            self.decode(number, read)?;
        }
        Ok(self.due.peek().map(|Reverse((order, _))| *order))
    }

    /// The earliest record.
    pub(crate) fn take(&mut self, read: &mut ReadAt<'_>) -> Result<Option<DueRecord>, SamplesError> {
        let Some(Reverse((_, number))) = self.due.pop() else { return Ok(None) };
        let told = self.queues.get_mut(number).and_then(|queue| queue.next.take());
        self.decode(number, read)?;
        Ok(told)
    }

    fn decode(&mut self, number: usize, read: &mut ReadAt<'_>) -> Result<(), SamplesError> {
        let count = self.queues.len().max(1) as u64;
        let Some(queue) = self.queues.get_mut(number).filter(|queue| queue.next.is_none()) else {
            return Ok(());
        };
        let parts = self.parts.get(&queue.whose).map(Vec::as_slice).unwrap_or_default();
        let piece = (READ_BYTES / count).clamp(LEAST_READ_BYTES, MOST_READ_BYTES);
        let (chunks, held) = (queue.chunks.len(), queue.held_bytes);
        let found = queue.decode_next(parts, piece, read, &mut self.counts)?;
        self.waiting_chunks -= chunks - queue.chunks.len();
        self.held_bytes -= held - queue.held_bytes;
        let Some((record, part)) = found else { return Ok(()) };
        self.counts.records += 1;
        let time_ns = self.clock.zip(record.ticks).map(|(clock, ticks)| clock.time_ns(ticks));
        let order = time_ns.or(part.and_then(|part| part.time_ns)).unwrap_or(LAST);
        queue.next = Some(DueRecord { record, time_ns, whose: queue.whose, part });
        self.due.push(Reverse((order, number)));
        Ok(())
    }
}

impl Queue {
    fn new(whose: Whose) -> Queue {
        Queue {
            whose,
            chunks: VecDeque::new(),
            held_bytes: 0,
            bytes: Vec::new(),
            decoded: 0,
            read_bytes: 0,
            position: 0,
            limit: 0,
            is_open: false,
            decoder: Decoder::default(),
            next: None,
        }
    }

    /// The next record with an instruction or an address, and its part; `None` when all chunks were decoded.
    fn decode_next(
        &mut self,
        parts: &[Part],
        piece: u64,
        read: &mut ReadAt<'_>,
        counts: &mut Counts,
    ) -> Result<Option<(TraceRecord, Option<Part>)>, SamplesError> {
        while self.stands_in_chunk(parts, counts) {
            let until = usize::try_from(self.limit - self.position).unwrap_or(usize::MAX);
            let here = self.bytes.get(self.decoded..).unwrap_or_default();
            let inside = here.get(..until).unwrap_or(here);
            let available = inside.len();
            match self.decoder.step(inside, self.position) {
                Step::Packet(length, record) => {
                    self.decoded += length;
                    self.position += length as u64;
                    match record {
                        Some(record) if record.says_where() => {
                            let of = parts.get(parts.partition_point(|part| part.end < self.position));
                            return Ok(Some((record, of.copied())));
                        }
                        Some(_) => counts.unreadable += 1,
                        None => {}
                    }
                }
                Step::Cut if available < until && self.fill(piece, read)? => {}
                // The trace ends within a packet: the decoder gives up the rest of its part, or of the file.
                Step::Cut => {
                    counts.unreadable += 1;
                    self.decoder.drop_begun();
                    self.decoded += available;
                    let has_ended = available < until;
                    self.position = if has_ended { u64::MAX } else { self.limit };
                    self.limit = self.position;
                }
            }
        }
        Ok(None)
    }

    /// Moves to the next part, and the next chunk, where one ends; false when there is no more.
    fn stands_in_chunk(&mut self, parts: &[Part], counts: &mut Counts) -> bool {
        while let Some(chunk) = self.chunks.front() {
            let end = chunk.position.saturating_add(chunk.size_bytes);
            if !self.is_open {
                self.is_open = true;
                (self.position, self.limit) = (chunk.position, chunk.position);
            }
            if self.position < self.limit {
                return true;
            }
            counts.unreadable += u64::from(self.decoder.drop_begun());
            if self.position < end {
                let of = parts.get(parts.partition_point(|part| part.end <= self.position));
                self.limit = of.map_or(end, |part| part.end.min(end));
                return true;
            }
            self.end_chunk();
        }
        false
    }

    /// Reads on in the first chunk; false when there is no more.
    fn fill(&mut self, piece: u64, read: &mut ReadAt<'_>) -> Result<bool, SamplesError> {
        let Some(chunk) = self.chunks.front_mut() else { return Ok(false) };
        self.bytes.drain(..self.decoded.min(self.bytes.len()));
        self.decoded = 0;
        let rest = chunk.size_bytes - self.read_bytes.min(chunk.size_bytes);
        let got = match &mut chunk.place {
            ChunkBytes::Held(bytes) => {
                let bytes = std::mem::take(bytes);
                self.bytes.extend_from_slice(&bytes);
                bytes.len()
            }
            ChunkBytes::File(at) => {
                let (kept, size) = (self.bytes.len(), rest.min(piece) as usize);
                self.bytes.resize(kept + size, 0);
                let got =
                    read(at.saturating_add(self.read_bytes), self.bytes.get_mut(kept..).unwrap_or_default())?;
                self.bytes.truncate(kept + got);
                got
            }
        };
        self.read_bytes += got as u64;
        Ok(got > 0)
    }

    fn end_chunk(&mut self) {
        if let Some(Chunk { place: ChunkBytes::Held(_), size_bytes, .. }) = self.chunks.pop_front() {
            self.held_bytes -= size_bytes;
        }
        self.is_open = false;
        self.read_bytes = 0;
        self.decoded = 0;
        match self.chunks.is_empty() {
            true => self.bytes = Vec::new(),
            false => self.bytes.clear(),
        }
    }
}
