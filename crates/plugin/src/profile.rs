//! Whole-program mode: a cache model that sees everything, and counts per run of instructions.

use lineup_cache::{CacheSpec, Hierarchy, Missed};
use lineup_recording::{Encoder, Misses, ProfileRun};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::describe::{Description, Descriptions};
use crate::ffi::Api;
use crate::output::BLOCK_BYTES;
use crate::recorder::MAX_THREADS;

/// The part of a block that lies on one line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    /// Dense number.
    pub(crate) id: usize,
    pub(crate) pc: u64,
    pub(crate) size_bytes: u32,
    pub(crate) instructions: u64,
}

/// Counts of one run.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    executions: u64,
    fetch_misses: Misses,
    loads: u64,
    load_misses: Misses,
    stores: u64,
    store_misses: Misses,
}

/// One thread's caches and counts.
pub(crate) struct ThreadProfile {
    caches: Hierarchy,
    counts: Vec<Counts>,
    descriptions: Descriptions,
}

/// The profile of the thread on each virtual CPU, where callbacks find it with one load.
static CURRENT: [AtomicPtr<ThreadProfile>; MAX_THREADS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_THREADS];

/// Says which profile belongs to a virtual CPU; `None` when its thread has ended.
pub(crate) fn set_current(vcpu: u32, profile: Option<&mut ThreadProfile>) {
    if let Some(slot) = CURRENT.get(vcpu as usize) {
        slot.store(profile.map_or(std::ptr::null_mut(), std::ptr::from_mut), Ordering::Release);
    }
}

/// The profile of the thread on a virtual CPU.
///
/// # Safety
/// Only for callbacks of that virtual CPU, and only one reference at a time.
#[inline]
pub(crate) unsafe fn current<'a>(vcpu: u32) -> Option<&'a mut ThreadProfile> {
    let slot = CURRENT.get(vcpu as usize)?;
    // SAFETY: null, or the box that the thread's state holds: it is taken out with `set_current` before the box is
    // dropped. Callbacks of one virtual CPU run on one host thread, one after the other, so the reference is unique.
    unsafe { slot.load(Ordering::Relaxed).as_mut() }
}

/// What threads share: the runs, and the sums of threads that ended.
pub(crate) struct Profile {
    specs: Vec<CacheSpec>,
    line_bytes: u64,
    runs: Mutex<Vec<Run>>,
    sums: Mutex<Vec<Counts>>,
}

impl Profile {
    pub(crate) fn new(specs: &[String]) -> Result<Self, String> {
        let specs = specs.iter().map(|text| text.parse().map_err(|error| format!("{text}: {error}")));
        let specs: Vec<CacheSpec> = specs.collect::<Result<_, String>>()?;
        let line_bytes = specs.iter().map(|spec| spec.line().bytes()).min().unwrap_or(64);
        Ok(Profile { specs, line_bytes, runs: Mutex::default(), sums: Mutex::default() })
    }

    /// Empty caches and counts for a thread.
    pub(crate) fn thread(&self, api: Api) -> Box<ThreadProfile> {
        let (caches, descriptions) = (Hierarchy::new(&self.specs), Descriptions::new(api));
        Box::new(ThreadProfile { caches, counts: Vec::new(), descriptions })
    }

    /// Cuts a block, given the addresses and sizes of its instructions, into runs on one line.
    pub(crate) fn cut(&self, insns: &[(u64, u64)]) -> Vec<Run> {
        let mut known = lock(&self.runs);
        let mut runs: Vec<Run> = Vec::new();
        for (pc, size) in insns {
            match runs.last_mut().filter(|run| run.pc / self.line_bytes == pc / self.line_bytes) {
                Some(run) => {
                    run.size_bytes += *size as u32;
                    run.instructions += 1;
                }
                None => {
                    let id = known.len() + runs.len();
                    runs.push(Run { id, pc: *pc, size_bytes: *size as u32, instructions: 1 });
                }
            }
        }
        known.extend(&runs);
        runs
    }

    /// Takes over what a thread counted; gives the instructions it executed.
    pub(crate) fn take(&self, thread: Option<Box<ThreadProfile>>) -> u64 {
        let Some(thread) = thread else { return 0 };
        let runs = lock(&self.runs);
        let executed =
            runs.iter().zip(&thread.counts).map(|(run, counts)| run.instructions * counts.executions);
        let mut sums = lock(&self.sums);
        if sums.len() < thread.counts.len() {
            sums.resize(thread.counts.len(), Counts::default());
        }
        for (sum, own) in sums.iter_mut().zip(&thread.counts) {
            sum.executions += own.executions;
            sum.loads += own.loads;
            sum.stores += own.stores;
            for (sum, own) in [
                (&mut sum.fetch_misses, own.fetch_misses),
                (&mut sum.load_misses, own.load_misses),
                (&mut sum.store_misses, own.store_misses),
            ] {
                sum.l1 += own.l1;
                sum.l2 += own.l2;
            }
        }
        executed.sum()
    }

    /// Packs all counts, handing full blocks over.
    pub(crate) fn write(&self, encoder: &mut Encoder, mut flush: impl FnMut(&mut Encoder)) {
        let (runs, sums) = (lock(&self.runs), lock(&self.sums));
        for (run, counts) in runs.iter().zip(sums.iter()).filter(|(_, counts)| counts.executions > 0) {
            encoder.profile(&ProfileRun {
                pc: run.pc,
                size_bytes: run.size_bytes,
                executions: counts.executions,
                instructions: counts.executions * run.instructions,
                fetch_misses: counts.fetch_misses,
                loads: counts.loads,
                load_misses: counts.load_misses,
                stores: counts.stores,
                store_misses: counts.store_misses,
            });
            if encoder.packed_bytes() >= BLOCK_BYTES {
                flush(encoder);
            }
        }
    }
}

impl ThreadProfile {
    /// Executes a run.
    #[inline]
    pub(crate) fn fetch(&mut self, run: &Run) {
        let missed = self.caches.fetch(run.pc, u64::from(run.size_bytes));
        let counts = self.counts_of(run.id);
        counts.executions += 1;
        add(&mut counts.fetch_misses, missed);
    }

    /// Accesses data from a run, as the emulator's `info` describes it.
    #[inline]
    pub(crate) fn access(&mut self, run: usize, address: u64, info: u32) {
        let Description { size_bytes, is_store, .. } = self.descriptions.of(info);
        let missed = self.caches.data(address, u64::from(size_bytes));
        let counts = self.counts_of(run);
        match is_store {
            true => {
                counts.stores += 1;
                add(&mut counts.store_misses, missed);
            }
            false => {
                counts.loads += 1;
                add(&mut counts.load_misses, missed);
            }
        }
    }

    #[inline]
    fn counts_of(&mut self, run: usize) -> &mut Counts {
        if run >= self.counts.len() {
            self.counts.resize((run + 1).next_power_of_two(), Counts::default());
        }
        &mut self.counts[run]
    }
}

#[inline]
fn add(misses: &mut Misses, missed: Missed) {
    misses.l1 += u64::from(missed != Missed::Nothing);
    misses.l2 += u64::from(missed == Missed::L2);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
