//! Calls to bytes.

use super::{Encoder, FULL_BYTES, end_code, tag};
use crate::file::frame::MAX_BLOCK_BYTES;
use crate::varint::{put, put_delta};
use lineup_model::access::{Access, AccessKind, Arguments, CallEnd, ProcessId, ThreadId, TimeMark};
use lineup_model::process::AddressSpace;
use lineup_model::region::RegionId;

/// The maximum number of accesses kept per call, the first ones. The limit depends neither on their packing nor on
/// their times, so every recorder keeps the same. A block has room for them, and for a megabyte of code.
pub const MOST_ACCESSES: usize = 440_000;
/// The maximum bytes of an access: flags 1, instruction 10, address 10, size 5, value 10.
const ACCESS_BYTES: usize = 36;
/// The maximum bytes of a time: place 5, clock 10.
const TIME_BYTES: usize = 15;
/// The maximum bytes of a granule of code.
const GRANULE_BYTES: usize = 10;
/// The maximum bytes of a call's other fields, including its arguments.
const REST_BYTES: usize = 256;

/// Bits of an access's flag byte; the low five bits hold the size, or [`SIZE_FOLLOWS`].
pub(crate) const IS_STORE: u8 = 0x20;
pub(crate) const HAS_VALUE: u8 = 0x40;
pub(crate) const SIZE_MASK: u8 = 0x1f;
/// The size did not fit and stands in its own column.
pub(crate) const SIZE_FOLLOWS: u8 = 0x1f;

/// Everything of a call but its accesses and code granules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallHead {
    /// See [`lineup_model::access::Call`], as for the other fields.
    pub region: RegionId,
    /// The process that called it.
    pub process: ProcessId,
    /// The thread that called it.
    pub thread: ThreadId,
    /// Position among all calls of its region.
    pub sequence: u64,
    /// Position in the global order of events.
    pub entered_at: u64,
    /// The way it ended.
    pub end: CallEnd,
    /// Open calls of the same region on the same thread.
    pub depth: u32,
    /// Instructions executed.
    pub instructions: u64,
    /// Instructions of the dynamic linker, besides.
    pub binding_instructions: u64,
    /// Blocks whose accesses are missing.
    pub missed_blocks: u64,
    /// The arguments passed in registers.
    pub arguments: Option<Arguments>,
}

impl Encoder {
    /// Packs a call. Accesses beyond [`MOST_ACCESSES`] are left out, and times that a block has no room for; returns
    /// how many accesses were kept.
    pub fn call(
        &mut self,
        head: &CallHead,
        accesses: &[Access],
        code_granules: &[u64],
        times: &[TimeMark],
    ) -> usize {
        // Many calls may end at once: the next block has room for one.
        let code_bytes = REST_BYTES + GRANULE_BYTES * code_granules.len();
        let most = MAX_BLOCK_BYTES.saturating_sub(code_bytes) / ACCESS_BYTES;
        let kept = &accesses[..accesses.len().min(MOST_ACCESSES).min(most)];
        let bytes = code_bytes + ACCESS_BYTES * kept.len() + TIME_BYTES * times.len();
        let used = self.block_bytes();
        if used >= FULL_BYTES || used > 0 && used + bytes > MAX_BLOCK_BYTES {
            self.begins.push(self.out.len());
        }
        let out = &mut self.out;
        match &head.arguments {
            Some(arguments) => put_arguments(out, arguments, self.space),
            None => out.push(tag::CALL),
        }
        put(out, u64::from(head.region.0));
        put(out, u64::from(head.process.0));
        put(out, u64::from(head.thread.0));
        put(out, head.sequence);
        put(out, head.entered_at);
        out.push(end_code(head.end));
        put(out, u64::from(head.depth));
        put(out, head.instructions);
        put(out, head.binding_instructions);
        put(out, head.missed_blocks);
        put_ascending(out, code_granules.iter().map(|granule| self.space.place(*granule)));
        put_accesses(out, kept, self.space);
        let room = MAX_BLOCK_BYTES.saturating_sub(self.block_bytes() + GRANULE_BYTES) / TIME_BYTES;
        put_times(&mut self.out, times, kept.len(), room);
        kept.len()
    }
}

/// The tag of a call that has arguments, and these.
fn put_arguments(out: &mut Vec<u8>, arguments: &Arguments, space: AddressSpace) {
    out.push(tag::CALL_WITH_ARGUMENTS);
    put(out, space.place(arguments.entry));
    put(out, arguments.values().len() as u64);
    arguments.values().iter().for_each(|value| put(out, space.place_value(*value)));
}

fn put_ascending(out: &mut Vec<u8>, values: impl ExactSizeIterator<Item = u64>) {
    put(out, values.len() as u64);
    let mut last = 0;
    for value in values {
        put_delta(out, last, value);
        last = value;
    }
}

/// Packs the times before kept accesses and after the last, at each place the first and the last, in columns like
/// accesses. When there is not enough room, the first ones and the last.
fn put_times(out: &mut Vec<u8>, times: &[TimeMark], accesses: usize, room: usize) {
    let at = |number: usize| times.get(number).map(|time| time.access);
    let is_between =
        |number: usize| number > 0 && at(number - 1) == at(number) && at(number + 1) == at(number);
    let kept = times
        .iter()
        .enumerate()
        .filter(|(number, time)| time.access as usize <= accesses && !is_between(*number));
    let mut kept: Vec<TimeMark> = kept.map(|(_, time)| *time).collect();
    if kept.len() > room {
        let last = kept.pop();
        kept.truncate(room.saturating_sub(1));
        kept.extend(last.filter(|_| room > 0));
    }
    put(out, kept.len() as u64);
    let mut last = 0;
    for time in &kept {
        put_delta(out, last, u64::from(time.access));
        last = u64::from(time.access);
    }
    last = 0;
    for time in &kept {
        put_delta(out, last, time.cycles);
        last = time.cycles;
    }
}

/// Column after column, so that the compressor sees like next to like.
fn put_accesses(out: &mut Vec<u8>, accesses: &[Access], space: AddressSpace) {
    put(out, accesses.len() as u64);
    for access in accesses {
        let size = u8::try_from(access.size_bytes).ok().filter(|size| *size < SIZE_FOLLOWS);
        let store = if access.kind == AccessKind::Store { IS_STORE } else { 0 };
        let value = if access.value.is_some() { HAS_VALUE } else { 0 };
        out.push(size.unwrap_or(SIZE_FOLLOWS) | store | value);
    }
    let mut last = 0;
    for access in accesses {
        let pc = space.place(access.pc);
        put_delta(out, last, pc);
        last = pc;
    }
    last = 0;
    for access in accesses {
        let address = space.place(access.address);
        put_delta(out, last, address);
        last = address;
    }
    for access in accesses.iter().filter(|access| access.size_bytes >= u32::from(SIZE_FOLLOWS)) {
        put(out, u64::from(access.size_bytes));
    }
    last = 0;
    for value in accesses.iter().filter_map(|access| access.value) {
        let value = space.place_value(value);
        put_delta(out, last, value);
        last = value;
    }
}
