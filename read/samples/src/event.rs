//! The sampled events, and the fields that each sample carries.

use crate::bytes::Fields;
use perf_event_data::SampleFlags;
use perf_event_data::endian::Little;
use perf_event_data::parse::ParseConfig;
use perf_event_open_sys::bindings::perf_event_attr;

/// The minimum size of a description: that of its first version.
const LEAST_BYTES: u32 = 64;
/// The flag with which records other than samples carry time and identity, too.
const SAMPLE_ID_ALL: u64 = 1 << 18;
/// The flag for which the period is a frequency.
const FREQUENCY: u64 = 1 << 10;
/// The flag for which times are of another clock than the kernel's own.
const OWN_CLOCK: u64 = 1 << 25;

/// A sampled event, and the fields that each of its samples carries.
#[derive(Clone, Debug)]
pub struct Event {
    /// As perf calls it; made from the numbers below when the file has no name.
    pub name: String,
    /// The kind of event, `PERF_TYPE_…`.
    pub kind: u32,
    /// The event's number within that kind.
    pub config: u64,
    /// Samples a second, when perf was given a frequency; else `None`.
    pub frequency: Option<u64>,
    /// Identities that its samples may have.
    pub ids: Vec<u64>,
    pub(crate) places: Places,
    pub(crate) parse: ParseConfig<Little>,
    flags: SampleFlags,
    /// True when its samples are in traces, for any contents of its description.
    pub(crate) is_traced: bool,
    /// Its times are of a clock that was asked for.
    pub(crate) has_own_clock: bool,
}

/// The places of identity and time in records.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Places {
    /// Bytes from the start of a sample.
    pub(crate) sample_id: Option<usize>,
    pub(crate) sample_time: Option<usize>,
    /// Bytes from the end of any other record.
    pub(crate) other_id: Option<usize>,
    pub(crate) other_time: Option<usize>,
    pub(crate) other_thread: Option<usize>,
    pub(crate) other_cpu: Option<usize>,
    /// The identity is the first word of a sample and the last one of other records.
    pub(crate) is_identified: bool,
}

/// The fields that the samples of an event carry.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Carries {
    /// The address that was accessed.
    pub address: bool,
    /// A weight: on most machines the cycles that the access took.
    pub weight: bool,
    /// The source of the data.
    pub data_source: bool,
    /// Registers.
    pub registers: bool,
    /// The functions under way.
    pub call_chain: bool,
    /// The last branches.
    pub branches: bool,
    /// The physical address.
    pub physical_address: bool,
    /// The CPU.
    pub cpu: bool,
    /// The time.
    pub time: bool,
}

/// Events of the processor that the kernel numbers alike everywhere, by their number.
const OF_HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];
/// The kernel's own events, by their number.
const OF_SOFTWARE: [&str; 7] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
];

/// The name of an event that the file does not name.
fn general_name(kind: u32, config: u64) -> String {
    let names = match kind {
        0 => &OF_HARDWARE[..],
        1 => &OF_SOFTWARE,
        _ => &[],
    };
    let known = usize::try_from(config).ok().and_then(|number| names.get(number));
    known.map_or_else(|| format!("type {kind} config {config:#x}"), |name| (*name).to_owned())
}

