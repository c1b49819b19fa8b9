//! Whole-program mode: a cache model that sees everything, and counts per run of instructions.
//!
//! Callbacks only note what happened, in batches. Full batches go to the model, on a thread of its own where the host
//! has processors to spare: a guest thread's model depends on that thread alone, so the counts are the same.

mod events;
mod feed;
mod front;
mod model;
mod worker;

use crate::ffi::Api;
use crate::output::BLOCK_BYTES;
use crate::recorder::MAX_THREADS;
pub(crate) use feed::ThreadProfile;
use lineup_cache::CacheSpec;
use lineup_recording::{Encoder, Misses, ProfileRun};
use model::Counts;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The part of a block that lies on one line. They are numbered in the order of their making, those of a block in its
/// order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    pc: u64,
    size_bytes: u32,
    instructions: u32,
    /// Where the counters of its accesses begin: two for each instruction, its loads and its stores.
    counters: u32,
    ends_block: bool,
}

/// All runs.
#[derive(Default)]
struct Runs {
    all: Mutex<Vec<Run>>,
    /// Their number, to be seen without the lock.
    count: AtomicUsize,
}

impl Runs {
    /// Those made after the first `count`.
    fn after(&self, count: usize) -> Vec<Run> {
        match self.count.load(Ordering::Acquire) > count {
            true => lock(&self.all)[count..].to_vec(),
            false => Vec::new(),
        }
    }
}

/// What callbacks need of a block.
pub(crate) struct Block {
    /// Its first run.
    pub(crate) run: u32,
    /// The first counter of its first instruction; the next one's is two further.
    pub(crate) counters: u32,
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
    runs: Arc<Runs>,
    sums: Mutex<Counts>,
    /// Host processors that guest threads leave to models; each thread that may have its model beside it takes one.
    spare_processors: AtomicUsize,
}

impl Profile {
    pub(crate) fn new(specs: &[String]) -> Result<Self, String> {
        let specs = specs.iter().map(|text| text.parse().map_err(|error| format!("{text}: {error}")));
        let specs: Vec<CacheSpec> = specs.collect::<Result<_, String>>()?;
        let line_bytes = specs.iter().map(|spec| spec.line().bytes()).min().unwrap_or(64);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Profile {
            specs,
            line_bytes,
            runs: Arc::default(),
            sums: Mutex::default(),
            spare_processors: AtomicUsize::new(processors / 2),
        })
    }

    /// Empty caches and counts for a thread.
    pub(crate) fn thread(&self, api: Api) -> Box<ThreadProfile> {
        let take = |spare: usize| spare.checked_sub(1);
        let may_run_beside =
            self.spare_processors.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        ThreadProfile::new(&self.specs, Arc::clone(&self.runs), api, may_run_beside)
    }

    /// Cuts a block, given the addresses and sizes of its instructions, into runs on one line.
    pub(crate) fn block(&self, insns: &[(u64, u64)]) -> Block {
        let mut runs = lock(&self.runs.all);
        let counters = runs.last().map_or(0, Run::counters_end);
        let block = Block { run: runs.len() as u32, counters };
        for (counters, (pc, size)) in (counters..).step_by(2).zip(insns) {
            let line = pc / self.line_bytes;
            match runs.last_mut().filter(|run| !run.ends_block && run.pc / self.line_bytes == line) {
                Some(run) => {
                    run.size_bytes += *size as u32;
                    run.instructions += 1;
                }
                None => {
                    let size_bytes = *size as u32;
                    runs.push(Run { pc: *pc, size_bytes, instructions: 1, counters, ends_block: false });
                }
            }
        }
        runs.last_mut().into_iter().for_each(|run| run.ends_block = true);
        self.runs.count.store(runs.len(), Ordering::Release);
        block
    }

    /// Takes over what a thread counted; gives the instructions it executed.
    pub(crate) fn take(&self, thread: Option<Box<ThreadProfile>>) -> u64 {
        let Some(thread) = thread else { return 0 };
        let may_run_beside = thread.may_run_beside();
        let Some(counts) = thread.finish() else { return 0 };
        self.spare_processors.fetch_add(usize::from(may_run_beside), Ordering::Relaxed);
        let runs = lock(&self.runs.all);
        let executed = counts.executed(&runs).map(|(_, run, times)| u64::from(run.instructions) * times);
        let executed = executed.sum();
        lock(&self.sums).add(&counts);
        executed
    }

    /// Packs all counts, handing full blocks over.
    pub(crate) fn write(&self, encoder: &mut Encoder, mut flush: impl FnMut(&mut Encoder)) {
        let (runs, sums) = (lock(&self.runs.all), lock(&self.sums));
        for (number, run, executions) in sums.executed(&runs) {
            encoder.profile(&sums.of_run(number, run, executions));
            if encoder.packed_bytes() >= BLOCK_BYTES {
                flush(encoder);
            }
        }
    }
}

impl Run {
    fn counters_end(&self) -> u32 {
        self.counters + 2 * self.instructions
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
