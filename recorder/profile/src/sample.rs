//! Windows of the run that are kept whole: batches without omitted events.
//!
//! Windows begin evenly spread over the batches of all threads, and one with each thread: otherwise the effect of a
//! short thread on the lines of others would be missed. When they exceed their memory, every second one is dropped, and
//! from then on half as many begin. So the kept windows are spread over the whole run.

use crate::code::Code;
use crate::events::{Event, events};
use crate::lock::lock;
use crate::part::Part;
use lineup_recording::native::window;
use lineup_recording::{HeapObject, Resident, WindowStep};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Batches of a window. A power of two.
const BATCHES: u64 = 4;

/// The data of a window.
#[derive(Default)]
pub(crate) struct WindowData {
    pub(crate) thread: u32,
    pub(crate) resident: Option<Resident>,
    pub(crate) batches: Vec<KeptBatch>,
}

/// A batch that is kept.
pub(crate) struct KeptBatch {
    words: Box<[u64]>,
    owners: Owners,
}

/// A run of this many addresses in one object, or in objects of one site that have no number; 0 stands for none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct OwnerRun {
    site: u32,
    object: u32,
    count: u32,
}

/// The sites that allocated the objects at a batch's addresses, and small objects; empty when these are not known.
#[derive(Default)]
pub(crate) struct Owners {
    /// The objects, whose numbers are one more than their positions.
    pub(crate) objects: Vec<HeapObject>,
    runs: Vec<OwnerRun>,
    /// Runs of addresses of one site.
    site_runs: usize,
}

impl Owners {
    /// Takes in the next address.
    pub(crate) fn see(&mut self, site: u32, object: u32) {
        self.site_runs += usize::from(self.runs.last().is_none_or(|run| run.site != site));
        match self.runs.last_mut().filter(|run| (run.site, run.object) == (site, object)) {
            Some(run) => run.count += 1,
            None => self.runs.push(OwnerRun { site, object, count: 1 }),
        }
    }
}

/// A part of a window, with its steps.
pub(crate) struct WindowPart {
    pub(crate) number: u64,
    pub(crate) thread: u32,
    pub(crate) resident: Option<Resident>,
    pub(crate) steps: Vec<WindowStep>,
    /// Of each access among the steps; empty when they are not known.
    pub(crate) sites: Vec<u32>,
    pub(crate) objects: Vec<HeapObject>,
    /// Of each access, one more than the number of its object.
    pub(crate) uses: Vec<u32>,
}

impl WindowData {
    fn bytes(&self) -> u64 {
        let resident =
            self.resident.as_ref().map_or(0, |held| held.l1i.len() + held.l1d.len() + held.l2.len());
        // A run of one site counts as a word. Objects do not count: they are at most as many as addresses.
        let words =
            self.batches.iter().map(|batch| batch.words.len() + batch.owners.site_runs).sum::<usize>();
        8 * (words + resident) as u64
    }
}

/// Chooses the windows, and holds them. It is locked only in the recorded process: a forked one has no thread that
/// would unlock it.
pub(crate) struct Sampler {
    most_bytes: u64,
    /// Batches begun so far, of all threads.
    batches: AtomicU64,
    /// Threads that were given a number so far.
    threads: AtomicU32,
    /// The number of times that every second window was dropped.
    halvings: AtomicU64,
    windows: Mutex<BTreeMap<u64, WindowData>>,
}

impl Sampler {
    /// Without any window.
    pub(crate) fn new(most_bytes: u64) -> Sampler {
        Sampler {
            most_bytes,
            batches: AtomicU64::new(0),
            threads: AtomicU32::new(0),
            halvings: AtomicU64::new(0),
            windows: Mutex::default(),
        }
    }

    /// A thread begins a batch: returns the part of a window that it is, if any. `under_way` has the window of its last
    /// batch, and the number of that window's batches to come.
    pub(crate) fn begin(&self, under_way: &mut Option<(u64, u64)>) -> Option<Part> {
        self.begin_at(self.batches.fetch_add(1, Ordering::Relaxed), under_way)
    }

    fn begin_at(&self, number: u64, under_way: &mut Option<(u64, u64)>) -> Option<Part> {
        if let Some((window, left)) = under_way.take().filter(|(_, left)| *left > 0) {
            *under_way = Some((window, left - 1));
            return Some(Part::Later(window));
        }
        let begins = is_chosen(number, self.halvings.load(Ordering::Relaxed));
        begins.then(|| {
            *under_way = Some((number, BATCHES - 1));
            Part::First(number)
        })
    }

