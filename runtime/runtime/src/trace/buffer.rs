//! A thread's part of the file, and its open regions. Only its own thread touches it, one probe at a time, so nothing
//! here locks.

use super::counters::Group;
use super::session::Session;
use lineup_trace::Kind;
use lineup_trace::layout::{COUNTERS, METRICS, RECORD_BYTES, bucket_of, mode, record, thread};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release, fence};

/// The maximum nesting of regions, and of locks held by a thread at once; more are counted as unbalanced.
pub(super) const DEPTH: usize = 32;

/// An open region.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Open {
    pub(super) name: u16,
    pub(super) arm: u8,
    pub(super) start_ns: u64,
    /// Number of the first record that can be inside.
    pub(super) first_inner: u64,
    pub(super) lock_wait_ns: u64,
    pub(super) give_up_ns: Option<u64>,
}

/// A lock held.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct HeldLock {
    pub(super) name: u16,
    pub(super) address: usize,
    pub(super) start_ns: u64,
    pub(super) wait_ns: u64,
    pub(super) taken_ns: u64,
}

/// The contents of a record except its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordContents {
    pub(super) cpu: u16,
    pub(super) kind: Kind,
    pub(super) name: u16,
    pub(super) start_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) lock_wait_ns: u64,
    pub(super) argument: u64,
    pub(super) arm: u8,
    pub(super) depth: u8,
    pub(super) counters: [u32; COUNTERS],
}

/// A ring of records in the mapping.
#[derive(Debug)]
struct Ring {
    base: *mut u8,
    mask: u64,
    /// Number of the next record.
    next: Cell<u64>,
}

impl Ring {
    fn slot(&self, number: u64) -> *mut u8 {
        // SAFETY: the mask keeps the slot inside the ring.
        unsafe { self.base.add(((number & self.mask) * RECORD_BYTES) as usize) }
    }

    /// Writes the next record by `fill`, which gets the slot. A kill at any instruction leaves it marked unfinished.
    #[inline(always)]
    fn push(&self, fill: impl FnOnce(*mut u8)) {
        let number = self.next.get();
        let slot = self.slot(number);
        // SAFETY: the slot is 64 aligned bytes of this thread's own ring.
        let commit = unsafe { AtomicU64::from_ptr(slot.add(record::COMMIT).cast()) };
        commit.store(0, Relaxed);
        fence(Release);
        fill(slot);
        commit.store(number + 1, Release);
        self.next.set(number + 1);
    }
}

/// A thread's state in one session.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) session: &'static Session,
    /// Address of the area's header.
    area: *mut u8,
    ring: Ring,
    high_water: Ring,
    histograms: *mut u64,
    pub(super) depth: Cell<usize>,
    pub(super) open: [Cell<Open>; DEPTH],
    /// Counters at each open region's begin; untouched without counters.
    pub(super) counters_at_begin: [Cell<[u64; COUNTERS]>; DEPTH],
    pub(super) locks: Cell<usize>,
    pub(super) held: [Cell<HeldLock>; DEPTH],
    pub(super) random: Cell<u64>,
    maxima: Vec<Cell<u64>>,
    pub(super) counters: Option<Group>,
}

impl Buffer {
    /// The buffer of the calling thread; `None` when the session has no area left.
    pub(super) fn claim(session: &'static Session) -> Option<Self> {
        let area = session.claim_area()?;
        let geometry = &session.geometry;
        // SAFETY: the layout places the three parts inside the area.
        let part = |offset: u64| unsafe { area.add(offset as usize) };
        let ring = |offset: u64, records: u32| Ring {
            base: part(offset),
            mask: u64::from(records) - 1,
            next: Cell::new(0),
        };
        Some(Self {
            session,
            area,
            ring: ring(geometry.ring_offset(), geometry.ring_records),
            high_water: ring(geometry.high_water_offset(), geometry.high_water_records),
            histograms: part(geometry.histograms_offset()).cast(),
            depth: Cell::new(0),
            open: [const { Cell::new(NOT_OPEN) }; DEPTH],
            counters_at_begin: [const { Cell::new([0; COUNTERS]) }; DEPTH],
            locks: Cell::new(0),
            held: [const { Cell::new(NOT_HELD) }; DEPTH],
            random: Cell::new(crate::clock::now_ns() ^ area as u64),
            maxima: vec![Cell::new(0); geometry.names as usize],
            counters: session.counters.open_group(),
        })
    }

    fn count(&self, at: usize) {
        // SAFETY: a word of this area's header.
        unsafe { AtomicU64::from_ptr(self.area.add(at).cast()) }.fetch_add(1, Relaxed);
    }

    #[cold]
    pub(super) fn count_nested(&self) {
        self.count(thread::LOST_NESTED);
    }

    #[cold]
    pub(super) fn count_unbalanced(&self) {
        self.count(thread::UNBALANCED);
    }

