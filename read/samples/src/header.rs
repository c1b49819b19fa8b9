//! The head of a perf.data, and the sections behind its records.

use crate::bytes::{Fields, text};
use crate::error::SamplesError;
use crate::event::Event;
use crate::numbers::section::{
    ARCHITECTURE, BUILD_IDS, COMMAND_LINE, EVENT_NAMES, HOST_NAME, PROCESSOR, RELEASE,
};
use std::io::{Read, Seek, SeekFrom};

const MAGIC: &[u8; 8] = b"PERFILE2";
const MAGIC_BIG_ENDIAN: &[u8; 8] = b"2ELIFREP";
/// Bytes of a pipe's head.
const PIPE_HEAD_BYTES: u64 = 16;
/// Bytes of a file's head.
const FILE_HEAD_BYTES: u64 = 104;
/// No event's description has more; nor has a section behind the records that is looked at.
const MOST_ATTRIBUTE_BYTES: u64 = 4096;
const MOST_SECTION_BYTES: u64 = 64 << 20;
/// A build id's length is valid only where this bit of its head is set; otherwise it has 20 bytes.
const BUILD_ID_HAS_SIZE: u16 = 1 << 15;

/// A file, or the kernel, with its build id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuildId {
    /// The path as perf saw it.
    pub path: String,
    /// The build id.
    pub id: Vec<u8>,
}

/// The parts of a perf.data other than its records.
#[derive(Clone, Default, Debug)]
pub struct Header {
    /// The sampled events.
    pub events: Vec<Event>,
    /// Build ids of the files that samples lie in.
    pub build_ids: Vec<BuildId>,
    /// The machine's name.
    pub host_name: Option<String>,
    /// The kernel's release.
    pub release: Option<String>,
    /// The machine's architecture: `x86_64`.
    pub architecture: Option<String>,
    /// The identity of Arm's processors (`MIDR_EL1`).
    pub(crate) processor: Option<u64>,
    /// The command line of perf.
    pub command_line: Vec<String>,
}

/// The place of the records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Records {
    /// The first byte.
    pub(crate) start: u64,
    /// Their size in bytes, when the head contains it.
    pub(crate) size_bytes: Option<u64>,
    /// False when the file ends before them, or perf did not get to write their number.
    pub(crate) is_whole: bool,
}

#[derive(Clone, Copy)]
struct Section {
    offset: u64,
    size_bytes: u64,
}

impl Section {
    fn parse(fields: &mut Fields<'_>) -> Option<Section> {
        Some(Section { offset: fields.u64()?, size_bytes: fields.u64()? })
    }

    fn end(self) -> Option<u64> {
        self.offset.checked_add(self.size_bytes)
    }
}

/// The first 16 bytes: whether it is a pipe's head.
pub(crate) fn is_pipe(first: &[u8; 16]) -> Result<bool, SamplesError> {
    if first.starts_with(MAGIC_BIG_ENDIAN) {
        return Err(SamplesError::BigEndian);
    }
    if !first.starts_with(MAGIC) {
        return Err(SamplesError::NotPerf);
    }
    Ok(crate::bytes::u64_at(first, 8) == Some(PIPE_HEAD_BYTES))
}

/// The head of a file, whose first 16 bytes were read, with all sections behind the records.
pub(crate) fn of_file<R: Read + Seek>(input: &mut R) -> Result<(Header, Records), SamplesError> {
    let len_bytes = input.seek(SeekFrom::End(0))?;
    let damaged = |what, at| SamplesError::Damaged { what, at };
    let head = read_at(input, 0, FILE_HEAD_BYTES.min(len_bytes))?;
    let mut fields = Fields::new(head.get(16..).unwrap_or_default());
    let parsed = (|| {
        let attribute_bytes = fields.u64()?;
        let attributes = Section::parse(&mut fields)?;
        let data = Section::parse(&mut fields)?;
        let _event_types = Section::parse(&mut fields)?;
        Some((
            attribute_bytes,
            attributes,
            data,
            [fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?],
        ))
    })();
    let (attribute_bytes, attributes, data, features) =
        parsed.ok_or_else(|| damaged("the head ends early", 0))?;
    let mut header =
        Header { events: events(input, attribute_bytes, attributes, len_bytes)?, ..Header::default() };
    let is_whole = data.size_bytes > 0 && data.end().is_some_and(|end| end <= len_bytes);
    if is_whole && let Some(end) = data.end() {
        // These sections only improve names; a damaged one is passed over.
        let _ = sections(input, &mut header, end, features, len_bytes);
    }
    let size_bytes = (data.size_bytes > 0).then_some(data.size_bytes);
    Ok((header, Records { start: data.offset, size_bytes, is_whole }))
}

fn read_at<R: Read + Seek>(input: &mut R, at: u64, count: u64) -> Result<Vec<u8>, SamplesError> {
    input.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    input.by_ref().take(count).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == count {
        Ok(bytes)
    } else {
        Err(SamplesError::Damaged { what: "the file ends early", at })
    }
}

