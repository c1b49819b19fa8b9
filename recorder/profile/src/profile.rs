//! The threads' shared part of a whole program's counts.

use crate::chains::Chains;
use crate::code::{Run, SharedCode};
use crate::feed::ThreadProfile;
use crate::handle::Handle;
use crate::lock::lock;
use crate::model::Counts;
use crate::sample::{OfThread, Sampler, WindowPart};
use crate::second_level::SecondLevel;
use lineup_cache::{CacheLevel, CacheSpec, MostRecent, SpecError};
use lineup_recording::{
    Context, ContextKind, Encoder, Misses, PageCounts, Placement, ProfileInstruction, ProfileRun, Window,
    WindowObjects,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The size at which counts are handed over, in bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// The data of a block that counting needs.
pub struct Block {
    /// Its first run.
    pub run: u32,
    /// The first counter of its first instruction; the next one's is two further.
    pub counters: u32,
    /// Its chains.
    pub handles: Vec<Handle>,
}

/// The threads' shared state: the runs, and the sums of threads that ended.
pub struct Profile {
    pub(crate) specs: Vec<CacheSpec>,
    /// The shortest line size.
    line_bytes: u64,
    /// The line size of fetches.
    code_line_bytes: u64,
    pub(crate) code: Arc<SharedCode>,
    sums: Mutex<Counts>,
    /// The contexts of a whole system.
    contexts: Mutex<Vec<Context>>,
    /// Chooses windows of the run, and keeps them.
    sampler: Option<Arc<Sampler>>,
    /// Host processors that guest threads leave to models; each thread that may have a separate model thread takes one.
    spare_processors: AtomicUsize,
}

impl Profile {
    /// Without any counts, with caches as specified. `spare_processors` may run models of threads in parallel to them:
    /// each thread takes one while it lives.
    ///
    /// # Errors
    /// When a specification cannot be read: which, and why.
    pub fn new(specs: &[String], spare_processors: usize) -> Result<Self, (String, SpecError)> {
        let specs = specs.iter().map(|text| text.parse().map_err(|error| (text.clone(), error)));
        let specs: Vec<CacheSpec> = specs.collect::<Result<_, _>>()?;
        let line_bytes = specs.iter().map(|spec| spec.line().bytes()).min().unwrap_or(64);
        let code_line_bytes = MostRecent::of_level(&specs, CacheLevel::L1i).line_bytes();
        Ok(Profile {
            specs,
            line_bytes,
            code_line_bytes,
            code: Arc::default(),
            sums: Mutex::default(),
            contexts: Mutex::default(),
            sampler: None,
            spare_processors: AtomicUsize::new(spare_processors),
        })
    }

    /// Counts each instruction too, and keeps windows of the run, in about this many bytes of memory at most; neither
    /// when that is 0.
    #[must_use]
    pub fn with_windows(self, most_bytes: u64) -> Self {
        Profile { sampler: (most_bytes > 0).then(|| Arc::new(Sampler::new(most_bytes))), ..self }
    }

    /// Empty caches and counts for a thread.
    pub fn thread(&self) -> Box<ThreadProfile> {
        let take = |spare: usize| spare.checked_sub(1);
        let may_run_beside =
            self.spare_processors.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        ThreadProfile::new(&self.specs, Arc::clone(&self.code), may_run_beside, self.window_keeper())
    }

    /// Takes in a block, given the addresses and sizes of its instructions and how its accesses are seen.
    pub fn block(&self, insns: &[(u64, u64)], chains: &Chains) -> Block {
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

    /// Empty second levels and counts for a thread whose first levels are modelled elsewhere.
    pub fn beyond_first_level(&self) -> SecondLevel {
        SecondLevel::new(&self.specs, Arc::clone(&self.code), self.window_keeper())
    }

    /// The keeper of another thread's windows.
    fn window_keeper(&self) -> Option<OfThread> {
        self.sampler.as_ref().map(OfThread::new)
    }

    /// Takes over such a thread's counts. Returns the number of its executed instructions.
    pub fn take_beyond(&self, thread: SecondLevel) -> u64 {
        self.add(&thread.into_counts())
    }

    /// Takes over a thread's counts. Returns the number of its executed instructions.
    pub fn take(&self, thread: Option<Box<ThreadProfile>>) -> u64 {
        let Some(thread) = thread else { return 0 };
        let may_run_beside = thread.may_run_beside();
        let Some(counts) = thread.finish() else { return 0 };
        self.spare_processors.fetch_add(usize::from(may_run_beside), Ordering::Relaxed);
        self.add(&counts)
    }

    /// As [`Profile::take`], for a CPU of a whole system, which worked for these contexts, by number, without number 0:
    /// each has the number of a task, and the kind of context.
    pub fn take_of_cpu(
        &self,
        cpu: u32,
        thread: Option<Box<ThreadProfile>>,
        numbers: &[(Option<u32>, ContextKind)],
    ) -> u64 {
        let Some(counts) = thread.and_then(ThreadProfile::finish) else { return 0 };
        let executed = self.add(&counts);
        let (code, mut all) = (self.code.whole(), lock(&self.contexts));
        let pcs = code.instructions();
        for ((task, kind), own) in numbers.iter().zip(&counts.contexts) {
            let fetches = own.code.iter().map(|(run, misses)| (code.runs[*run as usize].pc, misses));
            let accesses = own.data.iter().map(|(counter, misses)| (pcs[*counter as usize / 2], misses));
            let (code, data) = (by_place(fetches), by_place(accesses));
            all.push(Context { cpu, task: *task, kind: *kind, code, data });
        }
        executed
    }

    fn add(&self, counts: &Counts) -> u64 {
        let code = self.code.whole();
        let executed = counts.executed(&code.runs).map(|(_, run, times)| u64::from(run.instructions) * times);
        let executed = executed.sum();
        lock(&self.sums).add(counts);
        executed
    }

    /// Packs all counts, handing full blocks over.
    ///
    /// # Errors
    /// The error of `flush`.
    pub fn write<E>(
        &self,
        encoder: &mut Encoder,
        mut flush: impl FnMut(&mut Encoder) -> Result<(), E>,
    ) -> Result<(), E> {
        let (code, sums) = (self.code.whole(), lock(&self.sums));
        let mut flush_full = |encoder: &mut Encoder| match encoder.packed_bytes() >= BLOCK_BYTES {
            true => flush(encoder),
            false => Ok(()),
        };
        for (number, run, executions) in sums.executed(&code.runs) {
            encoder.profile(&sums.of_run(number, run, executions));
            flush_full(encoder)?;
        }
        for context in lock(&self.contexts).iter() {
            encoder.context(context);
            flush_full(encoder)?;
        }
        let Some(sampler) = &self.sampler else { return Ok(()) };
        let pcs = code.instructions();
        for counts in sums.instructions(&pcs).values() {
            encoder.instruction(counts);
            flush_full(encoder)?;
        }
        for (pc, counts) in sums.pages_by_pc(&pcs) {
            encoder.placement(&Placement::Pages { pc, counts });
            flush_full(encoder)?;
        }
        sampler.each(&code, &pcs, |part| {
            let WindowPart { number, thread, resident, steps, sites, objects, uses } = part;
            encoder.window(&Window { number, thread, resident, steps, sites });
            flush_full(encoder)?;
            if !uses.is_empty() {
                encoder.placement(&Placement::Objects(WindowObjects { window: number, objects, uses }));
                flush_full(encoder)?;
            }
            Ok(())
        })
    }
}

impl Counts {
    /// The executed runs, with their numbers and execution counts: each run has its block's count.
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

    /// The counts of every instruction that accessed data, by its address: one may be part of several blocks.
    fn instructions(&self, pcs: &[u64]) -> BTreeMap<u64, ProfileInstruction> {
        let mut all: BTreeMap<u64, ProfileInstruction> = BTreeMap::new();
        let missed = |counter: usize| self.access_misses.get(counter).copied().unwrap_or_default();
        let last = |counter: usize, known: u64| match self.last_missed.get(counter) {
            Some(last) if *last != 0 => *last,
            _ => known,
        };
        for (number, (pc, counts)) in pcs.iter().zip(self.accesses.chunks(2)).enumerate() {
            let (loads, stores) = (counts[0], counts.get(1).copied().unwrap_or_default());
            if loads == 0 && stores == 0 {
                continue;
            }
            let sum =
                all.entry(*pc).or_insert(ProfileInstruction { pc: *pc, ..ProfileInstruction::default() });
            sum.loads += loads;
            sum.stores += stores;
            sum.load_misses += missed(2 * number);
            sum.store_misses += missed(2 * number + 1);
            sum.load_address = last(2 * number, sum.load_address);
            sum.store_address = last(2 * number + 1, sum.store_address);
        }
        all
    }

    /// Pages that each instruction needed, by its address.
    fn pages_by_pc(&self, pcs: &[u64]) -> BTreeMap<u64, PageCounts> {
        let mut all: BTreeMap<u64, PageCounts> = BTreeMap::new();
        for (pc, counts) in pcs.iter().zip(self.pages.chunks(2)) {
            counts.iter().filter(|own| !own.is_empty()).for_each(|own| *all.entry(*pc).or_default() += *own);
        }
        all
    }

    fn add(&mut self, other: &Counts) {
        add_each(&mut self.executions, &other.executions, |sum, own| sum + own);
        add_each(&mut self.fetch_misses, &other.fetch_misses, plus);
        add_each(&mut self.accesses, &other.accesses, |sum, own| sum + own);
        add_each(&mut self.access_misses, &other.access_misses, plus);
        add_each(&mut self.pages, &other.pages, |mut sum, own| {
            sum += *own;
            sum
        });
        add_each(
            &mut self.last_missed,
            &other.last_missed,
            |known, last| if *last == 0 { known } else { *last },
        );
    }
}

/// Added up by address, in its order.
fn by_place<'m>(all: impl Iterator<Item = (u64, &'m Misses)>) -> Vec<(u64, Misses)> {
    let mut sums: BTreeMap<u64, Misses> = BTreeMap::new();
    for (pc, misses) in all {
        let sum = sums.entry(pc).or_default();
        *sum += *misses;
    }
    sums.into_iter().collect()
}

fn add_each<T: Copy + Default>(sums: &mut Vec<T>, own: &[T], add: impl Fn(T, &T) -> T) {
    if sums.len() < own.len() {
        sums.resize(own.len(), T::default());
    }
    sums.iter_mut().zip(own).for_each(|(sum, own)| *sum = add(*sum, own));
}

fn plus(mut one: Misses, other: &Misses) -> Misses {
    one += *other;
    one
}
