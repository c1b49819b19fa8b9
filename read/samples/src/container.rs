//! Writes the container of a perf.data: events, records, and the sections behind them.
//!
//! Perf can read its output. The caller gives the records of samples in the kernel's form, or from
//! [`crate::synthetic_records`].

use crate::header::BuildId;
use crate::numbers::section::{
    ARCHITECTURE, BUILD_IDS, COMMAND_LINE, CPUS, EVENT_NAMES, HOST_NAME, PROCESSOR, RELEASE,
};
use crate::numbers::{ATTRIBUTE, BUILD_ID, EVENT_UPDATE, ROUND_ENDS};
use std::io::{self, Seek, SeekFrom, Write};

/// Bytes of an event's description, `struct perf_event_attr` of Linux 5.13: later additions of newer kernels are left
/// out.
pub const ATTRIBUTE_BYTES: usize = 128;
const HEAD_BYTES: u64 = 104;
const PIPE_HEAD_BYTES: u64 = 16;
/// The offset of an event's size in its description.
const SIZE_AT: usize = 4;
const UPDATES_NAME: u64 = 2;
/// Texts behind the records take a multiple of this many bytes.
const TEXT_BYTES: usize = 64;

/// An event, as the container describes it.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// `struct perf_event_attr`, of which the first [`ATTRIBUTE_BYTES`] are written.
    pub attribute: Vec<u8>,
    /// Identities that its records have.
    pub ids: Vec<u64>,
}

impl Description {
    fn attribute(&self) -> [u8; ATTRIBUTE_BYTES] {
        let mut bytes = [0; ATTRIBUTE_BYTES];
        let size = self.attribute.len().min(ATTRIBUTE_BYTES);
        bytes[..size].copy_from_slice(&self.attribute[..size]);
        bytes[SIZE_AT..SIZE_AT + 4].copy_from_slice(&(ATTRIBUTE_BYTES as u32).to_le_bytes());
        bytes
    }
}

/// The sections behind the records. Empty ones are left out.
#[derive(Clone, Default, Debug)]
pub struct About {
    /// The machine's name.
    pub host_name: Option<String>,
    /// The kernel's release.
    pub release: Option<String>,
    /// The machine's architecture: `x86_64`.
    pub architecture: Option<String>,
    /// The number of possible CPUs, and of running ones.
    pub cpus: Option<(u32, u32)>,
    /// The processor's own name.
    pub processor: Option<String>,
    /// The command that recorded.
    pub command_line: Vec<String>,
    /// Build ids of files.
    pub build_ids: Vec<BuildId>,
}

/// A perf.data that is being written.
#[derive(Debug)]
pub struct Container<W> {
    out: W,
    events: Vec<Description>,
    data_start: u64,
}

