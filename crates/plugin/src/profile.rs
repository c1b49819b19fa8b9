//! Whole-program mode: a cache model that sees everything, and counts per run of instructions.
//!
//! Callbacks only note what happened, in batches. Full batches go to the model, on a thread of its own where the host
//! has processors to spare: a guest thread's model depends on that thread alone, so the counts are the same.

mod chains;
mod code;
mod events;
mod feed;
mod front;
mod handle;
mod model;
mod worker;

use crate::ffi::Api;
use crate::limits::{BLOCK_BYTES, MAX_THREADS};
use chains::Chains;
pub(crate) use chains::{Kind, chains};
use code::{Run, SharedCode};
pub(crate) use feed::ThreadProfile;
pub(crate) use handle::Handle;
use lineup_cache::{CacheLevel, CacheSpec};
use lineup_recording::{Encoder, Misses, ProfileRun};
use model::Counts;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What callbacks need of a block.
pub(crate) struct Block {
    /// Its first run.
    pub(crate) run: u32,
    /// The first counter of its first instruction; the next one's is two further.
    pub(crate) counters: u32,
    /// Its chains.
    pub(crate) handles: Vec<Handle>,
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
    /// Of the shortest lines.
    line_bytes: u64,
    /// Of the lines that code is fetched by.
    code_line_bytes: u64,
    code: Arc<SharedCode>,
    sums: Mutex<Counts>,
    /// Host processors that guest threads leave to models; each thread that may have its model beside it takes one.
    spare_processors: AtomicUsize,
}

impl Profile {
    pub(crate) fn new(specs: &[String]) -> Result<Self, String> {
        let specs = specs.iter().map(|text| text.parse().map_err(|error| format!("{text}: {error}")));
        let specs: Vec<CacheSpec> = specs.collect::<Result<_, String>>()?;
        let line_bytes = specs.iter().map(|spec| spec.line().bytes()).min().unwrap_or(64);
        let code_line_bytes = front::first_level(&specs, CacheLevel::L1i).line_bytes();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Profile {
            specs,
            line_bytes,
            code_line_bytes,
            code: Arc::default(),
            sums: Mutex::default(),
            spare_processors: AtomicUsize::new(processors / 2),
        })
    }

    /// Empty caches and counts for a thread.
    pub(crate) fn thread(&self, api: Api) -> Box<ThreadProfile> {
        let take = |spare: usize| spare.checked_sub(1);
        let may_run_beside =
            self.spare_processors.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        ThreadProfile::new(&self.specs, Arc::clone(&self.code), api, may_run_beside)
    }

    /// Takes in a block, given the addresses and sizes of its instructions and how its accesses are seen.
    pub(crate) fn block(&self, insns: &[(u64, u64)], chains: &Chains) -> Block {
        let numbers = self.code.add(self.line_bytes, insns, chains);
        let line_of = |pc: u64| pc / self.code_line_bytes;
        let ends = insns.first().zip(insns.last());
        let more_lines = ends.map_or(0, |((first, _), (last, size))| {
            line_of(last.saturating_add(size.max(&1) - 1)) - line_of(*first)
        });
        let handles = chains.all.iter().zip(numbers.chain..);
        let handles = handles.map(|(chain, number)| Handle::new(number, chain, more_lines)).collect();
        Block { run: numbers.run, counters: numbers.counters, handles }
    }

    /// Takes over what a thread counted; gives the instructions it executed.
    pub(crate) fn take(&self, thread: Option<Box<ThreadProfile>>) -> u64 {
        let Some(thread) = thread else { return 0 };
        let may_run_beside = thread.may_run_beside();
        let Some(counts) = thread.finish() else { return 0 };
        self.spare_processors.fetch_add(usize::from(may_run_beside), Ordering::Relaxed);
        let code = self.code.whole();
        let executed = counts.executed(&code.runs).map(|(_, run, times)| u64::from(run.instructions) * times);
        let executed = executed.sum();
        lock(&self.sums).add(&counts);
        executed
    }

    /// Packs all counts, handing full blocks over.
    pub(crate) fn write(&self, encoder: &mut Encoder, mut flush: impl FnMut(&mut Encoder)) {
        let (code, sums) = (self.code.whole(), lock(&self.sums));
        for (number, run, executions) in sums.executed(&code.runs) {
            encoder.profile(&sums.of_run(number, run, executions));
            if encoder.packed_bytes() >= BLOCK_BYTES {
                flush(encoder);
            }
        }
    }
}

impl Counts {
    /// The runs that were executed, with their numbers and how often: as often as their blocks.
    fn executed<'a>(&self, runs: &'a [Run]) -> impl Iterator<Item = (usize, &'a Run, u64)> {
        let blocks = runs.chunk_by(|run, _| !run.ends_block);
        let numbered = blocks.scan(0, |first, block| {
            let number = *first;
            *first += block.len();
            Some((number, block))
        });
        let executions = |number| self.executions.get(number).copied().unwrap_or_default();
        let executed = numbered.map(move |(first, block)| (first, block, executions(first)));
        executed
            .filter(|(_, _, times)| *times > 0)
            .flat_map(|(first, block, times)| (first..).zip(block).map(move |(at, run)| (at, run, times)))
    }

    fn of_run(&self, number: usize, run: &Run, executions: u64) -> ProfileRun {
        let counters = run.counters as usize..run.counters_end() as usize;
        // Loads and stores take turns.
        let loads = || counters.clone().step_by(2);
        let stores = || counters.clone().skip(1).step_by(2);
        ProfileRun {
            pc: run.pc,
            size_bytes: run.size_bytes,
            executions,
            instructions: executions * u64::from(run.instructions),
            fetch_misses: self.fetch_misses.get(number).copied().unwrap_or_default(),
            loads: loads().filter_map(|at| self.accesses.get(at)).sum(),
            load_misses: loads().filter_map(|at| self.access_misses.get(at)).fold(Misses::default(), plus),
            stores: stores().filter_map(|at| self.accesses.get(at)).sum(),
            store_misses: stores().filter_map(|at| self.access_misses.get(at)).fold(Misses::default(), plus),
        }
    }

    fn add(&mut self, other: &Counts) {
        add_each(&mut self.executions, &other.executions, |sum, own| sum + own);
        add_each(&mut self.fetch_misses, &other.fetch_misses, plus);
        add_each(&mut self.accesses, &other.accesses, |sum, own| sum + own);
        add_each(&mut self.access_misses, &other.access_misses, plus);
    }
}

fn add_each<T: Copy + Default>(sums: &mut Vec<T>, own: &[T], add: impl Fn(T, &T) -> T) {
    if sums.len() < own.len() {
        sums.resize(own.len(), T::default());
    }
    sums.iter_mut().zip(own).for_each(|(sum, own)| *sum = add(*sum, own));
}

fn plus(one: Misses, other: &Misses) -> Misses {
    Misses { l1: one.l1 + other.l1, l2: one.l2 + other.l2 }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
