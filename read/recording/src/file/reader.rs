//! Reading a recording, as a stream or whole.

use super::decoder as decode;
use super::frame;
use super::frame::{MAGIC, OLDEST_VERSION, Skip, Unsealed, VERSION};
use crate::error::{Damage, RecordingError};
use crate::records::event::Event;
use crate::records::header::{Ending, Header, Mode, ProfileRun, Summary};
use crate::records::system::{MeasuredCall, SystemSummary};
use crate::varint::Cursor;
use lineup_model::access::{Call, MemoryEvent, StackRange};
use lineup_model::image::LoadedImage;
use lineup_model::process::Process;
use std::io::{self, Read, Seek, SeekFrom};

/// Streams a recording: an iterator of [`Event`] in the order they were written. Threads write in
/// turn, so order by [`Call::entered_at`] and [`MemoryEvent::at`] where order matters.
pub struct Reader<R: Read> {
    input: R,
    header: Header,
    block: Vec<u8>,
    /// The position in the block at which the last record began.
    begun_at: usize,
    at: usize,
    good_bytes: u64,
    damage: Option<Damage>,
    ended: bool,
    /// The function that passes over parts of a log, when they are skipped.
    skip: Option<Skip<R>>,
}

fn skip<R: Read + Seek>(input: &mut R, bytes: u64) -> io::Result<bool> {
    let Some(before_last) = bytes.checked_sub(1) else { return Ok(true) };
    input.seek(SeekFrom::Current(before_last.cast_signed()))?;
    // A place behind the end can be looked for as well.
    Ok(frame::fill(input, &mut [0])? == 1)
}

impl<R: Read + Seek> Reader<R> {
    /// Passes over parts of a log, which is long: they are neither read nor checked.
    #[must_use]
    pub fn without_log(self) -> Self {
        Reader { skip: Some(skip), ..self }
    }
}

impl<R: Read> Reader<R> {
    /// Reads magic, version and header.
    ///
    /// # Errors
    /// When these cannot be read; later damage is reported by [`Reader::damage`] instead.
    pub fn new(mut input: R) -> Result<Self, RecordingError> {
        let mut start = [0u8; 12];
        let count = frame::fill(&mut input, &mut start)?;
        if count < start.len() || start[..8] != MAGIC[..] {
            let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
            return Err(match start[..count].iter().all(is_text) {
                _ if count == 0 => RecordingError::Empty,
                true => RecordingError::Text,
                false => RecordingError::NotARecording,
            });
        }
        let found = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
        if !(OLDEST_VERSION..=VERSION).contains(&found) {
            return Err(RecordingError::Version { found, supported: VERSION });
        }
        let no_header = |what: &str| {
            RecordingError::NoHeader(Damage { good_bytes: start.len() as u64, what: what.into() })
        };
        let (block, bytes) = match frame::unseal(&mut input, None, false)? {
            Unsealed::Block(block, bytes) => (block, bytes),
            Unsealed::End => return Err(no_header("the file ends")),
            Unsealed::Damaged(what) => return Err(no_header(&what)),
        };
        let mut cursor = Cursor::new(&block);
        let header = decode::header(&mut cursor).ok_or_else(|| no_header("the header is malformed"))?;
        let at = block.len() - cursor.left();
        Ok(Reader {
            input,
            header,
            block,
            begun_at: at,
            at,
            good_bytes: start.len() as u64 + bytes,
            damage: None,
            ended: false,
            skip: None,
        })
    }

    /// The subject and the parameters of the recording.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The place where the file stopped being readable; `None` before that, and after a clean end.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// The bytes of the last record, for [`crate::Encoder::append_packed`]; none before the first.
    pub fn record(&self) -> &[u8] {
        &self.block[self.begun_at..self.at]
    }

    /// Bytes read so far that form whole, checked blocks.
    pub fn good_bytes(&self) -> u64 {
        self.good_bytes
    }

    fn stop(&mut self, what: String) -> Option<Event> {
        self.damage = Some(Damage { good_bytes: self.good_bytes, what });
        self.ended = true;
        None
    }