    /// Number of the next record.
    pub(super) fn next_number(&self) -> u64 {
        self.ring.next.get()
    }

    /// True when an entry is written to the ring, which has room or begins anew, and nowhere else.
    #[inline(always)]
    pub(super) fn keeps_events_alone(&self) -> bool {
        self.session.modes == mode::EVENTS && !self.session.stops_when_full
    }

    /// Writes `entry` to the ring.
    #[inline(always)]
    pub(super) fn push(&self, entry: &RecordContents) {
        self.ring.push(|slot| fill(slot, entry));
    }

    /// Records `entry` as the session's modes ask.
    #[inline(always)]
    pub(super) fn record(&self, entry: &RecordContents, first_inner: u64) {
        let modes = self.session.modes;
        if modes & (mode::EVENTS | mode::HIGH_WATER) != 0 {
            if self.session.stops_when_full && self.ring.next.get() > self.ring.mask {
                self.count(thread::LOST_FULL);
            } else {
                self.push(entry);
            }
        }
        if modes & mode::HISTOGRAMS != 0 && entry.kind != Kind::Mark {
            self.bump_histograms(entry);
        }
        if modes & mode::HIGH_WATER != 0 && entry.kind == Kind::Region {
            self.note_maximum(entry, first_inner);
        }
    }

    #[inline(never)]
    fn bump_histograms(&self, entry: &RecordContents) {
        let counters = if self.counters.is_some() { COUNTERS } else { 0 };
        let values = [entry.duration_ns, entry.lock_wait_ns]
            .into_iter()
            .chain(entry.counters.iter().take(counters).map(|value| u64::from(*value)));
        for (metric, value) in values.enumerate().take(METRICS as usize) {
            let offset = self.session.geometry.histogram_offset(u32::from(entry.name), metric as u64) / 8;
            // SAFETY: the layout has this histogram in the area; names below the table's size alone get indices.
            unsafe { *self.histograms.add((offset + bucket_of(value)) as usize) += 1 };
        }
    }

    fn note_maximum(&self, entry: &RecordContents, first_inner: u64) {
        let Some(maximum) = self.maxima.get(usize::from(entry.name)) else { return };
        if entry.duration_ns > maximum.get() {
            maximum.set(entry.duration_ns);
            self.keep_high_water(entry, first_inner);
        }
    }

    /// Copies the events of a new maximum, the region's own last, behind a head that holds their number.
    #[cold]
    fn keep_high_water(&self, entry: &RecordContents, first_inner: u64) {
        let end = self.ring.next.get();
        let oldest = end.saturating_sub(self.ring.mask + 1);
        let all = end.saturating_sub(first_inner);
        let room = self.high_water.mask / 2;
        let kept = all.min(end - oldest.max(first_inner).min(end)).min(room);
        let dropped = (all - kept).min(u64::from(u32::MAX));
        let head = RecordContents { kind: Kind::HighWaterHead, argument: dropped << 32 | kept, ..*entry };
        self.high_water.push(|slot| fill(slot, &head));
        for number in end - kept..end {
            let from = self.ring.slot(number);
            let after_commit = record::COMMIT + 8;
            // SAFETY: both slots are 64 bytes of this thread's own rings, which do not overlap.
            self.high_water.push(|slot| unsafe {
                std::ptr::copy_nonoverlapping(
                    from.add(after_commit),
                    slot.add(after_commit),
                    RECORD_BYTES as usize - after_commit,
                );
            });
        }
    }
}

const NOT_OPEN: Open =
    Open { name: 0, arm: 0, start_ns: 0, first_inner: 0, lock_wait_ns: 0, give_up_ns: None };
const NOT_HELD: HeldLock = HeldLock { name: 0, address: 0, start_ns: 0, wait_ns: 0, taken_ns: 0 };

#[inline(always)]
fn fill(slot: *mut u8, entry: &RecordContents) {
    // SAFETY: the slot is 64 aligned bytes of this thread's own ring; the layout places every field inside. Plain
    // little-endian stores: the architectures supported are little-endian.
    unsafe {
        let put64 = |at: usize, value: u64| slot.add(at).cast::<u64>().write(value.to_le());
        put64(record::START_NS, entry.start_ns);
        put64(record::DURATION_NS, entry.duration_ns);
        put64(record::LOCK_WAIT_NS, entry.lock_wait_ns);
        put64(record::ARGUMENT, entry.argument);
        let codes = u64::from(entry.name)
            | u64::from(entry.cpu) << 16
            | u64::from(entry.kind.number()) << 32
            | u64::from(entry.arm) << 40
            | u64::from(entry.depth) << 48;
        put64(record::NAME, codes);
        slot.add(record::COUNTERS).cast::<[u32; COUNTERS]>().write(entry.counters);
    }
}
