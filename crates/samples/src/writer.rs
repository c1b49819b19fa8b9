//! Makes perf.data files and pipes with samples that are known: for tests and benches. Perf reads what it makes.
//!
//! ```
//! use lineup_samples::writer::{EventSpec, SampleSpec, Writer, kind};
//! use lineup_samples::{Reader, Record};
//! use std::io::Cursor;
//!
//! let event = EventSpec { name: "cpu-clock".to_owned(), sample_type: kind::IP | kind::TIME, ..EventSpec::default() };
//! let mut file = Writer::file(Cursor::new(Vec::new()), &[event])?;
//! file.sample(&SampleSpec { instruction: 0x401000, time_ns: 7, ..SampleSpec::default() })?;
//! let bytes = file.finish()?.into_inner();
//!
//! let mut reader = Reader::of_file(Cursor::new(bytes))?;
//! let Some(Record::Sample(sample)) = reader.next_record()? else { panic!("there is one") };
//! assert_eq!((sample.instruction, sample.time_ns), (Some(0x401000), Some(7)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::record::{MMAP2, SAMPLE};
use std::io::{self, Seek, SeekFrom, Write};

/// Bits of what a sample carries, `PERF_SAMPLE_…`.
pub mod kind {
    /// The instruction.
    pub const IP: u64 = 1;
    /// Process and thread.
    pub const TID: u64 = 1 << 1;
    /// The time.
    pub const TIME: u64 = 1 << 2;
    /// The address.
    pub const ADDR: u64 = 1 << 3;
    /// The functions under way.
    pub const CALLCHAIN: u64 = 1 << 5;
    /// The event's identity.
    pub const ID: u64 = 1 << 6;
    /// The CPU.
    pub const CPU: u64 = 1 << 7;
    /// How many events the sample stands for.
    pub const PERIOD: u64 = 1 << 8;
    /// The last branches.
    pub const BRANCH_STACK: u64 = 1 << 11;
    /// Registers of the program.
    pub const REGS_USER: u64 = 1 << 12;
    /// How dear the sample was, as one number.
    pub const WEIGHT: u64 = 1 << 14;
    /// Where the data came from.
    pub const DATA_SRC: u64 = 1 << 15;
    /// The event's identity as the first word.
    pub const IDENTIFIER: u64 = 1 << 16;
    /// Registers where the sample was taken.
    pub const REGS_INTR: u64 = 1 << 18;
    /// The physical address.
    pub const PHYS_ADDR: u64 = 1 << 19;
    /// How dear the sample was, as three numbers.
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
    /// All that `perf mem record` asks for.
    pub const MEMORY: u64 =
        IDENTIFIER | IP | TID | TIME | ADDR | ID | CPU | PERIOD | WEIGHT_STRUCT | DATA_SRC | PHYS_ADDR;
}

/// Words that say where data came from, `union perf_mem_data_src`.
pub mod source {
    const fn word(operation: u64, old_level: u64, snoop: u64, tlb: u64, number: u64) -> u64 {
        operation | old_level << 5 | snoop << 19 | 1 << 24 | tlb << 26 | number << 33
    }
    /// A load that the first level had.
    pub const LOAD_L1: u64 = word(2, 2 | 8, 2, 2 | 8, 1);
    /// A load that the third level had.
    pub const LOAD_L3: u64 = word(2, 2 | 64, 2, 2 | 8, 3);
    /// A load that came from memory.
    pub const LOAD_MEMORY: u64 = word(2, 2 | 128, 8, 2 | 16, 13);
    /// A load of a line that another CPU's cache had changed.
    pub const LOAD_HITM: u64 = word(2, 2 | 64, 16, 2 | 8, 3);
    /// A store that the first level had.
    pub const STORE_L1: u64 = word(4, 2 | 8, 1, 2 | 8, 1);
}

/// An event to be described.
#[derive(Clone, Debug)]
pub struct EventSpec {
    /// Its name.
    pub name: String,
    /// The kind, `PERF_TYPE_…`.
    pub kind: u32,
    /// Which one of that kind.
    pub config: u64,
    /// What its samples carry.
    pub sample_type: u64,
    /// Which registers of the program.
    pub user_registers: u64,
    /// Which registers where the sample was taken.
    pub interrupted_registers: u64,
}

impl Default for EventSpec {
    /// The software event `cpu-clock` with nothing in its samples.
    fn default() -> Self {
        EventSpec {
            name: "cpu-clock".to_owned(),
            kind: 1,
            config: 0,
            sample_type: 0,
            user_registers: 0,
            interrupted_registers: 0,
        }
    }
}

