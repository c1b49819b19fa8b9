//! Counts of samples by place in code and data.
//!
//! Memory grows with distinct places, and their number is limited by the program's instructions and variables.
//! Addresses on the heap are not kept, except for lines that were passed between CPUs. Both are bounded, and omitted
//! samples are counted.

use crate::chains::Chains;
use crate::data_source::{DataSource, Operation};
use crate::error::SamplesError;
use crate::event::{Carries, Event};
use crate::header::Header;
use crate::operand::{Operand, OperandAddress};
use crate::reader::{Ending, Reader};
use crate::record::{Mode, Record, Sample};
use crate::spaces::{Code, Data, MappedFile, Segments, Spaces};
pub use crate::sum::Sum;
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;

/// The maximum number of distinct places; beyond it, data is counted by its code alone.
const MOST_SPOTS: usize = 1 << 18;
/// Lines that are kept apart.
const MOST_LINES: usize = 1 << 16;
/// Bytes of a line, as `perf c2c` takes them.
pub const LINE_BYTES: u64 = 64;
/// Processes whose samples are counted one by one.
const MOST_PROCESSES: usize = 1 << 16;

/// The key by which samples are counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Spot {
    /// Position of the event in the header.
    pub event: u32,
    /// In whose code.
    pub mode: Mode,
    /// The instruction.
    pub code: Code,
    /// The accessed data.
    pub data: Data,
    /// Its source.
    pub source: DataSource,
    /// True when the address was worked out from sampled registers.
    pub is_worked_out: bool,
}

/// Samples by instruction, data and byte of a line.
pub type ByPlace = BTreeMap<(Code, Data, u8), u64>;

/// A line of memory that another CPU's cache had changed when it was loaded, or had at all, where the processor reports
/// no more.
#[derive(Clone, Default, Debug)]
pub struct PassedLine {
    /// Loads that found it so.
    pub sum: Sum,
    /// By the CPU that loaded it.
    pub by_cpu: BTreeMap<u32, u64>,
    /// By instruction, data and byte of the line.
    pub by_place: ByPlace,
    /// Stores to it that were sampled, by the same.
    pub stores: ByPlace,
}

/// An event and its samples.
#[derive(Clone, Debug)]
pub struct EventTally {
    /// Its name.
    pub name: String,
    /// The fields that its samples carry.
    pub carries: Carries,
    /// All of them.
    pub sum: Sum,
    /// Samples in the kernel.
    pub in_kernel: u64,
    /// Samples whose instruction is, according to the processor, exactly the sampled one.
    pub precise: u64,
}

/// A process and its samples.
#[derive(Clone, Default, Debug)]
pub struct ProcessTally {
    /// The name that its first thread had last.
    pub name: String,
    /// The number of samples.
    pub samples: u64,
}

/// All samples of a file.
#[derive(Clone, Debug)]
pub struct Tally {
    /// The sections other than the records.
    pub header: Header,
    /// The events.
    pub events: Vec<EventTally>,
    /// Files that were mapped.
    pub files: Vec<MappedFile>,
    /// The ranges of the kernel and its modules, by the position of the file.
    pub kernel_ranges: BTreeMap<u32, Range<u64>>,
    /// Processes with samples, or names.
    pub processes: BTreeMap<u32, ProcessTally>,
    /// Samples by CPU.
    pub cpus: BTreeMap<u32, u64>,
    /// The first and the last time of a sample.
    pub span_ns: Option<(u64, u64)>,
    /// Samples by place.
    pub spots: HashMap<Spot, Sum>,
    /// Chains of calls, of samples by events that take them.
    pub chains: Chains,
    /// Lines that were passed between CPUs, by process and address.
    pub lines: HashMap<(u32, u64), PassedLine>,
    /// Records that the kernel had no room for.
    pub lost_records: u64,
    /// Samples that the processor had no room for.
    pub lost_samples: u64,
    /// Samples whose address was worked out from registers.
    pub worked_out: u64,
    /// The number of times that the kernel stopped sampling for a while.
    pub throttled: u64,
    /// Parts of traces that had no room for all.
    pub cut_parts: u64,
    /// Parts of traces in which samples were not taken, since another still was.
    pub collided_parts: u64,
    /// Samples of traces whose thread is a guess.
    pub guessed_threads: u64,
    /// Records of traces that have no end, or no instruction and no address.
    pub unreadable_traced: u64,
    /// Records too short for their fields.
    pub unreadable: u64,
    /// Records returned out of the order of time.
    pub out_of_order: u64,
    /// Bytes of traces that are not decoded.
    pub skipped_auxiliary_bytes: u64,
    /// Samples whose data is counted by its code alone, since there were too many places.
    pub folded: u64,
    /// Samples of lines beyond those kept.
    pub folded_lines: u64,
    /// The way the records ended.
    pub ending: Ending,
}

