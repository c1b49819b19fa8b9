//! The processor's record of one instruction.

use super::packet::{Packet, packet};

/// Classes of instructions.
const OTHER: u8 = 0;
const ACCESS: u8 = 1;
const BRANCH: u8 = 2;
/// Kinds of addresses.
const OF_INSTRUCTION: u8 = 0;
const OF_BRANCH: u8 = 1;
const OF_DATA: u8 = 2;
const OF_DATA_PHYSICAL: u8 = 3;
const OF_BRANCH_BEFORE: u8 = 4;
/// Kinds of cycle counts.
const TOTAL: u8 = 0;
const ISSUE: u8 = 1;
const TRANSLATION: u8 = 2;
/// All of an address but its top byte.
pub(super) const WITHOUT_TOP: u64 = (1 << 56) - 1;
const TOP: u64 = 0xff << 56;

/// The operation of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Kind {
    /// Not reported.
    #[default]
    Unsaid,
    /// It accessed memory.
    Access(Access),
    /// It was a branch.
    Branch {
        /// One with a condition.
        is_conditional: bool,
        /// True for a branch whose target is in a register.
        is_indirect: bool,
    },
    /// Anything else.
    Other,
}

/// The kind of an instruction's memory access.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Access {
    /// A store; else a load.
    pub is_store: bool,
    /// It loads and stores at once.
    pub is_atomic: bool,
    /// A half of a pair that holds the line in between.
    pub is_exclusive: bool,
    /// It has an order that others can see.
    pub is_ordered: bool,
    /// True for vectors (SIMD or SVE), and for floating-point numbers.
    pub is_vector: bool,
}

impl Access {
    fn of(detail: u8) -> Access {
        let has = |bit: u8| detail >> bit & 1 == 1;
        let is_extended = detail & 0xe2 == 2;
        let is_sve = detail & 0x0a == 8;
        Access {
            is_store: has(0),
            is_atomic: is_extended && has(2),
            is_exclusive: is_extended && has(3),
            is_ordered: is_extended && has(4),
            is_vector: is_sve || detail & !1 == 4,
        }
    }
}

/// The processor's record of one instruction. A fact that it did not report is `None`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TraceRecord {
    /// The instruction, as the kernel writes addresses.
    pub instruction: Option<u64>,
    /// The level that executed it: 0 for programs, 1 and 2 for the kernel, 3 for firmware.
    pub level: Option<u8>,
    /// The target of a branch.
    pub branch_target: Option<u64>,
    /// The target of the branch before it.
    pub branch_before: Option<u64>,
    /// The address that was accessed, as the kernel writes addresses.
    pub address: Option<u64>,
    /// Its physical address.
    pub physical_address: Option<u64>,
    /// The operation.
    pub kind: Kind,
    /// The events, one bit each.
    pub events: u64,
    /// The data source, in the processor's numbers.
    pub source: Option<u16>,
    /// Cycles from when it was handed on to be issued until it was done.
    pub total_cycles: Option<u16>,
    /// Its part of these until it was issued.
    pub issue_cycles: Option<u16>,
    /// Cycles of the translation of its address.
    pub translation_cycles: Option<u16>,
    /// The kernel's context of the thread: its number.
    pub context: Option<u32>,
    /// When, in ticks of the machine's timer.
    pub ticks: Option<u64>,
}

impl TraceRecord {
    /// Adds a packet's facts about the instruction.
    pub fn see(&mut self, packet: Packet) {
        match packet {
            Packet::Padding | Packet::Unknown | Packet::End => {}
            Packet::Timestamp(ticks) => self.ticks = Some(ticks),
            Packet::Events(events) => self.events |= events,
            Packet::Source(source) => self.source = Some(source),
            Packet::Context(context) => self.context = Some(context),
            Packet::Operation { class, detail } => self.kind = kind(class, detail),
            Packet::Address { index, value } => self.see_address(index, value),
            Packet::Counter { index, cycles } => match index {
                TOTAL => self.total_cycles = Some(cycles),
                ISSUE => self.issue_cycles = Some(cycles),
                TRANSLATION => self.translation_cycles = Some(cycles),
                _ => {}
            },
        }
    }

    fn see_address(&mut self, index: u8, value: u64) {
        match index {
            OF_INSTRUCTION => {
                self.instruction = Some(code_address(value));
                self.level = Some(level(value));
            }
            OF_BRANCH => self.branch_target = Some(code_address(value)),
            OF_BRANCH_BEFORE => self.branch_before = Some(code_address(value)),
            OF_DATA => self.address = Some(data_address(value)),
            OF_DATA_PHYSICAL => self.physical_address = Some(value & WITHOUT_TOP),
            _ => {}
        }
    }

    /// True when it has an instruction or an address.
    pub(crate) fn says_where(&self) -> bool {
        self.instruction.is_some() || self.address.is_some()
    }
}

fn kind(class: u8, detail: u8) -> Kind {
    match class {
        ACCESS => Kind::Access(Access::of(detail)),
        BRANCH => Kind::Branch { is_conditional: detail & 1 != 0, is_indirect: detail & 2 != 0 },
        OTHER => Kind::Other,
        _ => Kind::Unsaid,
    }
}

/// The top byte of a code address holds the exception level at which it was executed, not a part of the address.
fn level(value: u64) -> u8 {
    (value >> 61 & 3) as u8
}

/// An address of code without that byte. The kernel's have it set, as in its own tables.
fn code_address(value: u64) -> u64 {
    let is_not_secure = value >> 63 == 1;
    let is_kernels = is_not_secure && matches!(level(value), 1 | 2);
    value & WITHOUT_TOP | if is_kernels { TOP } else { 0 }
}

/// An address of data without the tag in its top byte. The kernel's have the bits below it set, and get it set, too.
fn data_address(value: u64) -> u64 {
    let is_kernels = value >> 52 & 0xf == 0xf;
    value & WITHOUT_TOP | if is_kernels { TOP } else { 0 }
}

/// Puts records together from packets.
#[derive(Default, Debug)]
pub(crate) struct Decoder {
    record: TraceRecord,
    /// True when a packet of a record was seen, and not its end.
    has_begun: bool,
}

/// The result of decoding the start of some bytes.
#[derive(Debug)]
pub(crate) enum Step {
    /// A packet of this many bytes, and the record that it ended.
    Packet(usize, Option<TraceRecord>),
    /// The start of a packet.
    Cut,
}

impl Decoder {
    /// Adds the packet at the start of `bytes`, which are at `position` of the trace.
    pub(crate) fn step(&mut self, bytes: &[u8], position: u64) -> Step {
        let Some((packet, length)) = packet(bytes, position) else { return Step::Cut };
        self.has_begun |= packet != Packet::Padding;
        self.record.see(packet);
        let is_end = matches!(packet, Packet::End | Packet::Timestamp(_));
        let record = is_end.then(|| {
            self.has_begun = false;
            std::mem::take(&mut self.record)
        });
        Step::Packet(length, record)
    }

    /// Forgets a record that has not ended; true when there was one.
    pub(crate) fn drop_begun(&mut self) -> bool {
        self.record = TraceRecord::default();
        std::mem::take(&mut self.has_begun)
    }
}
