//! The pools of a plan, and the one for each size.

use crate::lock::Lock;
use crate::memory;
use lineup_heap_plan::{LARGEST, Pages, PoolLine, STEP, stride};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicUsize};

/// The most pools of a plan, plus one: number 0 means that there is none.
pub(crate) const MOST_POOLS: usize = 4096;

/// Pools share locks, so that `fork` has few to take.
const LOCKS: usize = 64;

/// A pool. Counts are of runs, and belong to its lock.
#[repr(C)]
pub(crate) struct Pool {
    stride: AtomicU32,
    pages: AtomicU32,
    /// Of segments with free runs: the number of the first one, plus one.
    pub(crate) segments: AtomicU32,
    /// Runs that lanes have.
    pub(crate) used: AtomicU32,
    /// The most of them at one time.
    pub(crate) peak: AtomicU32,
    /// Free ones with pages.
    pub(crate) dirty: AtomicU32,
}

static POOLS: AtomicUsize = AtomicUsize::new(0);
static COUNT: AtomicU32 = AtomicU32::new(0);
static POOL_LOCKS: [Lock; LOCKS] = [const { Lock::new() }; LOCKS];

/// For each size, in steps, the number of its pool; 0 where it has none.
#[repr(C)]
pub(crate) struct Sizes([AtomicU16; LARGEST / STEP + 1]);

impl Sizes {
    /// No pool for any size.
    pub(crate) fn new() -> Option<&'static Sizes> {
        // SAFETY: zeroed memory of this size, never given back; zero is a number of no pool.
        memory::zeroed(size_of::<Sizes>()).map(|at| unsafe { &*(at as *const Sizes) })
    }

    /// The pool for objects of a size; 0 where there is none.
    #[inline(always)]
    pub(crate) fn pool(&self, size: usize) -> u32 {
        // Larger ones, and sizes that wrap, are not in the table.
        match self.0.get(size.wrapping_add(STEP - 1) / STEP) {
            Some(pool) if size <= LARGEST => u32::from(pool.load(Relaxed)),
            _ => 0,
        }
    }

    /// Makes the pools of a line, for sizes that have none; false where there are too many pools.
    pub(crate) fn add(&self, line: &PoolLine<'_>) -> bool {
        let mut last = (0, 0);
        for (at, pool) in self.0.iter().enumerate() {
            let (most, least) = (at * STEP, (at * STEP).saturating_sub(STEP - 1));
            if most < line.smallest || least > line.largest || pool.load(Relaxed) != 0 {
                continue;
            }
            let stride = stride(most, line.alignment);
            if last.0 != stride {
                let Some(number) = new_pool(stride, line.pages) else { return false };
                last = (stride, number);
            }
            pool.store(last.1, Relaxed);
        }
        true
    }
}

/// Makes room for pools.
pub(crate) fn begin() -> bool {
    let Some(room) = memory::zeroed(MOST_POOLS * size_of::<Pool>()) else { return false };
    POOLS.store(room, Release);
    true
}

fn new_pool(stride: usize, pages: Pages) -> Option<u16> {
    let number = COUNT.load(Relaxed) + 1;
    if number as usize >= MOST_POOLS {
        return None;
    }
    COUNT.store(number, Relaxed);
    let of = pool(number);
    of.stride.store(stride as u32, Relaxed);
    of.pages.store(pages as u32, Relaxed);
    Some(number as u16)
}

/// A pool by its number, once there is room for pools.
pub(crate) fn pool(number: u32) -> &'static Pool {
    let at = POOLS.load(Acquire) + number as usize * size_of::<Pool>();
    // SAFETY: the room holds `MOST_POOLS` pools, which all numbers are below; all fields are atomic, and begin as zeros.
    unsafe { &*(at as *const Pool) }
}

/// The numbers of all pools.
pub(crate) fn all() -> impl Iterator<Item = u32> {
    1..=COUNT.load(Relaxed)
}

/// The lock of a pool.
pub(crate) fn lock(number: u32) -> &'static Lock {
    &POOL_LOCKS[number as usize % LOCKS]
}

/// All locks of pools, in the order in which they are taken.
pub(crate) fn locks() -> impl Iterator<Item = &'static Lock> {
    POOL_LOCKS.iter()
}

impl Pool {
    pub(crate) fn stride(&self) -> usize {
        self.stride.load(Relaxed) as usize
    }

    pub(crate) fn pages(&self) -> Pages {
        match self.pages.load(Relaxed) {
            huge if huge == Pages::Huge as u32 => Pages::Huge,
            collapse if collapse == Pages::Collapse as u32 => Pages::Collapse,
            _ => Pages::Usual,
        }
    }
}
