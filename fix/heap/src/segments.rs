//! The range of addresses, its segments, and the runs that pools have in them.

use crate::lock::Lock;
use crate::memory;
use crate::pools::{self, Pool};
use crate::run::{RUN, RUN_SHIFT, Run};
use lineup_heap_plan::Pages;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicUsize};

/// Bytes of a segment, as many as those of a huge page.
const SEGMENT: usize = 2 << 20;

/// Runs of a segment.
const RUNS: usize = SEGMENT / RUN;

/// The same as a power of two.
const RUNS_SHIFT: u32 = RUNS.trailing_zeros();

/// All runs of a segment as bits.
const ALL: u32 = u32::MAX;

/// Bytes for all that is known of a segment and its runs: whole pages.
const NOTES: usize = 9 * 4096;

/// The part of the notes for the segment itself.
const OWN_NOTES: usize = 2048;

const _: () = assert!(RUNS == 32 && OWN_NOTES + RUNS * size_of::<Run>() <= NOTES);
const _: () = assert!(size_of::<Segment>() <= OWN_NOTES);

/// The sizes of range that are tried, with less where a limit forbids more.
const RANGES: [usize; 4] = [256 << 30, 32 << 30, 4 << 30, 512 << 20];

/// Runs that a pool keeps for later with their pages, whatever its size.
const FEWEST_KEPT: u32 = 8;

/// Segments that are looked at for pages to give back when a run becomes free.
const CLEANED_AT_ONCE: u32 = 4;

static BASE: AtomicUsize = AtomicUsize::new(0);
static NOTES_BASE: AtomicUsize = AtomicUsize::new(0);
/// Bytes of the range that are open: whole segments.
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// Bytes of the range.
static RESERVED: AtomicUsize = AtomicUsize::new(0);
/// Of segments that no pool has: the number of the first one, plus one.
static UNUSED: AtomicU32 = AtomicU32::new(0);
pub(crate) static SEGMENTS: Lock = Lock::new();

/// A segment's notes; those of its pool's lock, but `pool` and `is_huge`, which are of `SEGMENTS`.
#[repr(C)]
struct Segment {
    pool: AtomicU32,
    is_huge: AtomicU32,
    /// Runs that no lane has.
    free: AtomicU32,
    /// Those of them whose pages were touched.
    dirty: AtomicU32,
    /// Neighbours in the pool's list of segments with free runs, or in the list of unused ones.
    next: AtomicU32,
    previous: AtomicU32,
}

/// Reserves the range; false where the system gives none.
pub(crate) fn reserve() -> bool {
    for bytes in RANGES {
        let Some(base) = memory::reserve(bytes, SEGMENT) else { continue };
        let Some(notes) = memory::reserve(bytes / SEGMENT * NOTES, 4096) else { return false };
        NOTES_BASE.store(notes, Relaxed);
        RESERVED.store(bytes, Relaxed);
        BASE.store(base, Release);
        return true;
    }
    false
}

/// The offset in the range of an address in an open segment.
#[inline(always)]
pub(crate) fn offset(address: usize) -> Option<usize> {
    let offset = address.wrapping_sub(BASE.load(Relaxed));
    (offset < OPEN.load(Relaxed)).then_some(offset)
}

/// True for an address in the range that no pool has had yet.
pub(crate) fn is_unused(address: usize) -> bool {
    address.wrapping_sub(BASE.load(Relaxed)) < RESERVED.load(Relaxed)
}

/// All runs of open segments.
pub(crate) fn runs() -> impl Iterator<Item = &'static Run> {
    (0..OPEN.load(Acquire) / RUN).map(run)
}

/// The run at an offset in an open segment.
#[inline(always)]
pub(crate) fn run_at(offset: usize) -> &'static Run {
    run(offset >> RUN_SHIFT)
}