    /// Loads the next block; false at the end.
    fn next_block(&mut self) -> bool {
        let may_have_log = self.header.mode == Mode::WholeProgram;
        match frame::unseal(&mut self.input, self.skip, may_have_log) {
            Ok(Unsealed::Block(block, bytes)) => {
                self.block = block;
                (self.begun_at, self.at) = (0, 0);
                self.good_bytes += bytes;
            }
            Ok(Unsealed::End) => self.ended = true,
            Ok(Unsealed::Damaged(what)) => {
                self.stop(what);
            }
            Err(error) => {
                self.stop(format!("reading failed: {error}"));
            }
        }
        !self.ended
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        while self.at >= self.block.len() {
            if !self.next_block() {
                return None;
            }
        }
        let mut cursor = Cursor::new(&self.block[self.at..]);
        match decode::event(&mut cursor) {
            Some(event) => {
                self.begun_at = self.at;
                self.at = self.block.len() - cursor.left();
                Some(event)
            }
            None => self.stop("a block holds a malformed record".into()),
        }
    }
}

/// The events of records that [`crate::Encoder::packed`] gave, up to the first that is malformed.
pub fn events_of(records: &[u8]) -> impl Iterator<Item = Event> {
    let mut cursor = Cursor::new(records);
    std::iter::from_fn(move || (cursor.left() > 0).then(|| decode::event(&mut cursor)).flatten())
}

/// A whole recording in memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Recording {
    /// The subject and the parameters of the recording.
    pub header: Header,
    /// Its processes, in order of their start.
    pub processes: Vec<Process>,
    /// Files mapped into the program.
    pub images: Vec<LoadedImage>,
    /// Stacks of its threads.
    pub stacks: Vec<StackRange>,
    /// Thread bases, as far as system calls set them.
    pub thread_bases: Vec<u64>,
    /// Calls, sorted by [`Call::entered_at`].
    pub calls: Vec<Call>,
    /// Memory events, sorted by [`MemoryEvent::at`].
    pub events: Vec<MemoryEvent>,
    /// Whole-program counts.
    pub profile: Vec<ProfileRun>,
    /// The recorder's counts of all processes; `None` when it did not get to write them.
    pub summary: Option<Summary>,
    /// The costs of calls on a whole system, sorted by [`MeasuredCall::begun_at`] of their CPUs.
    pub measured: Vec<MeasuredCall>,
    /// The totals of the whole system.
    pub system: Option<SystemSummary>,
    /// The way the program ended; `None` when that was not written.
    pub ending: Option<Ending>,
    /// The place where the file stopped being readable, when it did.
    pub damage: Option<Damage>,
}

/// Reads a whole recording. A cut-off or damaged file gives the records before the damage.
///
/// # Errors
/// When not even the header can be read.
pub fn read_all(bytes: &[u8]) -> Result<Recording, RecordingError> {
    let mut reader = Reader::new(bytes)?;
    let mut recording = Recording {
        header: reader.header().clone(),
        processes: Vec::new(),
        images: Vec::new(),
        stacks: Vec::new(),
        thread_bases: Vec::new(),
        calls: Vec::new(),
        events: Vec::new(),
        profile: Vec::new(),
        measured: Vec::new(),
        system: None,
        summary: None,
        ending: None,
        damage: None,
    };
    for event in reader.by_ref() {
        match event {
            Event::Process(process) => recording.processes.push(process),
            Event::Image(image) => recording.images.push(image),
            Event::Stack(stack) => recording.stacks.push(stack),
            Event::ThreadBase(base) => recording.thread_bases.push(base),
            Event::Call(call) => recording.calls.push(call),
            Event::Memory(event) => recording.events.push(event),
            Event::Profile(run) => recording.profile.push(run),
            Event::Summary(summary) => Summary::add_to(&mut recording.summary, summary),
            Event::Ending(ending) => recording.ending = Some(ending),
            Event::Measured(call) => recording.measured.push(call),
            Event::System(summary) => recording.system = Some(summary),
            // Long: read with a [`Reader`] by who replays it.
            Event::Stream(_)
            | Event::LogBlock(_)
            | Event::LogPart(_)
            | Event::Instruction(_)
            | Event::Window(_)
            | Event::AllocationSite(_)
            | Event::Placement(_)
            | Event::Context(_)
            | Event::Task(_)
            | Event::Turn(_)
            | Event::Reach(_) => {}
        }
    }
    recording.damage = reader.damage;
    recording.processes.sort_by_key(|process| process.id);
    recording.calls.sort_by_key(|call| call.entered_at);
    recording.events.sort_by_key(|event| event.at);
    recording.measured.sort_by_key(|call| (call.begun_at, call.cpu));
    Ok(recording)
}
