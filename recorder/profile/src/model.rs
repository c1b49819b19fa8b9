//! The cache model of one thread, fed by batches of events.
//!
//! A batch goes through the first levels in one loop, and its misses go through the second level in another: the
//! branches of short loops are predicted better.

use crate::code::{Code, Run};
use crate::events::{Batch, Event};
use crate::part::Part;
use crate::sample::{OfThread, Owners};
use foldhash::HashMap;
use lineup_cache::{Cache, CacheLevel, CacheSpec};
use lineup_recording::{Misses, PageCounts, Resident};

/// The counts of one thread, or of several. Each list is as long as needed.
#[derive(Default)]
pub(crate) struct Counts {
    /// Executions of blocks, by their first runs.
    pub(crate) executions: Vec<u64>,
    /// Misses of fetches, by run.
    pub(crate) fetch_misses: Vec<Misses>,
    /// Loads and stores of each instruction, in turn; see [`Run::counters`].
    pub(crate) accesses: Vec<u64>,
    /// Misses of the same loads and stores.
    pub(crate) access_misses: Vec<Misses>,
    /// Address of the last miss of each; 0 where none missed.
    pub(crate) last_missed: Vec<u64>,
    /// Pages that the same loads and stores needed, where these are counted.
    pub(crate) pages: Vec<PageCounts>,
    /// Misses by context, without number 0.
    pub(crate) contexts: Vec<ContextMisses>,
}

/// The misses of one context.
#[derive(Clone, Default)]
pub(crate) struct ContextMisses {
    /// Misses of fetches, by run.
    pub(crate) code: HashMap<u32, Misses>,
    /// Misses of accesses, by counter.
    pub(crate) data: HashMap<u32, Misses>,
}

/// One thread's caches and counts.
pub(crate) struct Model {
    first: FirstLevel,
    l2: Option<Cache>,
    fetch_misses: Vec<Misses>,
    access_misses: Vec<Misses>,
    last_missed: Vec<u64>,
    /// Misses of chains of one access.
    lone_misses: Vec<Misses>,
    last_lone: Vec<u64>,
    /// The current context, and the misses in each.
    context: usize,
    contexts: Vec<ContextMisses>,
    /// All code that batches so far could name.
    code: Code,
    sampler: Option<OfThread>,
}

/// Both first levels. One that is not specified always hits.
struct FirstLevel {
    l1i: Option<Cache>,
    l1d: Option<Cache>,
    /// The misses of this batch, in order.
    missed: Vec<Missed>,
}

/// A fetch or an access that missed the first level.
struct Missed {
    address: u64,
    size_bytes: u32,
    number: u32,
    what: MissedKind,
}

/// The meaning of a [`Missed`]'s number.
enum MissedKind {
    Run,
    Counter,
    LoneChain,
    Context,
}

impl Model {
    /// Empty caches. The last specification of a level applies.
    pub(crate) fn new(specs: &[CacheSpec], sampler: Option<OfThread>) -> Box<Model> {
        let cache = |level| specs.iter().rfind(|spec| spec.level() == level).map(Cache::new);
        let (l1i, l1d) = (cache(CacheLevel::L1i), cache(CacheLevel::L1d));
        Box::new(Model {
            first: FirstLevel { l1i, l1d, missed: Vec::new() },
            l2: cache(CacheLevel::L2),
            fetch_misses: Vec::new(),
            access_misses: Vec::new(),
            last_missed: Vec::new(),
            lone_misses: Vec::new(),
            last_lone: Vec::new(),
            context: 0,
            contexts: Vec::new(),
            code: Code::default(),
            sampler,
        })
    }

    /// Everything counted.
    pub(crate) fn into_counts(self: Box<Self>) -> Counts {
        let Model {
            fetch_misses,
            mut access_misses,
            mut last_missed,
            lone_misses,
            last_lone,
            code,
            contexts,
            ..
        } = *self;
        for ((chain, misses), address) in code.chains.iter().zip(&lone_misses).zip(&last_lone) {
            for link in code.links_of(chain) {
                let sum = &mut access_misses[link.counter as usize];
                *sum += *misses;
                let last = &mut last_missed[link.counter as usize];
                *last = if *address == 0 { *last } else { *address };
            }
        }
        Counts { fetch_misses, access_misses, last_missed, contexts, ..Counts::default() }
    }