/// A run of an open segment by its number.
#[inline(always)]
pub(crate) fn run(number: usize) -> &'static Run {
    let notes = NOTES_BASE.load(Relaxed) + (number >> RUNS_SHIFT) * NOTES + OWN_NOTES;
    // SAFETY: notes of open segments are open, begin as zeros, and stay for as long as the process lives. All fields
    // are atomic.
    unsafe { &*((notes + (number % RUNS) * size_of::<Run>()) as *const Run) }
}

/// The number of a run.
pub(crate) fn number(run: &Run) -> u32 {
    let notes = std::ptr::from_ref(run) as usize - NOTES_BASE.load(Relaxed);
    (notes / NOTES * RUNS + (notes % NOTES - OWN_NOTES) / size_of::<Run>()) as u32
}

fn segment(number: u32) -> &'static Segment {
    // SAFETY: as for runs.
    unsafe { &*((NOTES_BASE.load(Relaxed) + number as usize * NOTES) as *const Segment) }
}

fn address(segment: u32) -> usize {
    BASE.load(Relaxed) + segment as usize * SEGMENT
}

/// A run for the lane at this address: the one with the lowest address in the pool's first segment.
pub(crate) fn take_run(number_of_pool: u32, lane: usize) -> Option<&'static Run> {
    let pool = pools::pool(number_of_pool);
    pools::lock(number_of_pool).with(|| {
        let first = match pool.segments.load(Relaxed) {
            0 => {
                let new = new_segment(number_of_pool, pool)?;
                link(pool, new);
                new
            }
            first => first - 1,
        };
        let of = segment(first);
        let free = of.free.load(Relaxed);
        let bit = free & free.wrapping_neg();
        of.free.store(free & !bit, Relaxed);
        if of.dirty.load(Relaxed) & bit != 0 {
            of.dirty.store(of.dirty.load(Relaxed) & !bit, Relaxed);
            pool.dirty.store(pool.dirty.load(Relaxed) - 1, Relaxed);
        }
        let used = pool.used.load(Relaxed) + 1;
        pool.used.store(used, Relaxed);
        pool.peak.store(pool.peak.load(Relaxed).max(used), Relaxed);
        if free == bit {
            unlink(pool, first);
            if pool.pages() == Pages::Collapse {
                // SAFETY: it keeps the content.
                unsafe { memory::advise(address(first), SEGMENT, MADV_COLLAPSE) };
            }
        }
        let at = bit.trailing_zeros() as usize;
        let run = run(first as usize * RUNS + at);
        // With the lock, so that a child of `fork` finds a run whole.
        run.begin(lane, number_of_pool, address(first) + at * RUN, pool.stride());
        Some(run)
    })
}

/// Since Linux 6.1; older kernels refuse it, and pages stay as they are.
const MADV_COLLAPSE: i32 = 25;

/// Takes back a run of a lane without live objects.
pub(crate) fn give_run(run: &Run) {
    let number_of_pool = run.pool();
    let pool = pools::pool(number_of_pool);
    pools::lock(number_of_pool).with(|| {
        run.end();
        let run = number(run);
        let (number, bit) = (run / RUNS as u32, 1 << (run % RUNS as u32));
        let of = segment(number);
        if of.free.load(Relaxed) == 0 {
            link(pool, number);
        }
        of.free.store(of.free.load(Relaxed) | bit, Relaxed);
        of.dirty.store(of.dirty.load(Relaxed) | bit, Relaxed);
        pool.used.store(pool.used.load(Relaxed) - 1, Relaxed);
        pool.dirty.store(pool.dirty.load(Relaxed) + 1, Relaxed);
        // A pool that empties keeps a part for the next wave.
        let kept = FEWEST_KEPT + pool.used.load(Relaxed) / 4 + pool.peak.load(Relaxed) / 8;
        // Segments whose runs became free earlier come next in the list. The rest waits for the next run.
        let mut next = number + 1;
        for _ in 0..CLEANED_AT_ONCE {
            if next == 0 || pool.dirty.load(Relaxed) <= kept {
                break;
            }
            let number = next - 1;
            // It may leave the list.
            next = segment(number).next.load(Relaxed);
            clean(pool, number);
        }
    });
}

