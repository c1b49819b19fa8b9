//! One record of the tracer.

use crate::layout::{COUNTERS, record};
use serde::Serialize;

/// The kind of a record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A region from begin to end.
    Region,
    /// A mark, with a value.
    Mark,
    /// A lock from the attempt to take it to its release: `lock_wait_ns`, then `duration_ns` held.
    Lock,
    /// A lock given up after waiting `lock_wait_ns`.
    LockGivenUp,
    /// The head of a high-water entry; `argument` records follow that happened inside.
    HighWaterHead,
}

impl Kind {
    /// From its number in the file.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Region, Self::Mark, Self::Lock, Self::LockGivenUp, Self::HighWaterHead]
            .into_iter()
            .find(|kind| kind.number() == number)
    }

    /// Its number in the file.
    pub fn number(self) -> u8 {
        match self {
            Self::Region => 1,
            Self::Mark => 2,
            Self::Lock => 3,
            Self::LockGivenUp => 4,
            Self::HighWaterHead => 5,
        }
    }
}

/// The tracer's intervention before a call of a region, chosen at random.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// Nothing.
    None,
    /// Flushed the region's code lines from the caches.
    FlushCode,
    /// Fetched them.
    PrefetchCode,
    /// Flushed the region's data lines.
    FlushData,
    /// Fetched them.
    PrefetchData,
    /// Made the region's locks be given up after a bound.
    GiveUpLock,
    /// Fetched code and data, and made locks be given up, each where the region declared it.
    RemoveAll,
}

impl Arm {
    /// Every arm, in the order of their numbers.
    pub const ALL: [Arm; 7] = [
        Self::None,
        Self::FlushCode,
        Self::PrefetchCode,
        Self::FlushData,
        Self::PrefetchData,
        Self::GiveUpLock,
        Self::RemoveAll,
    ];

    /// From its number in the file.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Its number in the file, and its bit in a mask of arms.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// True when locks inside its calls are given up.
    pub fn gives_up_locks(self) -> bool {
        matches!(self, Self::GiveUpLock | Self::RemoveAll)
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::FlushCode => "flush_code",
            Self::PrefetchCode => "prefetch_code",
            Self::FlushData => "flush_data",
            Self::PrefetchData => "prefetch_data",
            Self::GiveUpLock => "give_up_lock",
            Self::RemoveAll => "remove_all",
        }
    }
}

/// One record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Event {
    /// Its number in its ring, from 0.
    pub number: u64,
    /// The kind of record.
    pub kind: Kind,
    /// Index in the table of names.
    pub name: u16,
    /// Start, nanoseconds on the tracer's clock. For a lock: the attempt to take it.
    pub start_ns: u64,
    /// Duration, nanoseconds. For a lock: how long it was held.
    pub duration_ns: u64,
    /// Time spent waiting for locks inside, nanoseconds.
    pub lock_wait_ns: u64,
    /// A mark's value, a lock's address, or the number of records that follow.
    pub argument: u64,
    /// CPU at the end, when known.
    pub cpu: Option<u16>,
    /// The tracer's intervention before it began.
    pub arm: Arm,
    /// The number of regions that were open around it.
    pub depth: u8,
    /// Counter differences, saturated at `u32::MAX`. Meaningful where the trace names a counter.
    pub counters: [u32; COUNTERS],
}

impl Event {
    /// The record in `bytes`, 64 of them, if its commit word is `number + 1` and its codes are known.
    pub fn decode(bytes: &[u8], number: u64) -> Option<Self> {
        let cpu = u16_at(bytes, record::CPU)?;
        let counter = |index: usize| u32_at(bytes, record::COUNTERS + 4 * index);
        (u64_at(bytes, record::COMMIT)? == number.checked_add(1)?).then_some(())?;
        Some(Self {
            number,
            kind: Kind::from_number(*bytes.get(record::KIND)?)?,
            name: u16_at(bytes, record::NAME)?,
            start_ns: u64_at(bytes, record::START_NS)?,
            duration_ns: u64_at(bytes, record::DURATION_NS)?,
            lock_wait_ns: u64_at(bytes, record::LOCK_WAIT_NS)?,
            argument: u64_at(bytes, record::ARGUMENT)?,
            cpu: (cpu != u16::MAX).then_some(cpu),
            arm: Arm::from_number(*bytes.get(record::ARM)?)?,
            depth: *bytes.get(record::DEPTH)?,
            counters: [counter(0)?, counter(1)?, counter(2)?, counter(3)?],
        })
    }

    /// End, nanoseconds on the tracer's clock.
    pub fn end_ns(&self) -> u64 {
        let waited = if self.kind == Kind::Lock { self.lock_wait_ns } else { 0 };
        self.start_ns.saturating_add(waited).saturating_add(self.duration_ns)
    }
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).and_then(|piece| piece.try_into().ok()).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).and_then(|piece| piece.try_into().ok()).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).and_then(|piece| piece.try_into().ok()).map(u64::from_le_bytes)
}