    /// Takes in a batch.
    pub(crate) fn simulate(&mut self, batch: &Batch) {
        self.code.append(&batch.new_code);
        if let (Some(sampler), Some(part)) = (&self.sampler, batch.window) {
            let resident = matches!(part, Part::First(_)).then(|| self.resident());
            sampler.keep(part, resident, batch.words(), Owners::default());
        }
        let Model {
            first,
            l2,
            fetch_misses,
            access_misses,
            last_missed,
            lone_misses,
            last_lone,
            code,
            context,
            contexts,
            ..
        } = self;
        fetch_misses.resize(code.runs.len(), Misses::default());
        access_misses.resize(code.runs.last().map_or(0, Run::counters_end) as usize, Misses::default());
        last_missed.resize(access_misses.len(), 0);
        lone_misses.resize(code.chains.len(), Misses::default());
        last_lone.resize(code.chains.len(), 0);
        batch.for_each(code, |event| first.take(code, event));
        for missed in first.missed.drain(..) {
            let number = missed.number as usize;
            let of_context = match missed.what {
                MissedKind::Context => {
                    *context = number;
                    contexts.resize_with(contexts.len().max(number), ContextMisses::default);
                    continue;
                }
                _ => context.checked_sub(1).and_then(|context| contexts.get_mut(context)),
            };
            let of_context = of_context.and_then(|own| own.misses_of(code, &missed));
            let misses = match missed.what {
                MissedKind::Run => &mut fetch_misses[number],
                MissedKind::Counter => {
                    last_missed[number] = missed.address;
                    &mut access_misses[number]
                }
                MissedKind::LoneChain => {
                    last_lone[number] = missed.address;
                    &mut lone_misses[number]
                }
                MissedKind::Context => continue,
            };
            let is_l2 = l2.as_mut().is_some_and(|l2| !l2.access(missed.address, missed.size_bytes.into()));
            for misses in [Some(misses), of_context].into_iter().flatten() {
                misses.count(is_l2);
            }
        }
    }
}

impl ContextMisses {
    /// The counter of a miss.
    fn misses_of(&mut self, code: &Code, missed: &Missed) -> Option<&mut Misses> {
        let (all, number) = match missed.what {
            MissedKind::Run => (&mut self.code, missed.number),
            MissedKind::Counter => (&mut self.data, missed.number),
            MissedKind::LoneChain => {
                let links = code.links_of(&code.chains[missed.number as usize]);
                (&mut self.data, links.first()?.counter)
            }
            MissedKind::Context => return None,
        };
        Some(all.entry(number).or_default())
    }
}

impl Model {
    /// The lines in the caches.
    fn resident(&self) -> Resident {
        let lines = |cache: &Option<Cache>| cache.as_ref().map(Cache::resident).unwrap_or_default();
        Resident { l1i: lines(&self.first.l1i), l1d: lines(&self.first.l1d), l2: lines(&self.l2) }
    }
}

impl FirstLevel {
    #[inline]
    fn take(&mut self, code: &Code, event: Event<'_>) {
        match event {
            Event::Block { run } => self.fetch(code, run),
            Event::Context { number } => {
                self.missed.push(Missed { address: 0, size_bytes: 0, number, what: MissedKind::Context });
            }
            Event::Access { counter, size_shift, address } => {
                self.access(MissedKind::Counter, counter, address, 1 << size_shift);
            }
            Event::Lone { chain, with_code, size_shift, address } => {
                if with_code {
                    self.begin(code, chain);
                }
                self.access(MissedKind::LoneChain, chain, address, 1 << size_shift);
            }
            Event::Chain { chain, with_code, addresses } => {
                if with_code {
                    self.begin(code, chain);
                }
                let chain = &code.chains[chain as usize];
                let links = if addresses.is_empty() { &[] } else { code.links_of(chain) };
                for link in links {
                    self.access(
                        MissedKind::Counter,
                        link.counter,
                        link.address(addresses),
                        link.size_bytes(),
                    );
                }
            }
        }
    }

    /// Fetches the block that a chain begins.
    fn begin(&mut self, code: &Code, chain: u32) {
        if let Some(run) = code.chains[chain as usize].begins {
            self.fetch(code, run);
        }
    }

