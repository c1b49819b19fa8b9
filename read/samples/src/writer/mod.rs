//! Makes perf.data files and pipes with known samples: for tests and benches. Perf can read them.
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

mod traced;

pub use crate::synthetic_records::MappingSpec;
pub use traced::{BufferOf, PartSpec};

use crate::container::{ATTRIBUTE_BYTES, About, Container, Description};
use crate::header::BuildId;
use crate::record::{EXACT, SAMPLE};
use crate::synthetic_records::{Maker, SyntheticRecord};
use std::io::{self, Seek, Write};

/// Bits of the fields that a sample carries, `PERF_SAMPLE_…`.
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
    /// The number of events that the sample stands for.
    pub const PERIOD: u64 = 1 << 8;
    /// The last branches.
    pub const BRANCH_STACK: u64 = 1 << 11;
    /// Registers of the program.
    pub const REGS_USER: u64 = 1 << 12;
    /// The cost of the sample, as one number.
    pub const WEIGHT: u64 = 1 << 14;
    /// The source of the data.
    pub const DATA_SRC: u64 = 1 << 15;
    /// The event's identity as the first word.
    pub const IDENTIFIER: u64 = 1 << 16;
    /// Registers where the sample was taken.
    pub const REGS_INTR: u64 = 1 << 18;
    /// The physical address.
    pub const PHYS_ADDR: u64 = 1 << 19;
    /// The cost of the sample, as three numbers.
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
    /// All fields that `perf mem record` requests.
    pub const MEMORY: u64 =
        IDENTIFIER | IP | TID | TIME | ADDR | ID | CPU | PERIOD | WEIGHT_STRUCT | DATA_SRC | PHYS_ADDR;
}

/// Words for the source of data, `union perf_mem_data_src`.
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
    /// The event's number within that kind.
    pub config: u64,
    /// The fields that its samples carry.
    pub sample_type: u64,
    /// The recorded registers of the program.
    pub user_registers: u64,
    /// The recorded registers at the sample.
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

/// A sample to be written; fields that its event does not carry are left out.
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
    /// The number of events it stands for.
    pub period: u64,
    /// Its cost: one number, or three in one word.
    pub weight: u64,
    /// The source of the data.
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
    /// True when the instruction is exactly the sampled one, not one a little behind it.
    pub is_precise: bool,
}

const USER: u16 = 2;
const KERNEL: u16 = 1;

/// Writes a perf.data.
#[derive(Debug)]
pub struct Writer<W> {
    container: Container<W>,
    events: Vec<EventSpec>,
    about: About,
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
        // The event asks for mappings, names and tasks, in records that carry time and identity.
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
    /// The output of `perf record -o -`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn pipe(out: W, events: &[EventSpec]) -> io::Result<Writer<W>> {
        Ok(Writer::new(Container::pipe(out, described(events))?, events))
    }

    fn new(container: Container<W>, events: &[EventSpec]) -> Writer<W> {
        Writer { container, events: events.to_vec(), about: About::default(), body: Vec::new() }
    }

    fn put(&mut self, word: u64) {
        self.body.extend_from_slice(&word.to_le_bytes());
    }

    /// Makes records that are no samples.
    fn maker(&self) -> Maker {
        Maker { sample_type: self.events.first().map_or(0, |event| event.sample_type), id: id(0) }
    }

    fn made(&mut self, made: &SyntheticRecord) -> io::Result<()> {
        self.container.record(made.number, made.misc, &made.body)
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
        let mode = if sample.is_kernel { KERNEL } else { USER };
        let exact = if sample.is_precise { EXACT } else { 0 };
        self.container.record(SAMPLE, mode | exact, &self.body)
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
        self.made(&self.maker().mapping(mapping))
    }

    /// Writes the name of a process.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn name(&mut self, process: u32, name: &str) -> io::Result<()> {
        self.made(&self.maker().name(process, process, name))
    }

    /// Writes the fork of a process.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn fork(&mut self, process: u32, parent: u32, time_ns: u64) -> io::Result<()> {
        self.made(&self.maker().fork(process, parent, time_ns))
    }

    /// Writes a loss of records.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn lost(&mut self, count: u64, time_ns: u64) -> io::Result<()> {
        self.made(&self.maker().lost(count, time_ns))
    }

    /// Ends a round.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn round(&mut self) -> io::Result<()> {
        self.container.round()
    }

    /// A file's build id, for the table behind the records.
    pub fn build_id(&mut self, path: &str, build_id: &[u8]) {
        self.about.build_ids.push(BuildId { path: path.to_owned(), id: build_id.to_vec() });
    }

    /// The kernel's release, behind the records.
    pub fn release(&mut self, release: &str) {
        self.about.release = Some(release.to_owned());
    }

    /// Sets the command line of perf.
    pub fn command_line(&mut self, words: &[&str]) {
        self.about.command_line = words.iter().map(|word| (*word).to_owned()).collect();
    }

    /// The pipe's bytes.
    pub fn finish_pipe(self) -> W {
        self.container.into_inner()
    }
}

impl<W: Write + Seek> Writer<W> {
    /// The file that `perf record` would write.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn file(out: W, events: &[EventSpec]) -> io::Result<Writer<W>> {
        Ok(Writer::new(Container::file(out, described(events))?, events))
    }

    /// Writes the parts before and behind the records.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> io::Result<W> {
        self.container.finish(&self.about)
    }
}

fn described(events: &[EventSpec]) -> Vec<Description> {
    let one = |(number, event): (usize, &EventSpec)| Description {
        name: event.name.clone(),
        attribute: event.attribute().to_vec(),
        ids: vec![id(number)],
    };
    events.iter().enumerate().map(one).collect()
}