fn events<R: Read + Seek>(
    input: &mut R,
    attribute_bytes: u64,
    all: Section,
    len_bytes: u64,
) -> Result<Vec<Event>, SamplesError> {
    let damaged = |what| SamplesError::Damaged { what, at: all.offset };
    let is_inside = |section: &Section| section.end().is_some_and(|end| end <= len_bytes);
    if !is_inside(&all)
        || all.size_bytes > MOST_SECTION_BYTES
        || !(80..=MOST_ATTRIBUTE_BYTES).contains(&attribute_bytes)
    {
        return Err(damaged("the events' descriptions do not fit"));
    }
    let bytes = read_at(input, all.offset, all.size_bytes)?;
    let mut events = Vec::new();
    for one in bytes.chunks_exact(attribute_bytes as usize) {
        let (attribute, ids) = one.split_at(one.len() - 16);
        let mut event =
            Event::parse(attribute).ok_or_else(|| damaged("an event's description is too short"))?;
        let ids = Section::parse(&mut Fields::new(ids)).filter(is_inside);
        let ids = ids.filter(|ids| ids.size_bytes <= MOST_SECTION_BYTES);
        let ids = ids.ok_or_else(|| damaged("the identities of an event do not fit"))?;
        event.ids = words(&read_at(input, ids.offset, ids.size_bytes)?);
        events.push(event);
    }
    if events.is_empty() { Err(SamplesError::NoEvents) } else { Ok(events) }
}

pub(crate) fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).filter_map(|word| crate::bytes::u64_at(word, 0)).collect()
}

fn sections<R: Read + Seek>(
    input: &mut R,
    header: &mut Header,
    table_at: u64,
    features: [u64; 4],
    len_bytes: u64,
) -> Result<(), SamplesError> {
    let bits = (0u32..256).filter(|bit| features[(bit / 64) as usize] >> (bit % 64) & 1 == 1);
    let bits: Vec<u32> = bits.collect();
    let table = read_at(input, table_at, 16 * bits.len() as u64)?;
    let mut fields = Fields::new(&table);
    for bit in bits {
        let Some(section) = Section::parse(&mut fields) else { break };
        let fits =
            section.end().is_some_and(|end| end <= len_bytes) && section.size_bytes <= MOST_SECTION_BYTES;
        if fits {
            let bytes = read_at(input, section.offset, section.size_bytes)?;
            header.see_section(bit, &bytes);
        }
    }
    Ok(())
}

/// Arm's processors are named by a number in hexadecimal, others by words.
fn arms_processor(text: &str) -> Option<u64> {
    let digits = text.trim_start_matches("0x");
    u64::from_str_radix(digits, 16).ok()
}

impl Header {
    /// Adds a section, from behind a file's records or from a pipe.
    pub(crate) fn see_section(&mut self, bit: u32, bytes: &[u8]) {
        let mut fields = Fields::new(bytes);
        match bit {
            BUILD_IDS => self.see_build_ids(bytes),
            HOST_NAME => self.host_name = fields.header_text(),
            RELEASE => self.release = fields.header_text(),
            ARCHITECTURE => self.architecture = fields.header_text(),
            PROCESSOR => self.processor = fields.header_text().and_then(|text| arms_processor(&text)),
            COMMAND_LINE => {
                let count = fields.u32().unwrap_or_default();
                self.command_line = (0..count).map_while(|_| fields.header_text()).collect();
            }
            EVENT_NAMES => self.see_event_names(bytes),
            _ => {}
        }
    }

    fn see_build_ids(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(size) = Fields::new(rest.get(6..).unwrap_or_default()).u16() {
            let Some(record) = rest.get(..usize::from(size)).filter(|record| record.len() > 36) else {
                return;
            };
            self.see_build_id(record);
            rest = rest.get(usize::from(size)..).unwrap_or_default();
        }
    }

    /// A record with its head: process, 20 bytes of build id and padding, path.
    pub(crate) fn see_build_id(&mut self, record: &[u8]) {
        let misc = record.get(4..6).map_or(0, |misc| u16::from_le_bytes([misc[0], misc[1]]));
        let (Some(id), Some(path)) = (record.get(12..36), record.get(36..)) else { return };
        let size = if misc & BUILD_ID_HAS_SIZE == 0 { 20 } else { usize::from(id[20]).min(20) };
        self.build_ids.push(BuildId { path: text(path), id: id[..size].to_vec() });
    }

    /// Names of the events: for each its description, how many identities, the name, the identities.
    fn see_event_names(&mut self, bytes: &[u8]) {
        let mut fields = Fields::new(bytes);
        let (Some(count), Some(attribute_bytes)) = (fields.u32(), fields.u32()) else { return };
        for number in 0..count as usize {
            let Some(attribute) = fields.bytes(attribute_bytes as usize) else { return };
            let (Some(ids), Some(name)) = (fields.u32(), fields.header_text()) else { return };
            let Some(ids) = fields.bytes(8 * ids as usize).map(words) else { return };
            let is_same = |event: &Event| match ids.first() {
                Some(id) => event.ids.contains(id),
                None => Event::parse(attribute)
                    .is_some_and(|one| (one.kind, one.config) == (event.kind, event.config)),
            };
            let of_ids = self.events.iter().position(is_same);
            // One event needs no identity.
            let place = of_ids.or((count == 1 && self.events.len() == 1).then_some(number));
            if let Some(event) = place.and_then(|place| self.events.get_mut(place)) {
                event.name = name;
            }
        }
    }
}