    /// Fetches the block that begins with a run.
    #[inline]
    fn fetch(&mut self, code: &Code, first: u32) {
        let Some(l1i) = &mut self.l1i else { return };
        for (number, run) in (first..).zip(&code.runs[first as usize..]) {
            let Run { pc, size_bytes, ends_block, .. } = *run;
            if !l1i.access(pc, size_bytes.into()) {
                self.missed.push(Missed { address: pc, size_bytes, number, what: MissedKind::Run });
            }
            if ends_block {
                break;
            }
        }
    }

    #[inline]
    fn access(&mut self, what: MissedKind, number: u32, address: u64, size_bytes: u64) {
        let Some(l1d) = &mut self.l1d else { return };
        if !l1d.access(address, size_bytes) {
            self.missed.push(Missed { address, size_bytes: size_bytes as u32, number, what });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chains::{Chain, Chains, Link};
    use crate::front::{Front, Kind};
    use crate::{Handle, Profile};
    use lineup_cache::{Hierarchy, Missed};

    const LOAD: Kind = Kind { size_shift: 3, is_store: false, counts: true };
    const STORE: Kind = Kind { size_shift: 3, is_store: true, counts: true };

    /// Blocks of a few runs each, some reaching into the line of the next, the first access of which begins them: a
    /// load, a store and a load, the last further away than a line. With the handles of their chains.
    fn profile(specs: &[&str]) -> (Profile, Vec<Handle>) {
        let link =
            |insn: usize, distance| Link { insn, slot: 0, distance, is_store: insn == 1, size_shift: 3 };
        let chain = Chain { links: vec![link(0, 0), link(1, 8), link(2, -70)], only: None };
        let chains = Chains { all: vec![chain], alone: Vec::new(), begin_block: true };
        let profile = Profile::new(&specs.iter().map(ToString::to_string).collect::<Vec<_>>(), 0).unwrap();
        let handles = (0..32).flat_map(|block| {
            let insns: Vec<_> = (0..4).map(|insn| (0x40_0000 + block * 120 + insn * 30, 30)).collect();
            profile.block(&insns, &chains).handles
        });
        let handles = handles.collect();
        (profile, handles)
    }

    /// Misses between a context's beginning and the next one's are its own; those of number 0 belong to no context.
    #[test]
    fn misses_are_counted_for_the_context_under_way() {
        let (profile, handles) = profile(&["l1i=1K,2,64", "l1d=1K,4,32", "l2=4K,2,64"]);
        let (mut front, mut model) = (Front::new(&profile.specs), Model::new(&profile.specs, None));
        front.learn(&profile.code);
        let mut work = |model: &mut Model, context: u32, address: u64| {
            front.batch.context(context);
            assert!(front.chain::<true>(handles[0], address));
            model.simulate(&front.batch);
            front.batch.clear();
        };
        work(&mut model, 2, 0x1000);
        work(&mut model, 0, 0x2000);
        work(&mut model, 1, 0x3000);
        let counts = model.into_counts();
        let of = |all: &HashMap<u32, Misses>| {
            all.values().map(|misses| (misses.l1, misses.l2)).collect::<Vec<_>>()
        };
        let [first, second] = &counts.contexts[..] else { panic!("two contexts") };
        // The block is fetched once; a load, a store and a load, of which the last lies on another line than the first
        // two.
        assert_eq!((of(&first.code), of(&first.data).len()), (vec![], 2));
        assert_eq!((of(&second.code).is_empty(), of(&second.data).len()), (false, 2));
        assert!(counts.access_misses.iter().map(|misses| misses.l1).sum::<u64>() == 6);
    }

    fn add(misses: &mut Misses, missed: Missed) {
        misses.l1 += u64::from(missed != Missed::Nothing);
        misses.l2 += u64::from(missed == Missed::L2);
    }

    /// Loops of their own for code and data, batch after batch, against one model that sees everything in its order.
    #[test]
    fn batches_are_counted_as_if_event_after_event_went_through_the_caches() {
        let (profile, handles) = profile(&["l1i=1K,2,64", "l1d=1K,4,32", "l2=4K,2,64"]);
        let (mut front, mut model) = (Front::new(&profile.specs), Model::new(&profile.specs, None));
        let mut whole = Hierarchy::new(&profile.specs);
        let runs = profile.code.whole().runs.clone();
        let blocks: Vec<usize> =
            (0..runs.len()).filter(|run| *run == 0 || runs[run - 1].ends_block).collect();
        let (mut fetched, mut executions) = (vec![Misses::default(); runs.len()], vec![0; runs.len()]);
        let counters = runs.last().map_or(0, Run::counters_end) as usize;
        let (mut missed, mut accesses) = (vec![Misses::default(); counters], vec![0; counters]);
        let mut random = 1u64;
        front.learn(&profile.code);
        for _ in 0..50 {
            for _ in 0..1000 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let address = 0x40_0000 + (random >> 40) % 8192;
                let block = (random >> 35) as u32 & 31;
                let first = blocks[block as usize];
                let mut fetch = |whole: &mut Hierarchy| {
                    executions[first] += 1;
                    for (run, misses) in runs.iter().zip(&mut fetched).skip(first) {
                        add(misses, whole.fetch(run.pc, run.size_bytes.into()));
                        if run.ends_block {
                            break;
                        }
                    }
                };
                let mut access = |whole: &mut Hierarchy, counter: u32, address| {
                    accesses[counter as usize] += 1;
                    add(&mut missed[counter as usize], whole.data(address, 8));
                };
                let counter = runs[first].counters;
                match random >> 33 & 3 {
                    0 => {
                        let run = first as u32;
                        assert!(front.enter(run));
                        fetch(&mut whole);
                    }
                    1 => {
                        assert!(front.chain::<true>(handles[block as usize], address));
                        fetch(&mut whole);
                        access(&mut whole, counter, address);
                        access(&mut whole, counter + 3, address + 8);
                        access(&mut whole, counter + 4, address - 70);
                    }
                    kind => {
                        let (what, counter) =
                            if kind == 2 { (STORE, counter + 7) } else { (LOAD, counter + 6) };
                        let number = counter & !1;
                        assert!(front.access(number, address, what));
                        access(&mut whole, counter, address);
                    }
                }
            }
            model.simulate(&front.batch);
            front.batch.clear();
        }
        let counts = front.complete(model.into_counts());
        let differing = fetched.iter().filter(|misses| misses.l1 > misses.l2).count();
        assert!(missed.iter().filter(|misses| misses.l2 > 100).count() > 100 && differing > 50, "{missed:?}");
        assert_eq!(counts.fetch_misses, fetched);
        assert_eq!(counts.access_misses, missed);
        assert_eq!((counts.executions, counts.accesses), (executions, accesses));
    }

    /// Slots outlive the chain that filled them, and an address far away has room too.
    #[test]
    fn an_access_is_measured_from_a_chain_before() {
        let profile = Profile::new(&["l1i=1K,2,64", "l1d=1K,4,32"].map(str::to_owned), 0).unwrap();
        let link = |slot, distance| Link { insn: 0, slot, distance, is_store: false, size_shift: 2 };
        let first = Chain { links: vec![link(0, 0)], only: None };
        let second = Chain { links: vec![link(1, 0), link(0, 64), link(1, -4)], only: None };
        let chains = Chains { all: vec![first, second], alone: Vec::new(), begin_block: false };
        let mut front = Front::new(&profile.specs);
        let handles = profile.block(&[(0x1000, 4)], &chains).handles;
        front.learn(&profile.code);
        assert!(front.chain::<false>(handles[0], 0x2000) && front.chain::<false>(handles[1], u64::MAX - 3));
        // No misses: all lines are the most recently used of their sets.
        assert!(front.chain::<false>(handles[0], 0x2000) && front.chain::<false>(handles[1], u64::MAX - 3));
        // Another line of the set was used.
        assert!(front.access(0, 0x2000 + (1 << 10), LOAD) && front.chain::<false>(handles[0], 0x2000));
        let mut noted = Vec::new();
        front
            .batch
            .for_each(&profile.code.after(&Code::default()), |event| noted.push(format!("{event:x?}")));
        let expected = [
            "Lone { chain: 0, with_code: false, size_shift: 2, address: 2000 }",
            "Chain { chain: 1, with_code: false, addresses: [fffffffffffffffc, 2000] }",
            "Access { counter: 0, size_shift: 3, address: 2400 }",
            "Lone { chain: 0, with_code: false, size_shift: 2, address: 2000 }",
        ];
        assert_eq!(noted, expected);
    }
}