/// Reads all records. It calls `progress` now and then with the number of bytes read.
///
/// # Errors
/// When the file cannot be read or is damaged.
pub fn tally<R: Read>(
    reader: &mut Reader<R>,
    segments: &mut dyn Segments,
    progress: &mut dyn FnMut(u64),
) -> Result<Tally, SamplesError> {
    let mut counter = Counter::default();
    let mut told = 0u64;
    loop {
        told += 1;
        if told.is_multiple_of(1 << 16) {
            progress(reader.read_bytes());
        }
        // The events' fields are known when the first record is.
        if counter.works_out.len() < reader.header().events.len() {
            let events = reader.header().events.iter().map(Event::carries);
            counter.works_out = events.clone().map(|has| has.registers && !has.address).collect();
            counter.has_chains = events.map(|has| has.call_chain).collect();
        }
        let mapping = match reader.next_record()? {
            None => break,
            Some(Record::Mapped(mapping)) => Some(mapping),
            Some(record) => {
                counter.see(&record, segments);
                None
            }
        };
        if let Some(mapping) = mapping {
            counter.spaces.see_mapping(&mapping, reader.header(), segments);
        }
    }
    Ok(counter.finish(reader))
}

#[derive(Default)]
struct Counter {
    spaces: Spaces,
    events: Vec<EventCount>,
    processes: BTreeMap<u32, ProcessTally>,
    cpus: BTreeMap<u32, u64>,
    span_ns: Option<(u64, u64)>,
    spots: HashMap<Spot, Sum>,
    chains: Chains,
    lines: HashMap<(u32, u64), PassedLine>,
    /// Lines that were stored to. The report lists those that were passed between CPUs.
    stores: HashMap<(u32, u64), ByPlace>,
    /// By event: its samples have registers and no address.
    works_out: Vec<bool>,
    /// By event: its samples have chains of calls.
    has_chains: Vec<bool>,
    /// The operands of those instructions that were looked up.
    operands: HashMap<(u32, u64), Option<Operand>>,
    worked_out: u64,
    lost_records: u64,
    lost_samples: u64,
    throttled: u64,
    cut_parts: u64,
    collided_parts: u64,
    unreadable: u64,
    folded: u64,
    folded_lines: u64,
}

#[derive(Clone, Copy, Default)]
struct EventCount {
    sum: Sum,
    in_kernel: u64,
    precise: u64,
}

impl Counter {
    fn see(&mut self, record: &Record<'_>, segments: &mut dyn Segments) {
        match record {
            Record::Sample(sample) => self.see_sample(sample, segments),
            Record::Named { process, thread, name, has_executed } => {
                if *has_executed {
                    self.spaces.see_executed(*process);
                }
                if process == thread && self.processes.len() < MOST_PROCESSES {
                    self.processes.entry(*process).or_default().name.clone_from(name);
                }
            }
            Record::Forked { process, parent, .. } => self.see_fork(*process, *parent),
            Record::Exited { process, thread } if process == thread => self.spaces.see_ended(*process),
            Record::Lost(count) => self.lost_records = self.lost_records.saturating_add(*count),
            Record::LostSamples(count) => self.lost_samples = self.lost_samples.saturating_add(*count),
            Record::Throttled => self.throttled += 1,
            Record::Traced { is_cut, has_collided } => {
                self.cut_parts += u64::from(*is_cut);
                self.collided_parts += u64::from(*has_collided);
            }
            Record::Unreadable => self.unreadable += 1,
            Record::Exited { .. } | Record::Other(_) | Record::Mapped(_) => {}
        }
    }

    fn see_fork(&mut self, process: u32, parent: u32) {
        self.spaces.see_fork(process, parent);
        let name = self.processes.get(&parent).map(|parent| parent.name.clone());
        if let Some(name) = name.filter(|_| process != parent && self.processes.len() < MOST_PROCESSES) {
            self.processes.entry(process).or_default().name = name;
        }
    }

    fn see_sample(&mut self, sample: &Sample<'_>, segments: &mut dyn Segments) {
        let process = sample.process.unwrap_or_default();
        let sum = Sum {
            samples: 1,
            period: sample.period.unwrap_or(1),
            weight: sample.weight.map_or(0, |weight| weight.full),
        };
        self.count(sample, process, sum);
        let code = match sample.instruction {
            Some(at) => self.spaces.code(process, sample.mode, at),
            None => Code::Unmapped { is_kernel: sample.mode == Mode::Kernel },
        };
        if self.has_chains.get(sample.event).copied().unwrap_or_default() {
            self.chains.see((sample.event as u32, process, code), sample.call_chain(), &self.spaces, sum);
        }
        let address = sample.address.filter(|address| *address != 0);
        let data = address.map_or(Data::Unsaid, |at| self.spaces.data(process, at));
        let source = sample.data_source.unwrap_or_default();
        if let Some(address) = address {
            self.see_on_line(sample, (process, address), (code, data), sum);
        }
        let spot =
            Spot { event: sample.event as u32, mode: sample.mode, code, data, source, is_worked_out: false };
        let spot = self.work_out(sample, process, spot, segments).unwrap_or(spot);
        let place = self.with_room(spot);
        self.spots.entry(place).or_default().add(sum);
    }

