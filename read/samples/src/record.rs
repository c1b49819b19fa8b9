//! The contents of a perf.data, one record at a time.

use crate::bytes::{Fields, text};
use crate::data_source::DataSource;
use crate::event::Event;
use perf_event_data as perf;
use perf_event_data::parse::Parser;

/// Zeros behind each body: the parser of bodies refuses an empty list at the very end of its bytes.
pub(crate) const PADDING_BYTES: usize = 8;

/// In whose code the processor was.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Mode {
    /// The kernel's.
    Kernel,
    /// A program's.
    User,
    /// A hypervisor's, or a guest's.
    Other,
}

impl Mode {
    fn of(misc: u16) -> Mode {
        match misc & 7 {
            1 => Mode::Kernel,
            2 => Mode::User,
            _ => Mode::Other,
        }
    }
}

/// The cost of a sample: on most machines in cycles.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Weight {
    /// The weight: of a load the cycles from its issue until its data was there. Arm counts from when it was handed on
    /// to be issued.
    pub full: u64,
    /// The second of three parts, where the machine gives parts: cycles of the whole instruction.
    pub instruction: Option<u16>,
    /// The third part.
    pub third: Option<u16>,
}

/// One sample.
#[derive(Clone, Debug)]
pub struct Sample<'a> {
    /// Position of its event in the header.
    pub event: usize,
    /// In whose code.
    pub mode: Mode,
    /// True when the instruction is exactly the sampled one, not one a little behind it.
    pub is_precise: bool,
    /// The instruction.
    pub instruction: Option<u64>,
    /// Process.
    pub process: Option<u32>,
    /// Thread.
    pub thread: Option<u32>,
    /// When, in nanoseconds of the clock that perf used.
    pub time_ns: Option<u64>,
    /// The address that was accessed.
    pub address: Option<u64>,
    /// Its physical address.
    pub physical_address: Option<u64>,
    /// The CPU.
    pub cpu: Option<u32>,
    /// The number of events that this sample stands for.
    pub period: Option<u64>,
    /// Its cost.
    pub weight: Option<Weight>,
    /// The source of the data.
    pub data_source: Option<DataSource>,
    /// The rest of a sample that was a record of its own.
    pub(crate) rest: Option<perf::Sample<'a>>,
}

/// Registers, by their number in the machine's `perf_regs.h`.
#[derive(Clone, Copy, Debug)]
pub struct Registers<'s> {
    mask: u64,
    values: &'s [u64],
}

impl Registers<'_> {
    /// The value of a register, when it was sampled.
    pub fn get(&self, number: u32) -> Option<u64> {
        let bit = 1u64.checked_shl(number)?;
        let before = (self.mask & (bit - 1)).count_ones() as usize;
        if self.mask & bit == 0 { None } else { self.values.get(before).copied() }
    }
}

/// A branch that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Branch {
    /// From where.
    pub from: u64,
    /// To where.
    pub to: u64,
    /// True when the processor had expected another.
    pub is_mispredicted: bool,
}

impl<'a> Sample<'a> {
    /// Return addresses of the open functions, innermost first; values above 2⁶⁴ − 4096 give the mode of the following
    /// ones.
    pub fn call_chain(&self) -> &[u64] {
        self.rest.as_ref().and_then(perf::Sample::callchain).unwrap_or_default()
    }

    /// The last branches, newest first.
    pub fn branches(&self) -> impl Iterator<Item = Branch> {
        let all = self.rest.as_ref().and_then(perf::Sample::lbr).unwrap_or_default().iter();
        all.map(|one| Branch { from: one.from(), to: one.to(), is_mispredicted: one.mispred() })
    }

    /// Registers of the program.
    pub fn user_registers(&self) -> Option<Registers<'_>> {
        self.rest.as_ref()?.regs_user().map(|own| Registers { mask: own.mask, values: &own.regs })
    }

    /// Registers where the sample was taken.
    pub fn interrupted_registers(&self) -> Option<Registers<'_>> {
        self.rest.as_ref()?.regs_intr().map(|own| Registers { mask: own.mask, values: &own.regs })
    }

    /// Parses the body of a record; `None` when it is too short for its event's fields, so that padding was read.
    fn parse(event: usize, described: &Event, misc: u16, padded: &'a [u8]) -> Option<Sample<'a>> {
        let mut parser = Parser::new(padded, described.parse.clone());
        let rest: perf::Sample<'a> = parser.parse().ok()?;
        if parser.parse_rest().ok()?.len() < PADDING_BYTES {
            return None;
        }
        let weight = rest.weight().map(|word| match described.has_weight_parts() {
            true => Weight {
                full: word & 0xffff_ffff,
                instruction: Some((word >> 32) as u16),
                third: Some((word >> 48) as u16),
            },
            false => Weight { full: word, ..Weight::default() },
        });
        Some(Sample {
            event,
            mode: Mode::of(misc),
            is_precise: misc & EXACT != 0,
            instruction: rest.ip(),
            process: rest.pid(),
            thread: rest.tid(),
            time_ns: rest.time(),
            address: rest.addr(),
            physical_address: rest.phys_addr(),
            cpu: rest.cpu(),
            period: rest.period(),
            weight,
            data_source: rest.data_src().map(DataSource::of),
            rest: Some(rest),
        })
    }
}

/// A file, or memory without one, that was mapped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// The process; `None` for the kernel.
    pub process: Option<u32>,
    /// First byte.
    pub start: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// The offset in the file at which it begins.
    pub file_offset: u64,
    /// The path as the process saw it; `//anon`, `[stack]` and the like for a mapping of no file.
    pub path: String,
    /// The build id, where the kernel reported it.
    pub build_id: Option<Vec<u8>>,
    /// False for a mapping of data.
    pub is_code: bool,
}