    /// A thread begins its first batch. The batch begins a window unless that would be dropped: the batches up to the
    /// next possible beginning are left out of the count.
    pub(crate) fn begin_thread(&self, under_way: &mut Option<(u64, u64)>) -> Option<Part> {
        let after = |batches: u64| Some(batches.next_multiple_of(BATCHES) + 1);
        let taken = self.batches.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after);
        self.begin_at(taken.unwrap_or_default().next_multiple_of(BATCHES), under_way)
    }

    /// The number of the window that is a stretch of the run, where stretches are counted.
    pub(crate) fn number_of(stretch: u64) -> u64 {
        stretch * BATCHES
    }

    /// The number of times that every second window was dropped.
    pub(crate) fn halvings(&self) -> u64 {
        self.halvings.load(Ordering::Relaxed)
    }

    /// Keeps a batch of a window, with the sites of its addresses where they are known.
    fn keep(&self, thread: u32, part: Part, resident: Option<Resident>, words: &[u64], owners: Owners) {
        let (Part::First(number) | Part::Later(number)) = part;
        let mut windows = lock(&self.windows);
        if !is_chosen(number, self.halvings.load(Ordering::Relaxed)) {
            // Dropped while it was under way.
            return;
        }
        let window = windows.entry(number).or_default();
        window.thread = thread;
        window.batches.push(KeptBatch { words: words.into(), owners });
        window.resident = resident.or(window.resident.take());
        while windows.len() > 1 && windows.values().map(WindowData::bytes).sum::<u64>() > self.most_bytes {
            let halvings = 1 + self.halvings.load(Ordering::Relaxed);
            self.halvings.store(halvings, Ordering::Relaxed);
            windows.retain(|number, _| is_chosen(*number, halvings));
        }
    }

    /// Passes on the parts of every window, in order. `pcs` are the addresses of instructions, by half the number of
    /// their counters.
    pub(crate) fn each<E>(
        &self,
        code: &Code,
        pcs: &[u64],
        mut pass_on: impl FnMut(WindowPart) -> Result<(), E>,
    ) -> Result<(), E> {
        for (number, window) in lock(&self.windows).iter_mut() {
            for batch in &window.batches {
                let (mut steps, mut sites, mut uses) = (Vec::new(), Vec::new(), Vec::new());
                let each = |run: &OwnerRun| std::iter::repeat_n((run.site, run.object), run.count as usize);
                let mut told = batch.owners.runs.iter().flat_map(each);
                events(&batch.words, code, |event| {
                    let is_of_data = event.is_of_data();
                    let accesses = add_steps(&mut steps, code, pcs, event);
                    if let Some((site, object)) = is_of_data.then(|| told.next()).flatten() {
                        sites.extend(std::iter::repeat_n(site, accesses));
                        uses.extend(std::iter::repeat_n(object, accesses));
                    }
                });
                pass_on(WindowPart {
                    number: *number,
                    thread: window.thread,
                    resident: window.resident.take(),
                    steps,
                    sites,
                    objects: batch.owners.objects.clone(),
                    uses,
                })?;
            }
        }
        Ok(())
    }
}

/// A thread's access to the windows.
#[derive(Clone)]
pub(crate) struct OfThread {
    sampler: Arc<Sampler>,
    thread: u32,
}

impl OfThread {
    /// The keeper of a thread that has no number yet.
    pub(crate) fn new(sampler: &Arc<Sampler>) -> OfThread {
        OfThread { sampler: Arc::clone(sampler), thread: sampler.threads.fetch_add(1, Ordering::Relaxed) }
    }

    /// As [`Sampler::begin`].
    pub(crate) fn begin(&self, under_way: &mut Option<(u64, u64)>) -> Option<Part> {
        self.sampler.begin(under_way)
    }

    /// As [`Sampler::begin_thread`].
    pub(crate) fn begin_thread(&self, under_way: &mut Option<(u64, u64)>) -> Option<Part> {
        self.sampler.begin_thread(under_way)
    }

    /// As [`Sampler::halvings`].
    pub(crate) fn halvings(&self) -> u64 {
        self.sampler.halvings()
    }

    /// Keeps a batch of a window, with the sites of its addresses where they are known.
    pub(crate) fn keep(&self, part: Part, resident: Option<Resident>, words: &[u64], owners: Owners) {
        self.sampler.keep(self.thread, part, resident, words, owners);
    }
}