    /// The same with the instruction's operand, by the sampled registers.
    fn work_out(
        &mut self,
        sample: &Sample<'_>,
        process: u32,
        spot: Spot,
        segments: &mut dyn Segments,
    ) -> Option<Spot> {
        let (Code::File { file, at }, Mode::User) = (spot.code, spot.mode) else { return None };
        if !self.works_out.get(sample.event).copied().unwrap_or_default() {
            return None;
        }
        if self.operands.len() >= MOST_SPOTS && !self.operands.contains_key(&(file, at)) {
            return None;
        }
        let known = self.operands.entry((file, at));
        let operand = (*known.or_insert_with(|| segments.operand(file, at)))?;
        let registers = sample.interrupted_registers().or_else(|| sample.user_registers());
        let data = match operand.address(registers, sample.is_precise)? {
            OperandAddress::Link(at) => Data::File { file, at },
            OperandAddress::Runtime(at) => self.spaces.data(process, at),
        };
        self.worked_out += 1;
        let source = DataSource { operation: operand.operation, ..DataSource::default() };
        Some(Spot { data, source, is_worked_out: true, ..spot })
    }

    /// The place under which it is counted. Beyond the limit, data is counted by its code alone, then nothing is.
    fn with_room(&mut self, mut spot: Spot) -> Spot {
        if self.spots.len() >= MOST_SPOTS && matches!(spot.data, Data::File { .. }) {
            spot.data = Data::Memory;
            self.folded += 1;
        }
        if self.spots.len() >= 2 * MOST_SPOTS && !self.spots.contains_key(&spot) {
            self.folded += 1;
            spot.code = Code::Unmapped { is_kernel: spot.mode == Mode::Kernel };
            spot.data = Data::Unsaid;
        }
        spot
    }

    fn count(&mut self, sample: &Sample<'_>, process: u32, sum: Sum) {
        if self.events.len() <= sample.event {
            self.events.resize(sample.event + 1, EventCount::default());
        }
        if let Some(event) = self.events.get_mut(sample.event) {
            event.sum.add(sum);
            event.in_kernel += u64::from(sample.mode == Mode::Kernel);
            event.precise += u64::from(sample.is_precise);
        }
        if self.processes.len() < MOST_PROCESSES || self.processes.contains_key(&process) {
            self.processes.entry(process).or_default().samples += 1;
        }
        if let Some(cpu) = sample.cpu {
            *self.cpus.entry(cpu).or_default() += 1;
        }
        if let Some(time) = sample.time_ns {
            let (first, last) = self.span_ns.unwrap_or((time, time));
            self.span_ns = Some((first.min(time), last.max(time)));
        }
    }

    /// Loads of lines that another CPU had changed, and stores.
    fn see_on_line(
        &mut self,
        sample: &Sample<'_>,
        (process, address): (u32, u64),
        (code, data): (Code, Data),
        sum: Sum,
    ) {
        let source = sample.data_source.unwrap_or_default();
        let key = (process, address & !(LINE_BYTES - 1));
        let place = (code, data, (address % LINE_BYTES) as u8);
        let is_store = matches!(source.operation, Operation::Store | Operation::Both);
        if is_store && (self.stores.len() < MOST_LINES || self.stores.contains_key(&key)) {
            *self.stores.entry(key).or_default().entry(place).or_default() += 1;
        }
        if !source.is_hitm() {
            return;
        }
        if self.lines.len() >= MOST_LINES && !self.lines.contains_key(&key) {
            self.folded_lines += 1;
            return;
        }
        let line = self.lines.entry(key).or_default();
        line.sum.add(sum);
        if let Some(cpu) = sample.cpu {
            *line.by_cpu.entry(cpu).or_default() += 1;
        }
        *line.by_place.entry(place).or_default() += 1;
    }

    fn finish<R: Read>(mut self, reader: &Reader<R>) -> Tally {
        let header = reader.header().clone();
        for (key, line) in &mut self.lines {
            line.stores = self.stores.remove(key).unwrap_or_default();
        }
        self.events.resize(header.events.len().max(self.events.len()), EventCount::default());
        let events = header.events.iter().zip(&self.events).map(|(event, count)| EventTally {
            name: event.name.clone(),
            carries: event.carries(),
            sum: count.sum,
            in_kernel: count.in_kernel,
            precise: count.precise,
        });
        let (files, kernel_ranges) = self.spaces.into_files();
        Tally {
            events: events.collect(),
            files,
            kernel_ranges,
            processes: self.processes,
            cpus: self.cpus,
            span_ns: self.span_ns,
            spots: self.spots,
            chains: self.chains,
            lines: self.lines,
            lost_records: self.lost_records,
            lost_samples: self.lost_samples,
            worked_out: self.worked_out,
            throttled: self.throttled,
            cut_parts: self.cut_parts,
            collided_parts: self.collided_parts,
            guessed_threads: reader.guessed_threads(),
            unreadable_traced: reader.unreadable_traced(),
            unreadable: self.unreadable,
            out_of_order: reader.out_of_order(),
            skipped_auxiliary_bytes: reader.skipped_auxiliary_bytes(),
            folded: self.folded,
            folded_lines: self.folded_lines,
            ending: reader.ending().unwrap_or(Ending::CutOff { after_bytes: reader.read_bytes() }),
            header,
        }
    }
}
