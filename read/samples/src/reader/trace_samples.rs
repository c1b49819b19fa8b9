//! Samples out of traces, among the records of a file.

use super::record_head::size_behind;
use super::record_reader::Reader;
use super::scan::Scan;
use super::threads::{Behind, Thread, Threads};
use super::traced::Traced;
use crate::bytes::Fields;
use crate::error::SamplesError;
use crate::numbers::{AUXILIARY, TRACING_DATA};
use crate::record::{AUXILIARY_WRITTEN, Mode, Record, Sample, Weight};
use crate::spe::{self, ChunkBytes, Clock, DueRecord, Info, Kind, Part, Traces, Whose};
use std::io::Read;

/// Bytes of a pipe's trace that are taken at once; the rest is passed over.
const MOST_TAKEN_BYTES: u64 = 64 << 20;
/// The flag of a part that was overwritten repeatedly: its position is meaningless.
const OVERWRITTEN: u64 = 2;
/// No CPU, or no thread.
const NONE: u32 = u32::MAX;

/// A chunk, as its record announces it.
struct Announced {
    whose: Whose,
    position: u64,
    size_bytes: u64,
}

impl Announced {
    fn parse(body: &[u8]) -> Option<Announced> {
        let mut fields = Fields::new(body);
        let (size_bytes, position, _reference) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (_index, thread, cpu) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let whose = if cpu == NONE { Whose::Thread(thread) } else { Whose::Cpu(cpu) };
        Some(Announced { whose, position, size_bytes })
    }
}

impl<R: Read> Reader<R> {
    /// Reads the description of the following traces.
    pub(super) fn see_trace_info(&mut self) -> Result<(), SamplesError> {
        let Some(info) = Info::parse(self.rounds.read_last()).filter(|_| self.traced.is_none()) else {
            return Ok(());
        };
        let events = &mut self.header.events;
        events
            .iter_mut()
            .filter(|event| info.has_kind(event.kind.into()))
            .for_each(|event| event.is_traced = true);
        // Their times are then of another clock than the one that the timer's ticks convert to.
        let clock = self.clock.filter(|_| events.iter().all(|event| !event.has_own_clock));
        let is_scanned = self.elsewhere.is_some();
        let (traces, threads) = (Traces::new(clock), Threads::default());
        self.traced = Some(Traced { info, traces, threads, is_scanned, guessed_threads: 0 });
        self.scan_traces()
    }

    pub(super) fn see_clock(&mut self) {
        self.clock = Clock::parse(self.rounds.read_last());
    }

    /// Finds all chunks and parts in the rest of a file.
    fn scan_traces(&mut self) -> Result<(), SamplesError> {
        let Some(elsewhere) = self.elsewhere else { return Ok(()) };
        let start = self.records.start;
        let end = self.records.size_bytes.map_or(u64::MAX, |size| start.saturating_add(size));
        let mut scan = Scan::new(start.saturating_add(self.read_bytes), end);
        while let Some(found) = scan.next(self.input.get_mut(), elsewhere)? {
            if !matches!(found.number, AUXILIARY | TRACING_DATA | AUXILIARY_WRITTEN) {
                continue;
            }
            let Some(body) = scan.body(found, self.input.get_mut(), elsewhere)?.map(<[u8]>::to_vec) else {
                break;
            };
            if found.number == AUXILIARY_WRITTEN {
                self.see_part(&body);
                continue;
            }
            let Some(size) = size_behind(found.number, &body) else { break };
            let place = ChunkBytes::File(scan.pass_over(size));
            let chunk = Announced::parse(&body).filter(|_| found.number == AUXILIARY);
            if let (Some(traced), Some(chunk)) = (&mut self.traced, chunk)
                && !traced.traces.see_chunk(chunk.whose, chunk.position, chunk.size_bytes, place)
            {
                self.skipped_auxiliary_bytes = self.skipped_auxiliary_bytes.saturating_add(chunk.size_bytes);
            }
        }
        Ok(())
    }

    /// Stores the kernel's description of a part of a trace.
    pub(super) fn see_part(&mut self, body: &[u8]) {
        let mut fields = Fields::new(body);
        let (Some(position), Some(size), Some(flags)) = (fields.u64(), fields.u64(), fields.u64()) else {
            return;
        };
        let event = self.event_of(AUXILIARY_WRITTEN, body);
        let (Some(traced), Some(described)) = (&mut self.traced, self.header.events.get(event)) else {
            return;
        };
        if flags & OVERWRITTEN != 0 {
            return;
        }
        let behind = Behind::of(&described.places, body);
        let (process, thread) = (behind.ran.map(|ran| ran.process), behind.ran.map(|ran| ran.thread));
        let part = Part { end: position.saturating_add(size), time_ns: behind.time_ns, process, thread };
        // The chunks show whether buffers belong to CPUs or to threads.
        let buffers = [behind.cpu.map(Whose::Cpu), thread.map(Whose::Thread)];
        buffers.into_iter().flatten().for_each(|whose| traced.traces.see_part(whose, part));
    }

