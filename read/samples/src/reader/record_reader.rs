//! The reader of a perf.data.

use super::packed::Packed;
use super::record_head::{HEAD_BYTES, Head, size_behind};
use super::rounds::{Rounds, Waiting};
use super::scan::{ReadElsewhere, read_elsewhere};
use super::threads::Behind;
use super::traced::Traced;
use crate::bytes::{Fields, read_full, text, u64_at};
use crate::error::SamplesError;
use crate::event::Event;
use crate::header::{self, Header, Records, words};
use crate::numbers::{
    ATTRIBUTE, AUXILIARY, BUILD_ID, EVENT_UPDATE, ROUND_ENDS, TIMER, TRACE_INFO, TRACING_DATA,
};
use crate::record::{self, Record};
use crate::spe::Clock;
use foldhash::HashMap;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// Bytes read at once.
const BUFFER_BYTES: usize = 1 << 20;
/// Records of perf's own.
const FIRST_OF_PERF: u32 = 64;
const FEATURE: u32 = 80;
const COMPRESSED: u32 = 81;
const COMPRESSED_2: u32 = 83;
/// The kind of an event's update: its name.
const UPDATES_NAME: u64 = 2;

/// The way the records ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// As perf wrote them.
    Whole,
    /// The file ends within them, or perf did not get to write their number. All whole ones were read.
    CutOff {
        /// Bytes of whole records.
        after_bytes: u64,
    },
}

/// Reads a perf.data. Memory is that of two of perf's rounds of reading, at most some 128 MiB.
#[derive(Debug)]
pub struct Reader<R: Read> {
    pub(super) input: BufReader<R>,
    pub(super) header: Header,
    pub(super) records: Records,
    is_pipe: bool,
    pub(super) read_bytes: u64,
    pub(super) ending: Option<Ending>,
    pub(super) rounds: Rounds,
    event_by_id: HashMap<u64, usize>,
    has_one_layout: bool,
    /// Bytes that were read and not used.
    pub(super) skipped_auxiliary_bytes: u64,
    /// The reader of a file's traces; a pipe's are read in their order.
    pub(super) elsewhere: Option<ReadElsewhere<R>>,
    pub(super) clock: Option<Clock>,
    pub(super) traced: Option<Traced>,
    /// Samples that stand among the records.
    pub(super) told_samples: u64,
    /// Records that were compressed.
    packed: Packed,
}

impl<R: Read + Seek> Reader<R> {
    /// A file, or the output of `perf record -o -` in one.
    ///
    /// # Errors
    /// When it is no perf.data, or its head is damaged.
    pub fn of_file(mut input: R) -> Result<Reader<R>, SamplesError> {
        let first = first_bytes(&mut input)?;
        if header::is_pipe(&first)? {
            let mut reader = Reader::after_pipe_head(input)?;
            reader.elsewhere = Some(read_elsewhere);
            return Ok(reader);
        }
        let (header, records) = header::of_file(&mut input)?;
        input.seek(SeekFrom::Start(records.start))?;
        let mut reader = Reader::new(input, header, records, false);
        reader.elsewhere = Some(read_elsewhere);
        reader.settle_events()?;
        Ok(reader)
    }
}

fn first_bytes(input: &mut impl Read) -> Result<[u8; 16], SamplesError> {
    let mut read = Vec::new();
    input.take(16).read_to_end(&mut read)?;
    let is_text = |bytes: &[u8]| {
        let is_part = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        !bytes.starts_with(b"PERFILE2") && !bytes.starts_with(b"2ELIFREP") && bytes.iter().all(is_part)
    };
    match <[u8; 16]>::try_from(read.as_slice()) {
        _ if read.is_empty() => Err(SamplesError::Empty),
        _ if is_text(&read) => Err(SamplesError::Text),
        Ok(first) => Ok(first),
        Err(_) if read.starts_with(b"PERFILE2") => {
            Err(SamplesError::Damaged { what: "the head ends", at: read.len() as u64 })
        }
        Err(_) => Err(SamplesError::NotPerf),
    }
}

impl<R: Read> Reader<R> {
    /// A pipe, as `perf record -o -` writes it.
    ///
    /// # Errors
    /// When it is no perf.data, or holds no event.
    pub fn of_pipe(mut input: R) -> Result<Reader<R>, SamplesError> {
        let first = first_bytes(&mut input)?;
        if !header::is_pipe(&first)? {
            return Err(SamplesError::Damaged {
                what: "a file's head in a pipe: name the file instead",
                at: 0,
            });
        }
        Reader::after_pipe_head(input)
    }

    fn after_pipe_head(input: R) -> Result<Reader<R>, SamplesError> {
        let records = Records { start: 16, size_bytes: None, is_whole: true };
        Ok(Reader::new(input, Header::default(), records, true))
    }