/// A sample to be written; what its event does not carry is left out.
#[derive(Clone, Default, Debug)]
pub struct SampleSpec {
    /// Position of its event.
    pub event: usize,
    /// The instruction.
    pub instruction: u64,
    /// Process.
    pub process: u32,
    /// Thread.
    pub thread: u32,
    /// Time.
    pub time_ns: u64,
    /// The address that was accessed.
    pub address: u64,
    /// The CPU.
    pub cpu: u32,
    /// How many events it stands for.
    pub period: u64,
    /// How dear: one number, or three in one word.
    pub weight: u64,
    /// Where the data came from.
    pub source: u64,
    /// The physical address.
    pub physical_address: u64,
    /// The functions under way.
    pub call_chain: Vec<u64>,
    /// From and to of branches.
    pub branches: Vec<(u64, u64)>,
    /// Values of the program's registers, in the order of their bits.
    pub user_registers: Vec<u64>,
    /// Values of the registers where the sample was taken.
    pub interrupted_registers: Vec<u64>,
    /// True for code of the kernel.
    pub is_kernel: bool,
}

/// A mapping to be written.
#[derive(Clone, Debug)]
pub struct MappingSpec<'a> {
    /// The process; `u32::MAX` for the kernel.
    pub process: u32,
    /// First byte.
    pub start: u64,
    /// How many.
    pub size_bytes: u64,
    /// Where in the file.
    pub file_offset: u64,
    /// Protection, `PROT_…`.
    pub protection: u32,
    /// The path.
    pub path: &'a str,
    /// The build id, when the kernel tells it.
    pub build_id: Option<&'a [u8]>,
}

const ATTRIBUTE_BYTES: usize = 128;
const HEAD_BYTES: u64 = 104;
const USER: u16 = 2;
const KERNEL: u16 = 1;

/// Writes a perf.data.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    events: Vec<EventSpec>,
    is_pipe: bool,
    data_start: u64,
    build_ids: Vec<u8>,
    command_line: Vec<String>,
    body: Vec<u8>,
}

fn id(event: usize) -> u64 {
    100 + event as u64
}

impl EventSpec {
    fn attribute(&self) -> [u8; ATTRIBUTE_BYTES] {
        let mut bytes = [0; ATTRIBUTE_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.kind.to_le_bytes());
        put(4, &(ATTRIBUTE_BYTES as u32).to_le_bytes());
        put(8, &self.config.to_le_bytes());
        put(16, &1u64.to_le_bytes());
        put(24, &self.sample_type.to_le_bytes());
        // Mappings, names and tasks are told, by records that carry time and identity.
        put(40, &(1u64 << 8 | 1 << 9 | 1 << 13 | 1 << 18 | 1 << 23).to_le_bytes());
        put(80, &self.user_registers.to_le_bytes());
        put(96, &self.interrupted_registers.to_le_bytes());
        bytes
    }

    fn has(&self, bit: u64) -> bool {
        self.sample_type & bit != 0
    }
}