/// Whether a window begins with the batch of this number.
fn is_chosen(number: u64, halvings: u64) -> bool {
    number.is_multiple_of(BATCHES) && window::is_chosen(number / BATCHES, halvings)
}

/// Adds an event's steps; how many of them are accesses.
fn add_steps(steps: &mut Vec<WindowStep>, code: &Code, pcs: &[u64], event: Event<'_>) -> usize {
    let access = |counter: u32, address: u64, size_shift: u8| WindowStep::Access {
        pc: pcs.get(counter as usize / 2).copied().unwrap_or_default(),
        address,
        size_shift,
        is_store: counter & 1 == 1,
    };
    match event {
        Event::Block { run } => {
            fetch(steps, code, run);
            0
        }
        Event::Context { .. } => 0,
        Event::Access { counter, size_shift, address } => {
            steps.push(access(counter, address, size_shift));
            1
        }
        Event::Lone { chain, with_code, size_shift, address } => {
            let chain = &code.chains[chain as usize];
            chain.begins.filter(|_| with_code).into_iter().for_each(|run| fetch(steps, code, run));
            let links = code.links_of(chain);
            steps.extend(links.iter().map(|link| access(link.counter, address, size_shift)));
            links.len()
        }
        Event::Chain { chain, with_code, addresses } => {
            let chain = &code.chains[chain as usize];
            chain.begins.filter(|_| with_code).into_iter().for_each(|run| fetch(steps, code, run));
            let links = if addresses.is_empty() { &[] } else { code.links_of(chain) };
            steps.extend(
                links.iter().map(|link| access(link.counter, link.address(addresses), link.size_shift)),
            );
            links.len()
        }
    }
}

fn fetch(steps: &mut Vec<WindowStep>, code: &Code, first: u32) {
    for run in &code.runs[first as usize..] {
        steps.push(WindowStep::Fetch { pc: run.pc, size_bytes: run.size_bytes });
        if run.ends_block {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_thinned_out_evenly_and_stay_within_their_memory() {
        let sampler = Sampler::new(40 * 8 * BATCHES);
        let mut under_way = None;
        for batch in 0..1000 {
            if let Some(part) = sampler.begin(&mut under_way) {
                let resident = matches!(part, Part::First(_)).then(Resident::default);
                sampler.keep(0, part, resident, &[batch; 10], Owners::default());
            }
        }
        let windows = lock(&sampler.windows);
        // One of each 64 places that windows could have.
        let groups: Vec<u64> = windows.keys().map(|number| number / BATCHES / 64).collect();
        assert_eq!(groups, [0, 1, 2, 3]);
        let distances = windows.keys().zip(windows.keys().skip(1)).map(|(one, next)| next - one);
        assert!(distances.collect::<std::collections::BTreeSet<u64>>().len() > 1, "without a period");
        for (number, window) in windows.iter() {
            let begun: Vec<u64> = window.batches.iter().map(|batch| batch.words[0]).collect();
            assert_eq!(begun, (*number..number + BATCHES).collect::<Vec<_>>());
            assert!(window.resident.is_some());
        }
    }

    #[test]
    fn threads_have_windows_of_their_own() {
        let sampler = Sampler::new(u64::MAX);
        let mut threads = [None, None, None];
        let parts: Vec<_> = (0..12).map(|turn| sampler.begin(&mut threads[turn % 3])).collect();
        use Part::{First, Later};
        // Batches 0, 4 and 8 begin windows; each continues with the same thread's next batches.
        let expected = [
            Some(First(0)),
            None,
            None,
            Some(Later(0)),
            Some(First(4)),
            None,
            Some(Later(0)),
            Some(Later(4)),
            Some(First(8)),
            Some(Later(0)),
            Some(Later(4)),
            Some(Later(8)),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn a_thread_that_begins_late_and_does_little_has_a_window() {
        use Part::{First, Later};
        let sampler = Sampler::new(u64::MAX);
        let (mut first, mut short) = (None, None);
        let parts: Vec<_> = (0..5).map(|_| sampler.begin(&mut first)).collect();
        assert_eq!(parts.last(), Some(&Some(First(4))));
        assert_eq!(sampler.begin_thread(&mut short), Some(First(8)));
        assert_eq!([sampler.begin(&mut first), sampler.begin(&mut short)], [Some(Later(4)), Some(Later(8))]);
    }
}