    /// True when the parts of a trace are to be added in the order of their records.
    pub(super) fn takes_parts(&self) -> bool {
        self.traced.as_ref().is_some_and(|traced| !traced.is_scanned)
    }

    /// Takes the bytes behind the record of a pipe's trace that was read last, and returns their number. It takes none
    /// of a file's, and of other traces.
    pub(super) fn take_trace(&mut self) -> Result<u64, SamplesError> {
        let Some(traced) = self.traced.as_mut().filter(|traced| !traced.is_scanned) else { return Ok(0) };
        let Some(chunk) = Announced::parse(self.rounds.read_last()) else { return Ok(0) };
        let mut bytes = Vec::new();
        let most = chunk.size_bytes.min(MOST_TAKEN_BYTES);
        let taken = self.input.by_ref().take(most).read_to_end(&mut bytes)? as u64;
        if !traced.traces.see_chunk(chunk.whose, chunk.position, taken, ChunkBytes::Held(bytes)) {
            self.skipped_auxiliary_bytes += taken;
        }
        Ok(taken)
    }

    /// True when the chunks of a file's traces were found already.
    pub(super) fn has_scanned(&self) -> bool {
        self.traced.as_ref().is_some_and(|traced| traced.is_scanned)
    }

    /// The next record of a trace, when it is its turn: none that waits is earlier.
    pub(super) fn due_sample(&mut self) -> Result<Option<Record<'static>>, SamplesError> {
        let Some(traced) = &mut self.traced else { return Ok(None) };
        let waits = self.rounds.next_time();
        if waits.is_none() && self.ending.is_none() && !traced.traces.is_full() {
            return Ok(None);
        }
        let (input, elsewhere) = (self.input.get_mut(), self.elsewhere);
        let mut read = |at: u64, into: &mut [u8]| elsewhere.map_or(Ok(0), |read| read(input, at, into));
        let first = traced.traces.first(&mut read)?;
        let Some(first) = first.filter(|first| waits.is_none_or(|waits| *first < waits)) else {
            return Ok(None);
        };
        let Some(told) = traced.traces.take(&mut read)? else { return Ok(None) };
        let (thread, is_guessed) = traced.thread_of(&told);
        traced.guessed_threads += u64::from(is_guessed);
        self.rounds.tell_between(first);
        Ok(Some(Record::Sample(self.sample_of(&told, thread))))
    }

    fn sample_of(&self, told: &DueRecord, thread: Option<Thread>) -> Sample<'static> {
        let cpu = told.cpu();
        let record = &told.record;
        let (kind, processor) = match &self.traced {
            Some(traced) => (traced.info.kind_of(cpu), traced.info.processor(cpu, self.header.processor)),
            None => (0, None),
        };
        let events = &self.header.events;
        let event = events.iter().position(|event| u64::from(event.kind) == kind);
        let event = event.or_else(|| events.iter().position(|event| event.is_traced)).unwrap_or_default();
        let is_access = matches!(record.kind, Kind::Access(_));
        let cycles = record.total_cycles.filter(|_| is_access);
        Sample {
            event,
            mode: match record.level {
                Some(0) => Mode::User,
                Some(1 | 2) => Mode::Kernel,
                _ => Mode::Other,
            },
            is_precise: true,
            instruction: record.instruction,
            process: thread.map(|thread| thread.process),
            thread: thread.map(|thread| thread.thread),
            time_ns: told.time_ns,
            address: record.address,
            physical_address: record.physical_address,
            cpu,
            period: None,
            weight: cycles.map(|cycles| Weight { full: cycles.into(), ..Weight::default() }),
            data_source: spe::data_source(record, processor),
            rest: None,
        }
    }

    /// At the end: whether traces were there, and nothing else, and nothing could be read of them.
    pub(super) fn check_traces(&self) -> Result<(), SamplesError> {
        let Some(traced) = &self.traced else { return Ok(()) };
        let counts = traced.traces.counts();
        let is_in_vain = counts.bytes > 0 && counts.records == 0 && self.told_samples == 0;
        if is_in_vain { Err(SamplesError::Undecodable { bytes: counts.bytes }) } else { Ok(()) }
    }

    /// Samples of traces that do not name their thread: the thread that ran when the kernel wrote them is assumed, and
    /// may be another.
    pub fn guessed_threads(&self) -> u64 {
        self.traced.as_ref().map_or(0, |traced| traced.guessed_threads)
    }

    /// Records of traces that were left out: they have no end, or no instruction and no address.
    pub fn unreadable_traced(&self) -> u64 {
        self.traced.as_ref().map_or(0, |traced| traced.traces.counts().unreadable)
    }
}