impl<W: Write> Container<W> {
    /// The output of `perf record -o -`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn pipe(mut out: W, events: Vec<Description>) -> io::Result<Container<W>> {
        out.write_all(b"PERFILE2")?;
        out.write_all(&PIPE_HEAD_BYTES.to_le_bytes())?;
        let mut container = Container { out, events: Vec::new(), data_start: PIPE_HEAD_BYTES };
        for event in &events {
            let mut body = event.attribute().to_vec();
            event.ids.iter().for_each(|id| body.extend_from_slice(&id.to_le_bytes()));
            container.record(ATTRIBUTE, 0, &body)?;
            let first = event.ids.first().copied().unwrap_or_default();
            body = [UPDATES_NAME, first].iter().flat_map(|word| word.to_le_bytes()).collect();
            put_text(&mut body, &event.name, 8);
            container.record(EVENT_UPDATE, 0, &body)?;
        }
        container.events = events;
        Ok(container)
    }

    /// Writes a record.
    ///
    /// # Errors
    /// When it is longer than a record may be, or cannot be written.
    pub fn record(&mut self, number: u32, misc: u16, body: &[u8]) -> io::Result<()> {
        let size = u16::try_from(body.len() + 8).map_err(|_| io::Error::other("a record is too long"))?;
        self.out.write_all(&number.to_le_bytes())?;
        self.out.write_all(&misc.to_le_bytes())?;
        self.out.write_all(&size.to_le_bytes())?;
        self.out.write_all(body)
    }

    /// Writes a record with more behind it than a record may hold.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn record_with(&mut self, number: u32, body: &[u8], behind: &[u8]) -> io::Result<()> {
        self.record(number, 0, body)?;
        self.out.write_all(behind)
    }

    /// Ends a round: records after the next round's end are not earlier than records before this one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn round(&mut self) -> io::Result<()> {
        self.record(ROUND_ENDS, 0, &[])
    }

    /// The pipe's bytes.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write + Seek> Container<W> {
    /// The file that `perf record` would write. Until it is finished, the file looks like one that perf did not finish.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn file(out: W, events: Vec<Description>) -> io::Result<Container<W>> {
        let ids: usize = events.iter().map(|event| event.ids.len()).sum();
        let head = HEAD_BYTES + 8 * ids as u64;
        let data_start = head + events.len() as u64 * (ATTRIBUTE_BYTES as u64 + 16);
        let mut container = Container { out, events, data_start };
        container.write_head(0, 0)?;
        Ok(container)
    }

    /// Writes the parts before and behind the records.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self, about: &About) -> io::Result<W> {
        let data_end = self.out.stream_position()?;
        let sections = self.sections(about);
        let mut at = data_end + 16 * sections.len() as u64;
        for (_, bytes) in &sections {
            self.out.write_all(&at.to_le_bytes())?;
            self.out.write_all(&(bytes.len() as u64).to_le_bytes())?;
            at += bytes.len() as u64;
        }
        sections.iter().try_for_each(|(_, bytes)| self.out.write_all(bytes))?;
        let features = sections.iter().fold(0u64, |bits, (bit, _)| bits | 1 << bit);
        self.write_head(data_end - self.data_start, features)?;
        self.out.seek(SeekFrom::End(0))?;
        Ok(self.out)
    }

    /// Writes everything before the records. The output's position is then behind it.
    fn write_head(&mut self, data_bytes: u64, features: u64) -> io::Result<()> {
        let each = ATTRIBUTE_BYTES as u64 + 16;
        let all = each * self.events.len() as u64;
        let attributes_at = self.data_start - all;
        let words =
            [HEAD_BYTES, each, attributes_at, all, self.data_start, data_bytes, 0, 0, features, 0, 0, 0];
        let mut head = b"PERFILE2".to_vec();
        let mut put = |word: u64| head.extend_from_slice(&word.to_le_bytes());
        words.into_iter().for_each(&mut put);
        self.events.iter().flat_map(|event| &event.ids).for_each(|id| put(*id));
        let mut ids_at = HEAD_BYTES;
        for event in &self.events {
            head.extend_from_slice(&event.attribute());
            let ids_bytes = 8 * event.ids.len() as u64;
            [ids_at, ids_bytes].iter().for_each(|word| head.extend_from_slice(&word.to_le_bytes()));
            ids_at += ids_bytes;
        }
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&head)
    }

    /// Sections behind the records, with the bits that announce them, in their order.
    fn sections(&self, about: &About) -> Vec<(u32, Vec<u8>)> {
        let text = |text: &Option<String>| {
            let mut bytes = Vec::new();
            text.iter().for_each(|text| put_header_text(&mut bytes, text));
            bytes
        };
        let cpus = about.cpus.iter().flat_map(|(may, run)| [may.to_le_bytes(), run.to_le_bytes()].concat());
        let mut command_line = Vec::new();
        if !about.command_line.is_empty() {
            command_line.extend_from_slice(&(about.command_line.len() as u32).to_le_bytes());
            about.command_line.iter().for_each(|word| put_header_text(&mut command_line, word));
        }
        let sections = [
            (BUILD_IDS, about.build_ids.iter().flat_map(build_id).collect()),
            (HOST_NAME, text(&about.host_name)),
            (RELEASE, text(&about.release)),
            (ARCHITECTURE, text(&about.architecture)),
            (CPUS, cpus.collect()),
            (PROCESSOR, text(&about.processor)),
            (COMMAND_LINE, command_line),
            (EVENT_NAMES, self.event_names()),
        ];
        sections.into_iter().filter(|(_, bytes): &(u32, Vec<u8>)| !bytes.is_empty()).collect()
    }

    fn event_names(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let put = |number: usize, bytes: &mut Vec<u8>| {
            bytes.extend_from_slice(&(number as u32).to_le_bytes());
        };
        put(self.events.len(), &mut bytes);
        put(ATTRIBUTE_BYTES, &mut bytes);
        for event in &self.events {
            bytes.extend_from_slice(&event.attribute());
            put(event.ids.len(), &mut bytes);
            put_header_text(&mut bytes, &event.name);
            event.ids.iter().for_each(|id| bytes.extend_from_slice(&id.to_le_bytes()));
        }
        bytes
    }
}

/// A text with its terminator, in room for a multiple of `multiple` bytes.
pub(crate) fn put_text(into: &mut Vec<u8>, text: &str, multiple: usize) {
    let size = (text.len() + 1).next_multiple_of(multiple);
    into.extend_from_slice(text.as_bytes());
    into.resize(into.len() + size - text.len(), 0);
}

fn put_header_text(into: &mut Vec<u8>, text: &str) {
    let size = (text.len() + 1).next_multiple_of(TEXT_BYTES);
    into.extend_from_slice(&(size as u32).to_le_bytes());
    put_text(into, text, TEXT_BYTES);
}

/// A record in the section of build ids. Names in brackets are the kernel's.
fn build_id(of: &BuildId) -> Vec<u8> {
    const HAS_SIZE: u16 = 1 << 15;
    let mode: u16 = if of.path.starts_with('[') { 1 } else { 2 };
    let size = of.id.len().min(20);
    let mut body = u32::MAX.to_le_bytes().to_vec();
    let mut padded = [0; 24];
    padded[..size].copy_from_slice(&of.id[..size]);
    padded[20] = size as u8;
    body.extend_from_slice(&padded);
    put_text(&mut body, &of.path, TEXT_BYTES);
    let mut record = BUILD_ID.to_le_bytes().to_vec();
    record.extend_from_slice(&(HAS_SIZE | mode).to_le_bytes());
    record.extend_from_slice(&((body.len() + 8) as u16).to_le_bytes());
    record.extend_from_slice(&body);
    record
}