impl<W: Write> Writer<W> {
    /// What `perf record -o -` would write.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn pipe(mut out: W, events: &[EventSpec]) -> io::Result<Writer<W>> {
        out.write_all(b"PERFILE2")?;
        out.write_all(&16u64.to_le_bytes())?;
        let mut writer = Writer::new(out, events, true);
        for (number, event) in events.iter().enumerate() {
            writer.body.clear();
            writer.body.extend_from_slice(&event.attribute());
            writer.put(id(number));
            writer.record(64, 0)?;
            writer.body.clear();
            writer.put(2);
            writer.put(id(number));
            writer.put_text(&event.name, 8);
            writer.record(78, 0)?;
        }
        Ok(writer)
    }

    fn new(out: W, events: &[EventSpec], is_pipe: bool) -> Writer<W> {
        Writer {
            out,
            events: events.to_vec(),
            is_pipe,
            data_start: 0,
            build_ids: Vec::new(),
            command_line: Vec::new(),
            body: Vec::new(),
        }
    }

    fn put(&mut self, word: u64) {
        self.body.extend_from_slice(&word.to_le_bytes());
    }

    fn put_pair(&mut self, first: u32, second: u32) {
        self.put(u64::from(first) | u64::from(second) << 32);
    }

    fn put_text(&mut self, text: &str, multiple: usize) {
        let size = (text.len() + 1).next_multiple_of(multiple);
        self.body.extend_from_slice(text.as_bytes());
        self.body.resize(self.body.len() + size - text.len(), 0);
    }

    fn record(&mut self, number: u32, misc: u16) -> io::Result<()> {
        let size =
            u16::try_from(self.body.len() + 8).map_err(|_| io::Error::other("a record is too long"))?;
        self.out.write_all(&number.to_le_bytes())?;
        self.out.write_all(&misc.to_le_bytes())?;
        self.out.write_all(&size.to_le_bytes())?;
        self.out.write_all(&self.body)
    }

    /// What stands behind every record that is no sample.
    fn put_identity(&mut self, process: u32, time_ns: u64) {
        let Some(event) = self.events.first() else { return };
        let bits = |bit: u64| event.has(bit);
        let words = [
            (bits(kind::TID), u64::from(process) | u64::from(process) << 32),
            (bits(kind::TIME), time_ns),
            (bits(kind::ID), id(0)),
            (bits(kind::CPU), 0),
            (bits(kind::IDENTIFIER), id(0)),
        ];
        for (_, word) in words.into_iter().filter(|(is_there, _)| *is_there) {
            self.put(word);
        }
    }

    /// Writes a sample.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn sample(&mut self, sample: &SampleSpec) -> io::Result<()> {
        let Some(event) = self.events.get(sample.event).cloned() else {
            return Err(io::Error::other("no such event"));
        };
        self.body.clear();
        let pair = |first: u32, second: u32| u64::from(first) | u64::from(second) << 32;
        let first = [
            (kind::IDENTIFIER, id(sample.event)),
            (kind::IP, sample.instruction),
            (kind::TID, pair(sample.process, sample.thread)),
            (kind::TIME, sample.time_ns),
            (kind::ADDR, sample.address),
            (kind::ID, id(sample.event)),
            (kind::CPU, pair(sample.cpu, 0)),
            (kind::PERIOD, sample.period),
        ];
        self.put_words(&event, &first);
        if event.has(kind::CALLCHAIN) {
            self.put(sample.call_chain.len() as u64);
            sample.call_chain.iter().for_each(|at| self.put(*at));
        }
        if event.has(kind::BRANCH_STACK) {
            self.put(sample.branches.len() as u64);
            sample
                .branches
                .iter()
                .for_each(|(from, to)| [*from, *to, 0].into_iter().for_each(|word| self.put(word)));
        }
        self.put_registers(event.has(kind::REGS_USER), event.user_registers, &sample.user_registers);
        let last = [(kind::WEIGHT | kind::WEIGHT_STRUCT, sample.weight), (kind::DATA_SRC, sample.source)];
        self.put_words(&event, &last);
        self.put_registers(
            event.has(kind::REGS_INTR),
            event.interrupted_registers,
            &sample.interrupted_registers,
        );
        self.put_words(&event, &[(kind::PHYS_ADDR, sample.physical_address)]);
        self.record(SAMPLE, if sample.is_kernel { KERNEL } else { USER })
    }

    fn put_words(&mut self, event: &EventSpec, words: &[(u64, u64)]) {
        for (_, word) in words.iter().filter(|(bit, _)| event.has(*bit)) {
            self.put(*word);
        }
    }

    fn put_registers(&mut self, is_there: bool, mask: u64, values: &[u64]) {
        if is_there {
            // The ABI: 64 bits.
            self.put(2);
            let all = values.iter().copied().chain(std::iter::repeat(0));
            all.take(mask.count_ones() as usize).for_each(|value| self.put(value));
        }
    }

    /// Writes a mapping.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn mapping(&mut self, mapping: &MappingSpec<'_>) -> io::Result<()> {
        self.body.clear();
        self.put_pair(mapping.process, mapping.process);
        [mapping.start, mapping.size_bytes, mapping.file_offset].into_iter().for_each(|word| self.put(word));
        let mut which = [0; 24];
        if let Some(build_id) = mapping.build_id {
            let size = build_id.len().min(20);
            which[0] = size as u8;
            which[4..4 + size].copy_from_slice(&build_id[..size]);
        }
        self.body.extend_from_slice(&which);
        self.put_pair(mapping.protection, 2);
        self.put_text(mapping.path, 8);
        self.put_identity(mapping.process, 0);
        let is_kernel = mapping.process == u32::MAX;
        let has_id = u16::from(mapping.build_id.is_some()) << 14;
        let is_data = u16::from(mapping.protection & 4 == 0) << 13;
        self.record(MMAP2, if is_kernel { KERNEL } else { USER } | has_id | is_data)
    }

    /// Says what a process is called.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn name(&mut self, process: u32, name: &str) -> io::Result<()> {
        self.body.clear();
        self.put_pair(process, process);
        self.put_text(name, 8);
        self.put_identity(process, 0);
        self.record(3, 0)
    }

    /// Says that a process was forked off.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn fork(&mut self, process: u32, parent: u32, time_ns: u64) -> io::Result<()> {
        self.body.clear();
        self.put_pair(process, parent);
        self.put_pair(process, parent);
        self.put(time_ns);
        self.put_identity(process, time_ns);
        self.record(7, 0)
    }

    /// Says that records were lost.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn lost(&mut self, count: u64, time_ns: u64) -> io::Result<()> {
        self.body.clear();
        self.put(id(0));
        self.put(count);
        self.put_identity(0, time_ns);
        self.record(2, 0)
    }

    /// Ends a round.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn round(&mut self) -> io::Result<()> {
        self.body.clear();
        self.record(68, 0)
    }

    /// A file's build id, for the table behind the records.
    pub fn build_id(&mut self, path: &str, build_id: &[u8]) {
        let size = build_id.len().min(20);
        self.body.clear();
        self.body.extend_from_slice(&u32::MAX.to_le_bytes());
        let mut padded = [0; 24];
        padded[..size].copy_from_slice(&build_id[..size]);
        padded[20] = size as u8;
        self.body.extend_from_slice(&padded);
        self.put_text(path, 64);
        let head_size = (self.body.len() + 8) as u16;
        self.build_ids.extend_from_slice(&67u32.to_le_bytes());
        self.build_ids.extend_from_slice(&(1u16 << 15 | USER).to_le_bytes());
        self.build_ids.extend_from_slice(&head_size.to_le_bytes());
        self.build_ids.extend_from_slice(&self.body);
    }

    /// How perf was called.
    pub fn command_line(&mut self, words: &[&str]) {
        self.command_line = words.iter().map(|word| (*word).to_owned()).collect();
    }

    /// The pipe's bytes.
    pub fn finish_pipe(self) -> W {
        self.out
    }

    fn header_text(&mut self, text: &str) {
        let size = (text.len() + 1).next_multiple_of(64);
        self.body.extend_from_slice(&(size as u32).to_le_bytes());
        self.put_text(text, 64);
    }

    /// Sections behind the records, with the bits that announce them.
    fn sections(&mut self) -> Vec<(u32, Vec<u8>)> {
        let mut sections = vec![(2, self.build_ids.clone())];
        self.body.clear();
        let words = self.command_line.clone();
        self.body.extend_from_slice(&(words.len() as u32).to_le_bytes());
        words.iter().for_each(|word| self.header_text(word));
        sections.push((11, self.body.clone()));
        self.body.clear();
        let events = self.events.clone();
        self.put_pair(events.len() as u32, ATTRIBUTE_BYTES as u32);
        for (number, event) in events.iter().enumerate() {
            self.body.extend_from_slice(&event.attribute());
            self.body.extend_from_slice(&1u32.to_le_bytes());
            self.header_text(&event.name);
            self.put(id(number));
        }
        sections.push((12, self.body.clone()));
        sections.retain(|(bit, bytes)| !(bytes.is_empty() || *bit == 11 && words.is_empty()));
        sections
    }
}