/// A record of a perf.data.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are samples, told one at a time: no room is gained by a box"
)]
pub enum Record<'a> {
    /// A sample.
    Sample(Sample<'a>),
    /// Something was mapped.
    Mapped(Mapping),
    /// A thread has this name from here on.
    Named {
        /// Process.
        process: u32,
        /// Thread.
        thread: u32,
        /// Its name.
        name: String,
        /// True when it has become another program.
        has_executed: bool,
    },
    /// A process or thread was made.
    Forked {
        /// The new process.
        process: u32,
        /// The new thread.
        thread: u32,
        /// The process that made it.
        parent: u32,
    },
    /// A thread ended.
    Exited {
        /// Process.
        process: u32,
        /// Thread.
        thread: u32,
    },
    /// The kernel had no room for this many records.
    Lost(u64),
    /// The processor had no room for this many samples.
    LostSamples(u64),
    /// The kernel stopped sampling for a while.
    Throttled,
    /// A part of a trace was written.
    Traced {
        /// It had no room for all.
        is_cut: bool,
        /// An instruction was to be sampled while another one still was.
        has_collided: bool,
    },
    /// A record that is too short for its fields.
    Unreadable,
    /// Anything else, by its number.
    Other(u32),
}

/// Bits of a record's head.
const MAP_DATA: u16 = 1 << 13;
const EXECUTED: u16 = 1 << 13;
pub(crate) const EXACT: u16 = 1 << 14;
const MAP_HAS_BUILD_ID: u16 = 1 << 14;
/// The process of mappings of the kernel.
const KERNEL: u32 = u32::MAX;
/// The protection bit of executable memory.
const EXECUTABLE: u32 = 4;

/// Numbers of records.
pub(crate) const MMAP: u32 = 1;
pub(crate) const LOST: u32 = 2;
pub(crate) const NAMED: u32 = 3;
pub(crate) const FORKED: u32 = 7;
pub(crate) const SAMPLE: u32 = 9;
pub(crate) const MMAP2: u32 = 10;
pub(crate) const AUXILIARY_WRITTEN: u32 = 11;
pub(crate) const STARTED: u32 = 12;
pub(crate) const SWITCHED: u32 = 14;
pub(crate) const SWITCHED_BETWEEN: u32 = 15;
/// The bit of a switch's head that marks a switch away from the thread.
pub(crate) const AWAY: u16 = 1 << 13;
/// Flags of a part of a trace.
const PART_IS_CUT: u64 = 1;
const PART_HAS_GAPS: u64 = 4;
const PART_HAS_COLLIDED: u64 = 8;

/// A body without its padding.
pub(crate) fn unpadded(padded: &[u8]) -> &[u8] {
    padded.get(..padded.len().saturating_sub(PADDING_BYTES)).unwrap_or_default()
}

/// The record with this head and body, padded, of the event at a position.
pub(crate) fn record<'a>(
    number: u32,
    misc: u16,
    padded: &'a [u8],
    (event, described): (usize, &Event),
) -> Record<'a> {
    let body = unpadded(padded);
    let parsed = match number {
        MMAP => mapping(misc, body, false).map(Record::Mapped),
        LOST => Fields::new(body.get(8..).unwrap_or_default()).u64().map(Record::Lost),
        NAMED => named(misc, body),
        4 => threads(body).map(|(process, _, thread)| Record::Exited { process, thread }),
        5 | 6 => Some(if number == 5 { Record::Throttled } else { Record::Other(number) }),
        FORKED => threads(body).map(|(process, parent, thread)| Record::Forked { process, thread, parent }),
        SAMPLE => Sample::parse(event, described, misc, padded).map(Record::Sample),
        MMAP2 => mapping(misc, body, true).map(Record::Mapped),
        AUXILIARY_WRITTEN => {
            Fields::new(body.get(16..).unwrap_or_default()).u64().map(|flags| Record::Traced {
                is_cut: flags & (PART_IS_CUT | PART_HAS_GAPS) != 0,
                has_collided: flags & PART_HAS_COLLIDED != 0,
            })
        }
        13 => Fields::new(body).u64().map(Record::LostSamples),
        _ => Some(Record::Other(number)),
    };
    parsed.unwrap_or(Record::Unreadable)
}

fn threads(body: &[u8]) -> Option<(u32, u32, u32)> {
    let mut fields = Fields::new(body);
    Some((fields.u32()?, fields.u32()?, fields.u32()?))
}

fn named<'a>(misc: u16, body: &[u8]) -> Option<Record<'a>> {
    let mut fields = Fields::new(body);
    let (process, thread) = (fields.u32()?, fields.u32()?);
    Some(Record::Named { process, thread, name: text(fields.rest()), has_executed: misc & EXECUTED != 0 })
}

fn mapping(misc: u16, body: &[u8], is_second: bool) -> Option<Mapping> {
    let mut fields = Fields::new(body);
    let (process, _thread) = (fields.u32()?, fields.u32()?);
    let (start, size_bytes, file_offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let mut build_id = None;
    let mut is_code = misc & MAP_DATA == 0;
    if is_second {
        let which = fields.bytes(24)?;
        if misc & MAP_HAS_BUILD_ID != 0 {
            let size = usize::from(*which.first()?);
            build_id = Some(which.get(4..4 + size.min(20))?.to_vec());
        }
        let (protection, _flags) = (fields.u32()?, fields.u32()?);
        is_code = protection & EXECUTABLE != 0;
    }
    let process = (process != KERNEL).then_some(process);
    Some(Mapping { process, start, size_bytes, file_offset, path: text(fields.rest()), build_id, is_code })
}
