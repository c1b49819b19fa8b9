//! The cache model of one thread, fed by batches of events.
//!
//! The two first levels do not know of each other, so each goes through its own events in a loop of its own: short loops
//! whose branches are easily foretold. Only the misses of both are put in their common order, for the second level.

use super::Run;
use super::events::{Batch, Fetched};
use lineup_cache::{Cache, CacheLevel, CacheSpec};
use lineup_recording::Misses;

/// What one thread, or several, counted. Each list goes as far as it was needed.
#[derive(Default)]
pub(super) struct Counts {
    /// Executions of blocks, by their first runs.
    pub(super) executions: Vec<u64>,
    /// Misses of fetches, by run.
    pub(super) fetch_misses: Vec<Misses>,
    /// Loads and stores of each instruction, in turn; see [`Run::counters`].
    pub(super) accesses: Vec<u64>,
    /// Misses of the same loads and stores.
    pub(super) access_misses: Vec<Misses>,
}

/// One thread's caches and counts.
pub(super) struct Model {
    l1i: Option<Cache>,
    l1d: Option<Cache>,
    l2: Option<Cache>,
    counts: Counts,
    /// All runs that batches so far could name.
    runs: Vec<Run>,
    /// Runs of the batch whose fetch missed, with the number of accesses before.
    missed_runs: Vec<(u32, u32)>,
    /// Accesses of the batch that missed, by number.
    missed_accesses: Vec<u32>,
}

impl Model {
    /// Empty caches. A level without specification always hits; the last specification of a level counts.
    pub(super) fn new(specs: &[CacheSpec]) -> Box<Model> {
        let cache = |level| specs.iter().rfind(|spec| spec.level() == level).map(Cache::new);
        Box::new(Model {
            l1i: cache(CacheLevel::L1i),
            l1d: cache(CacheLevel::L1d),
            l2: cache(CacheLevel::L2),
            counts: Counts::default(),
            runs: Vec::new(),
            missed_runs: Vec::new(),
            missed_accesses: Vec::new(),
        })
    }

    /// Everything counted.
    pub(super) fn into_counts(self: Box<Self>) -> Counts {
        self.counts
    }

    /// Takes in a batch.
    pub(super) fn simulate(&mut self, batch: &Batch) {
        self.runs.extend(&batch.new_runs);
        self.missed_runs.clear();
        if let Some(l1i) = &mut self.l1i {
            fetch(l1i, &self.runs, batch.fetched(), &mut self.missed_runs);
        }
        self.missed_accesses.clear();
        if let Some(l1d) = &mut self.l1d {
            access(l1d, batch, &mut self.missed_accesses);
        }
        self.miss(batch);
    }

    /// Counts the misses of both first levels in their order, and asks the second.
    fn miss(&mut self, batch: &Batch) {
        let Model { l2, counts, runs, missed_runs, missed_accesses, .. } = self;
        let code = |run: u32| (runs[run as usize].pc, u64::from(runs[run as usize].size_bytes));
        let mut missed_runs = missed_runs.iter().peekable();
        for number in missed_accesses {
            while let Some((_, run)) = missed_runs.next_if(|(before, _)| before <= number) {
                miss(l2, &mut counts.fetch_misses, *run, code(*run));
            }
            let at = *number as usize;
            miss(l2, &mut counts.access_misses, batch.counters()[at], batch.unpack(batch.places()[at]));
        }
        missed_runs.for_each(|(_, run)| miss(l2, &mut counts.fetch_misses, *run, code(*run)));
    }
}

/// Fetches runs; notes those that missed.
fn fetch(l1i: &mut Cache, runs: &[Run], fetched: &[Fetched], missed: &mut Vec<(u32, u32)>) {
    for Fetched { run: number, accesses_before } in fetched {
        let run = &runs[*number as usize];
        if !l1i.access(run.pc, u64::from(run.size_bytes)) {
            missed.push((*accesses_before, *number));
        }
    }
}