impl Event {
    /// From the description in the file, `struct perf_event_attr`.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Event> {
        let mut fields = Fields::new(bytes);
        let kind = fields.u32()?;
        let size = fields.u32()?;
        if size < LEAST_BYTES || bytes.len() < LEAST_BYTES as usize {
            return None;
        }
        let known = bytes.get(..(size as usize).min(bytes.len()))?;
        let at = |at: usize| crate::bytes::u64_at(known, at).unwrap_or_default();
        let (config, period, sample_type, read_format, flags) = (at(8), at(16), at(24), at(32), at(40));
        let (branch_sample_type, user, interrupt) = (at(72), at(80), at(96));
        let mut attr = perf_event_attr::default();
        // Both kinds of weight have one word at one place; which one it is, is read from the flags kept here.
        attr.sample_type = with_one_weight(sample_type);
        attr.read_format = read_format;
        attr.sample_regs_user = user;
        attr.sample_regs_intr = interrupt;
        attr.branch_sample_type = branch_sample_type;
        let is_id_everywhere = flags & SAMPLE_ID_ALL != 0;
        attr.set_sample_id_all(u64::from(is_id_everywhere));
        let sample_flags = SampleFlags::from_bits_retain(sample_type);
        Some(Event {
            name: general_name(kind, config),
            kind,
            config,
            frequency: (flags & FREQUENCY != 0).then_some(period),
            ids: Vec::new(),
            places: Places::of(sample_flags, is_id_everywhere),
            parse: ParseConfig::from(attr),
            flags: sample_flags,
            is_traced: false,
            has_own_clock: flags & OWN_CLOCK != 0,
        })
    }

    /// The fields that its samples carry.
    pub fn carries(&self) -> Carries {
        let has = |flag: SampleFlags| self.flags.intersects(flag);
        if self.is_traced {
            let told =
                Carries { address: true, weight: true, data_source: true, cpu: true, ..Carries::default() };
            return Carries {
                time: has(SampleFlags::TIME),
                physical_address: has(SampleFlags::PHYS_ADDR),
                ..told
            };
        }
        Carries {
            address: has(SampleFlags::ADDR),
            weight: has(SampleFlags::WEIGHT | SampleFlags::WEIGHT_STRUCT),
            data_source: has(SampleFlags::DATA_SRC),
            registers: has(SampleFlags::REGS_USER | SampleFlags::REGS_INTR),
            call_chain: has(SampleFlags::CALLCHAIN),
            branches: has(SampleFlags::BRANCH_STACK),
            physical_address: has(SampleFlags::PHYS_ADDR),
            cpu: has(SampleFlags::CPU),
            time: has(SampleFlags::TIME),
        }
    }

    /// True when the weight is three numbers in one word.
    pub(crate) fn has_weight_parts(&self) -> bool {
        self.flags.contains(SampleFlags::WEIGHT_STRUCT)
    }
}

fn with_one_weight(sample_type: u64) -> u64 {
    let parts = SampleFlags::WEIGHT_STRUCT.bits();
    if sample_type & parts == 0 { sample_type } else { sample_type & !parts | SampleFlags::WEIGHT.bits() }
}

impl Places {
    fn of(flags: SampleFlags, is_id_everywhere: bool) -> Places {
        let word = |flag: SampleFlags| 8 * usize::from(flags.contains(flag));
        let is_identified = flags.contains(SampleFlags::IDENTIFIER);
        let time = word(SampleFlags::IDENTIFIER) + word(SampleFlags::IP) + word(SampleFlags::TID);
        let id = time + word(SampleFlags::TIME) + word(SampleFlags::ADDR);
        let sample_id = if is_identified { Some(0) } else { flags.contains(SampleFlags::ID).then_some(id) };
        // Behind other records: thread, time, identity, stream, CPU, identifier.
        let behind_id = word(SampleFlags::STREAM_ID) + word(SampleFlags::CPU) + word(SampleFlags::IDENTIFIER);
        let other_id =
            if is_identified { Some(8) } else { flags.contains(SampleFlags::ID).then_some(behind_id + 8) };
        let other_time = behind_id + word(SampleFlags::ID) + 8;
        let has_time = flags.contains(SampleFlags::TIME);
        Places {
            sample_id,
            sample_time: has_time.then_some(time),
            other_id: other_id.filter(|_| is_id_everywhere),
            other_time: (has_time && is_id_everywhere).then_some(other_time),
            other_thread: (flags.contains(SampleFlags::TID) && is_id_everywhere)
                .then_some(behind_id + word(SampleFlags::ID) + word(SampleFlags::TIME) + 8),
            other_cpu: (flags.contains(SampleFlags::CPU) && is_id_everywhere)
                .then_some(word(SampleFlags::IDENTIFIER) + 8),
            is_identified,
        }
    }
}