impl<W: Write + Seek> Writer<W> {
    /// What `perf record` would write into a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn file(mut out: W, events: &[EventSpec]) -> io::Result<Writer<W>> {
        let data_start = HEAD_BYTES + events.len() as u64 * (8 + ATTRIBUTE_BYTES as u64 + 16);
        out.write_all(&vec![0; data_start as usize])?;
        let mut writer = Writer::new(out, events, false);
        writer.data_start = data_start;
        Ok(writer)
    }

    /// Writes what stands before and behind the records.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        assert!(!self.is_pipe, "a pipe has nothing behind its records");
        let data_end = self.out.stream_position()?;
        let sections = self.sections();
        let mut at = data_end + 16 * sections.len() as u64;
        for (_, bytes) in &sections {
            self.out.write_all(&at.to_le_bytes())?;
            self.out.write_all(&(bytes.len() as u64).to_le_bytes())?;
            at += bytes.len() as u64;
        }
        for (_, bytes) in &sections {
            self.out.write_all(bytes)?;
        }
        let count = self.events.len() as u64;
        let features = sections.iter().fold(0u64, |bits, (bit, _)| bits | 1 << bit);
        let attribute_bytes = ATTRIBUTE_BYTES as u64 + 16;
        let attributes_at = HEAD_BYTES + 8 * count;
        let words = [
            HEAD_BYTES,
            attribute_bytes,
            attributes_at,
            attribute_bytes * count,
            self.data_start,
            data_end - self.data_start,
            0,
            0,
            features,
            0,
            0,
            0,
        ];
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(b"PERFILE2")?;
        words.iter().try_for_each(|word| self.out.write_all(&word.to_le_bytes()))?;
        (0..self.events.len()).try_for_each(|event| self.out.write_all(&id(event).to_le_bytes()))?;
        for (number, event) in self.events.iter().enumerate() {
            self.out.write_all(&event.attribute())?;
            self.out.write_all(&(HEAD_BYTES + 8 * number as u64).to_le_bytes())?;
            self.out.write_all(&8u64.to_le_bytes())?;
        }
        self.out.seek(SeekFrom::End(0))?;
        Ok(self.out)
    }
}