/// Accesses data; notes the accesses that missed.
fn access(l1d: &mut Cache, batch: &Batch, missed: &mut Vec<u32>) {
    for (number, place) in (0..).zip(batch.places()) {
        let (address, size_bytes) = batch.unpack(*place);
        if !l1d.access(address, size_bytes) {
            missed.push(number);
        }
    }
}

/// Counts what missed the first level, and the second where there is one.
#[inline]
fn miss(l2: &mut Option<Cache>, misses: &mut Vec<Misses>, number: u32, (address, size_bytes): (u64, u64)) {
    let misses = counter(misses, number);
    misses.l1 += 1;
    if let Some(l2) = l2 {
        misses.l2 += u64::from(!l2.access(address, size_bytes));
    }
}

/// The counter with this number; the list grows to it.
#[inline]
fn counter<T: Clone + Default>(counters: &mut Vec<T>, number: u32) -> &mut T {
    let number = number as usize;
    if number >= counters.len() {
        grow(counters, number);
    }
    &mut counters[number]
}

#[cold]
#[inline(never)]
fn grow<T: Clone + Default>(counters: &mut Vec<T>, number: usize) {
    counters.resize((number + 1).next_power_of_two(), T::default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::Description;
    use crate::profile::front::Front;
    use lineup_cache::{Hierarchy, Missed};

    const LOAD: Description = Description::told(0, 3, false);
    const STORE: Description = Description::told(0, 3, true);

    /// Blocks of two runs each, the first of which reaches into the line of the second.
    fn runs() -> Vec<Run> {
        let run = |number: u32| Run {
            pc: 0x40_0000 + u64::from(number) * 60,
            size_bytes: 60,
            instructions: 2,
            counters: number * 4,
            ends_block: number % 2 == 1,
        };
        (0..64).map(run).collect()
    }

    fn add(misses: &mut Misses, missed: Missed) {
        misses.l1 += u64::from(missed != Missed::Nothing);
        misses.l2 += u64::from(missed == Missed::L2);
    }

    /// Loops of their own for code and data, batch after batch, against one model that sees everything in its order.
    #[test]
    fn batches_are_counted_as_if_event_after_event_went_through_the_caches() {
        let specs = ["l1i=1K,2,64", "l1d=1K,4,32", "l2=4K,2,64"].map(|text| text.parse().unwrap());
        let (mut front, mut model) = (Front::new(&specs), Model::new(&specs));
        let mut whole = Hierarchy::new(&specs);
        let (runs, mut fetched) = (runs(), vec![Misses::default(); 64]);
        let (mut loaded, mut stored) = (Misses::default(), Misses::default());
        let mut random = 1u64;
        for number in 0..50 {
            if number == 0 {
                front.learn(&runs);
            }
            for _ in 0..1000 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let address = 0x40_0000 + (random >> 40) % 8192;
                match random >> 33 & 3 {
                    0 => {
                        let first = (random >> 35 & 31) as u32 * 2;
                        assert!(front.enter_again(first) || front.enter(first));
                        for (run, misses) in runs.iter().zip(&mut fetched).skip(first as usize).take(2) {
                            add(misses, whole.fetch(run.pc, 60));
                        }
                    }
                    1 => {
                        assert!(front.access_again(2, address, &STORE) || front.access(2, address, &STORE));
                        add(&mut stored, whole.data(address, 8));
                    }
                    _ => {
                        assert!(front.access_again(2, address, &LOAD) || front.access(2, address, &LOAD));
                        add(&mut loaded, whole.data(address, 8));
                    }
                }
            }
            model.simulate(&front.batch);
            front.batch.clear();
        }
        let counts = front.complete(model.into_counts());
        let differing = fetched.iter().filter(|misses| misses.l1 > misses.l2).count();
        assert!(loaded.l2 > 1000 && stored.l2 > 1000 && differing > 50, "{fetched:?}");
        assert_eq!(counts.fetch_misses, fetched);
        assert_eq!(counts.access_misses[2..4], [loaded, stored]);
        assert_eq!(counts.executions.iter().sum::<u64>() + counts.accesses.iter().sum::<u64>(), 50_000);
    }
}