    fn new(input: R, header: Header, records: Records, is_pipe: bool) -> Reader<R> {
        Reader {
            input: BufReader::with_capacity(BUFFER_BYTES, input),
            header,
            records,
            is_pipe,
            read_bytes: 0,
            ending: None,
            rounds: Rounds::default(),
            event_by_id: HashMap::default(),
            has_one_layout: false,
            skipped_auxiliary_bytes: 0,
            elsewhere: None,
            clock: None,
            traced: None,
            told_samples: 0,
            packed: Packed::default(),
        }
    }

    /// The sections other than the records. For a pipe, those seen so far.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The way the records ended; `None` before the end.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Bytes of records read so far.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Bytes of traces (Intel PT) that stand among the records and are not decoded.
    pub fn skipped_auxiliary_bytes(&self) -> u64 {
        self.skipped_auxiliary_bytes
    }

    /// Records that came too late for the order of time: perf had written no ends of rounds.
    pub fn out_of_order(&self) -> u64 {
        self.rounds.out_of_order()
    }

    /// The next record in the order of time; `None` after the last.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged. Earlier records remain valid.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, SamplesError> {
        loop {
            if let Some(sample) = self.due_sample()? {
                return Ok(Some(sample));
            }
            if self.rounds.has_more() {
                break;
            }
            if self.ending.is_some() {
                return self.check_traces().map(|()| None);
            }
            self.read_on()?;
        }
        let Some(Waiting { number, misc, event, .. }) = self.rounds.advance() else { return Ok(None) };
        let Some(described) = self.header.events.get(event) else { return Err(SamplesError::NoEvents) };
        self.told_samples += u64::from(number == record::SAMPLE);
        if let Some(traced) = self.traced.as_mut().filter(|_| number != record::SAMPLE) {
            let body = self.rounds.body();
            traced.threads.see(number, misc, body, Behind::of(&described.places, body));
        }
        Ok(Some(record::record(number, misc, self.rounds.padded_body(), (event, described))))
    }

    /// Reads one record. At the end it releases all waiting records.
    fn read_on(&mut self) -> Result<(), SamplesError> {
        if self.read_packed()? {
            return Ok(());
        }
        if self.records.size_bytes.is_some_and(|size| self.read_bytes >= size) {
            return self.end(Ending::Whole);
        }
        let mut head = [0; HEAD_BYTES];
        let got = read_full(&mut self.input, &mut head)?;
        let cut_off = Ending::CutOff { after_bytes: self.read_bytes };
        if got < HEAD_BYTES {
            let is_expected = got == 0 && self.is_pipe;
            return self.end(if is_expected { Ending::Whole } else { cut_off });
        }
        let Some((Head { number, misc, body_bytes }, size)) = Head::parse(&head) else {
            return self.end(cut_off);
        };
        let at = self.records.start + self.read_bytes;
        if usize::from(size) < HEAD_BYTES {
            // Behind a cut there may be zeros that the file system has put there.
            return match self.records.is_whole {
                true => Err(SamplesError::Damaged { what: "a record shorter than its head", at }),
                false => self.end(cut_off),
            };
        }
        let got = self.rounds.read_body(&mut self.input, body_bytes)?;
        if got < body_bytes {
            return self.end(cut_off);
        }
        self.read_bytes += u64::from(size);
        self.take_in(number, misc, at)
    }

    /// Adds the next of the records that were compressed; false when there is no more.
    fn read_packed(&mut self) -> Result<bool, SamplesError> {
        let at = self.records.start + self.read_bytes;
        let Some(Head { number, misc, body_bytes }) = self.packed.next_head(at)? else { return Ok(false) };
        self.rounds.read_body(&mut self.packed.rest(), body_bytes)?;
        self.packed.pass(body_bytes);
        if matches!(number, AUXILIARY | TRACING_DATA | COMPRESSED | COMPRESSED_2) {
            let what = "a record with bytes behind it, among compressed ones,";
            return Err(SamplesError::Damaged { what, at });
        }
        self.take_in(number, misc, at)?;
        Ok(true)
    }

    fn end(&mut self, ending: Ending) -> Result<(), SamplesError> {
        // In a file that perf did not finish, the records may end where the file does.
        let is_cut = ending == Ending::Whole && (!self.records.is_whole || self.packed.is_amid_record());
        let after_bytes = self.read_bytes;
        self.ending = Some(if is_cut { Ending::CutOff { after_bytes } } else { ending });
        self.rounds.end_all();
        if self.header.events.is_empty() { Err(SamplesError::NoEvents) } else { Ok(()) }
    }

    /// Adds the record whose body was just read.
    fn take_in(&mut self, number: u32, misc: u16, at: u64) -> Result<(), SamplesError> {
        if number >= FIRST_OF_PERF {
            return self.take_in_perfs(number, misc, at);
        }
        if self.header.events.is_empty() {
            return Err(SamplesError::NoEvents);
        }
        if self.is_pipe && self.event_by_id.is_empty() && !self.has_one_layout {
            self.settle_events()?;
        }
        let body = self.rounds.read_last();
        let event = self.event_of(number, body);
        let Some(described) = self.header.events.get(event) else { return Err(SamplesError::NoEvents) };
        let places = described.places;
        let time = match number {
            record::SAMPLE => places.sample_time.and_then(|at| u64_at(body, at)),
            _ => places.other_time.and_then(|back| u64_at(body, body.len().checked_sub(back)?)),
        };
        if number == record::AUXILIARY_WRITTEN && self.takes_parts() {
            let body = body.to_vec();
            self.see_part(&body);
        }
        // A record without a time precedes all with one.
        self.rounds.keep(time.unwrap_or_default(), Waiting { number, misc, event });
        Ok(())
    }

    /// The event that a record belongs to.
    pub(super) fn event_of(&self, number: u32, body: &[u8]) -> usize {
        if self.header.events.len() == 1 {
            return 0;
        }
        let Some(places) = self.header.events.first().map(|event| event.places) else { return 0 };
        let id = match number {
            record::SAMPLE => places.sample_id.and_then(|at| u64_at(body, at)),
            _ => places.other_id.and_then(|back| u64_at(body, body.len().checked_sub(back)?)),
        };
        id.and_then(|id| self.event_by_id.get(&id).copied()).unwrap_or_default()
    }

    /// Checks that records can be assigned to their events.
    fn settle_events(&mut self) -> Result<(), SamplesError> {
        let events = &self.header.events;
        let ids = events.iter().enumerate();
        self.event_by_id =
            ids.flat_map(|(number, event)| event.ids.iter().map(move |id| (*id, number))).collect();
        let first = events.first().ok_or(SamplesError::NoEvents)?.places;
        self.has_one_layout = events.iter().all(|event| event.places == first);
        let are_identified = events.iter().all(|event| event.places.is_identified);
        let can_be_told = events.len() == 1 || self.has_one_layout || are_identified;
        if can_be_told { Ok(()) } else { Err(SamplesError::NoIdentifier { events: events.len() }) }
    }

    /// A record that perf itself wrote.
    fn take_in_perfs(&mut self, number: u32, misc: u16, at: u64) -> Result<(), SamplesError> {
        let body = self.rounds.read_last();
        match number {
            ATTRIBUTE => self.header.see_attribute(body),
            FEATURE => {
                let bit = u64_at(body, 0).and_then(|bit| u32::try_from(bit).ok());
                if let Some(bit) = bit {
                    self.header.see_section(bit, body.get(8..).unwrap_or_default());
                }
            }
            EVENT_UPDATE => self.header.see_update(body),
            BUILD_ID => {
                let mut record = [0, 0, 0, 0, misc as u8, (misc >> 8) as u8, 0, 0].to_vec();
                record.extend_from_slice(body);
                self.header.see_build_id(&record);
            }
            COMPRESSED => self.packed.feed(body),
            COMPRESSED_2 => {
                let size = u64_at(body, 0).and_then(|size| usize::try_from(size).ok());
                let packed = body.get(8..).zip(size).and_then(|(packed, size)| packed.get(..size));
                let damaged = SamplesError::Damaged { what: "a compressed record without its length", at };
                self.packed.feed(packed.ok_or(damaged)?);
            }
            ROUND_ENDS => self.rounds.end_round(),
            TRACE_INFO => self.see_trace_info()?,
            TIMER => self.see_clock(),
            AUXILIARY | TRACING_DATA => {
                let size = size_behind(number, body);
                let size = size.ok_or(SamplesError::Damaged { what: "a trace without its length", at })?;
                self.pass_over(number, size)?;
            }
            _ => {}
        }
        self.rounds.drop_last();
        Ok(())
    }

    /// Passes over the bytes behind the last record read, except the decoded ones.
    fn pass_over(&mut self, number: u32, size: u64) -> Result<(), SamplesError> {
        let taken = if number == AUXILIARY { self.take_trace()? } else { 0 };
        let skipped =
            std::io::copy(&mut self.input.by_ref().take(size - taken.min(size)), &mut std::io::sink())?;
        self.read_bytes = self.read_bytes.saturating_add(taken).saturating_add(skipped);
        let is_decoded = number == TRACING_DATA || self.has_scanned();
        self.skipped_auxiliary_bytes += if is_decoded { 0 } else { skipped };
        Ok(())
    }
}

impl Header {
    /// An event, as a pipe describes it: its description, then its identities.
    fn see_attribute(&mut self, body: &[u8]) {
        let size = Fields::new(body.get(4..).unwrap_or_default()).u32().unwrap_or_default() as usize;
        let Some((attribute, ids)) = body.split_at_checked(size) else { return };
        if let Some(mut event) = Event::parse(attribute) {
            event.ids = words(ids);
            self.events.push(event);
        }
    }

    fn see_update(&mut self, body: &[u8]) {
        let (Some(what), Some(id)) = (u64_at(body, 0), u64_at(body, 8)) else { return };
        let event = self.events.iter_mut().find(|event| event.ids.contains(&id));
        if let Some(event) = event.filter(|_| what == UPDATES_NAME) {
            event.name = text(body.get(16..).unwrap_or_default());
        }
    }
}