/// Gives the pages of a segment's free runs back, unless that breaks huge pages that hold objects.
fn clean(pool: &Pool, number: u32) {
    let of = segment(number);
    let is_unused = of.free.load(Relaxed) == ALL;
    if !is_unused && pool.pages() != Pages::Usual {
        return;
    }
    let dirty = of.dirty.load(Relaxed);
    let mut left = dirty;
    while left != 0 {
        let first = left.trailing_zeros();
        let count = (left >> first).trailing_ones();
        // SAFETY: these runs have no lane, so no object is live.
        unsafe {
            memory::advise(address(number) + first as usize * RUN, count as usize * RUN, libc::MADV_DONTNEED)
        };
        left &= !(u32::MAX >> (32 - count) << first);
    }
    of.dirty.store(0, Relaxed);
    pool.dirty.store(pool.dirty.load(Relaxed) - dirty.count_ones(), Relaxed);
    if is_unused {
        unlink(pool, number);
        of.free.store(0, Relaxed);
        SEGMENTS.with(|| {
            of.pool.store(0, Relaxed);
            of.next.store(UNUSED.load(Relaxed), Relaxed);
            UNUSED.store(number + 1, Relaxed);
        });
    }
}

/// Gives the pages of all free runs of a pool back.
pub(crate) fn trim(number_of_pool: u32) {
    let pool = pools::pool(number_of_pool);
    pools::lock(number_of_pool).with(|| {
        let mut next = pool.segments.load(Relaxed);
        while next != 0 {
            let number = next - 1;
            // It may leave the list.
            next = segment(number).next.load(Relaxed);
            clean(pool, number);
        }
    });
}

/// A segment with all runs free, for a pool whose lock is taken.
fn new_segment(number_of_pool: u32, pool: &Pool) -> Option<u32> {
    let is_huge = pool.pages() == Pages::Huge;
    let number = SEGMENTS.with(|| {
        let number = match UNUSED.load(Relaxed) {
            0 => open()?,
            first => {
                UNUSED.store(segment(first - 1).next.load(Relaxed), Relaxed);
                first - 1
            }
        };
        segment(number).pool.store(number_of_pool, Relaxed);
        Some(number)
    })?;
    let of = segment(number);
    if is_huge || of.is_huge.load(Relaxed) != 0 {
        let advice = if is_huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: it keeps the content.
        unsafe { memory::advise(address(number), SEGMENT, advice) };
        of.is_huge.store(u32::from(is_huge), Relaxed);
    }
    of.free.store(ALL, Relaxed);
    of.dirty.store(0, Relaxed);
    Some(number)
}

/// Opens the next segment of the range.
fn open() -> Option<u32> {
    let offset = OPEN.load(Relaxed);
    if offset >= RESERVED.load(Relaxed) {
        return None;
    }
    let number = offset / SEGMENT;
    // SAFETY: both are parts of what was reserved.
    let is_open = unsafe {
        memory::open(NOTES_BASE.load(Relaxed) + number * NOTES, NOTES)
            && memory::open(BASE.load(Acquire) + offset, SEGMENT)
    };
    if !is_open {
        return None;
    }
    OPEN.store(offset + SEGMENT, Release);
    Some(number as u32)
}

/// Puts a segment in front of its pool's list.
fn link(pool: &Pool, number: u32) {
    let first = pool.segments.load(Relaxed);
    segment(number).next.store(first, Relaxed);
    segment(number).previous.store(0, Relaxed);
    if first != 0 {
        segment(first - 1).previous.store(number + 1, Relaxed);
    }
    pool.segments.store(number + 1, Relaxed);
}

fn unlink(pool: &Pool, number: u32) {
    let of = segment(number);
    let (next, previous) = (of.next.load(Relaxed), of.previous.load(Relaxed));
    match previous {
        0 => pool.segments.store(next, Relaxed),
        previous => segment(previous - 1).next.store(next, Relaxed),
    }
    if next != 0 {
        segment(next - 1).previous.store(previous, Relaxed);
    }
}
