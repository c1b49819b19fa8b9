//! The upper bound of other placements of the heap's small objects: the windows go through the caches again with the
//! objects elsewhere.
//!
//! Objects of at most 1024 bytes move, as into the pools of Lineup's heap library. Larger objects and all other data
//! stay in place. First touches of pages are part of a gain: by the bytes that the objects of the whole run take.
//!
//! The second level of a processor's cache is indexed by physical addresses, which programs do not choose: each page
//! gets one that looks random. So the lines that the caches held when a window began meet in sets as those of another
//! placement do, and no placement gains from being the one that was recorded.
//!
//! Each instruction's savings in the windows are scaled to its stalls in the whole run, which are known exactly. So a
//! phase of the run that few windows are of counts for as much as it stalls. Instructions that the windows hardly have
//! count as unchanged.

use crate::stalls::allocation_sites::HeapBytes;
use crate::stalls::page_stalls::{PAGES_OF_A_PROCESS, PageCosts};
use crate::stalls::run_alone::RunAlone;
use crate::trials::cache_configurations::Configuration;
use crate::trials::layouts::malloc_bytes;
use crate::trials::placement_kinds::{Conditions, PlacementKind, PlacementTrial, Placements};
use crate::trials::replay::{count, cycles};
use foldhash::{HashMap, HashSet};
use lineup_cache::{CacheLevel, PageBytes, Tlb};
use lineup_recording::{
    HeapObject, Latency, Misses, PageCounts, ProfileInstruction, Window, WindowObjects, WindowStep,
};
use rayon::prelude::*;

/// Where pools lie: above all addresses of programs.
const POOLS: u64 = 1 << 60;
/// From one pool to the next, as a power of two.
const POOL_SHIFT: u32 = 40;
/// Objects of this size are the largest that move.
pub(crate) const MOST_SMALL_BYTES: u64 = 1024;
/// Sizes in pools are multiples of this.
const STEP_BYTES: u64 = 16;
/// Bytes of memory that a pool begins with.
const POOL_BYTES: i64 = 64 << 10;

/// The windows with the objects of their accesses.
pub(crate) struct Bench<'a> {
    windows: &'a [Window],
    /// For each window, one more than the number of each access's object.
    uses: Vec<Vec<u32>>,
    objects: Vec<HeapObject>,
    /// For each window, its objects by their addresses.
    by_address: Vec<Vec<u32>>,
    /// The rank of each object among those of its class, by first visit.
    first_visits: Vec<u32>,
    /// The words in front of the objects, in which `malloc` keeps sizes.
    headers: HashSet<u64>,
    /// The pages of 2 MiB that have objects.
    heap_pages: HashSet<u64>,
    prices: (Latency, PageCosts),
    run: WholeRun<'a>,
}

/// The exact counts of the whole run.
#[derive(Clone, Copy)]
pub(crate) struct WholeRun<'a> {
    /// Of instructions that access data.
    pub(crate) instructions: &'a [ProfileInstruction],
    /// Stalls for code.
    pub(crate) code_cycles: u64,
    /// Instructions that it executed.
    pub(crate) executed: u64,
    /// First touches of pages; `None` where they were not counted.
    pub(crate) first_touches: Option<u64>,
    /// The run at the program's own speed.
    pub(crate) alone: RunAlone,
    /// The bytes of its objects.
    pub(crate) heap: HeapBytes,
}

impl WholeRun<'_> {
    fn conditions(&self, costs: PageCosts) -> Conditions {
        let first_touches = self.first_touches.unwrap_or(0);
        let large_pages = self.large_pages();
        Conditions { instructions: self.executed, first_touches, large_pages, alone: self.alone, costs }
    }

    /// Pages of large objects that were touched, at most.
    fn large_pages(&self) -> u64 {
        self.heap.large.div_ceil(PageBytes::Small.bytes()).min(self.first_touches.unwrap_or(0))
    }
}

/// Cycles to find an object's pool by the return addresses on the stack.
const SITE_LOOKUP_CYCLES: u64 = 20;
/// An allocator's heap of small objects is at most so many times as large as their chunks: those that must be aligned
/// leave gaps.
const MOST_GAPS: u64 = 2;

/// Counts of a replay.
#[derive(Clone, Default)]
struct Outcome {
    data: Misses,
    pages: PageCounts,
    by_instruction: HashMap<u64, InWindows>,
}

/// An instruction's counts in the windows.
#[derive(Clone, Copy, Default)]
struct InWindows {
    accesses: u64,
    misses: Misses,
    translations: PageCounts,
}

/// The factors from an instruction's stalls in the windows to those in the run.
struct Scales {
    by_instruction: HashMap<u64, f64>,
    /// Stalls of instructions that have no factor.
    unobserved_cycles: f64,
    /// All stalls for data.
    data_cycles: f64,
}

/// An instruction that misses as often in the windows is scaled by its misses.
const ENOUGH_MISSES: u64 = 20;
/// Else one that accesses data as often there is scaled by its accesses.
const ENOUGH_ACCESSES: u64 = 50;

impl<'a> Bench<'a> {
    /// `None` where the windows have no small objects.
    pub(crate) fn of(
        windows: &'a [Window],
        objects: &[WindowObjects],
        prices: (Latency, PageCosts),
        run: WholeRun<'a>,
    ) -> Option<Bench<'a>> {
        let mut numbers: HashMap<HeapObject, u32> = HashMap::default();
        let (mut all, mut uses, mut by_address) = (Vec::new(), Vec::new(), Vec::new());
        for own in objects {
            let mut local = vec![0];
            for object in &own.objects {
                let next = all.len() as u32 + 1;
                let number = *numbers.entry(*object).or_insert(next);
                if number == next {
                    all.push(*object);
                }
                local.push(number);
            }
            uses.push(own.uses.iter().map(|used| local.get(*used as usize).copied().unwrap_or(0)).collect());
            let mut sorted: Vec<u32> = local.split_off(1);
            sorted.sort_unstable_by_key(|number| (all[*number as usize - 1].address, *number));
            sorted.dedup();
            by_address.push(sorted);
        }
        let first_visits = first_visits(&all, &uses);
        let headers = all.iter().flat_map(|object| [8, 16].map(|bytes| object.address.wrapping_sub(bytes)));
        let headers = headers.collect();
        let heap_pages = all.iter().map(|object| object.address / PageBytes::Huge.bytes()).collect();
        (!all.is_empty()).then_some(Bench {
            windows,
            uses,
            objects: all,
            by_address,
            first_visits,
            headers,
            heap_pages,
            prices,
            run,
        })
    }

    /// Tries all placements. `live_objects` is the largest number of small objects in use at a time.
    pub(crate) fn tried(
        &self,
        configurations: &[Configuration],
        least_gain: f64,
        live_objects: f64,
        next: impl FnOnce() -> String,
    ) -> Option<Placements> {
        let usual = configurations.first()?;
        let base = self.replay(usual, PlacementKind::AsIs);
        let scales = self.scales(&base);
        let trial = |kind: PlacementKind, outcome: &Outcome| PlacementTrial {
            kind,
            can_be_made: kind.can_be_made(),
            l1_misses: outcome.data.l1,
            l2_misses: outcome.data.l2,
            dtlb_l1_misses: outcome.pages.translations.l1,
            dtlb_l2_misses: outcome.pages.translations.l2,
            pages: outcome.pages.first_touches,
            stall_cycles: self.stall_cycles(&scales, outcome),
            touch_cycles: self.touch_cycles(kind) as f64,
            gain: 0.0,
            more_bytes: self.more_bytes(kind, live_objects),
        };
        let as_is = trial(PlacementKind::AsIs, &base);
        let conditions = self.run.conditions(self.prices.1);
        let mut trials: Vec<PlacementTrial> =
            PlacementKind::TRIED.par_iter().map(|kind| trial(*kind, &self.replay(usual, *kind))).collect();
        for trial in &mut trials {
            trial.gain = conditions.gain(&as_is, trial);
        }
        trials.sort_by(|one, other| other.gain.total_cmp(&one.gain).then(one.kind.cmp(&other.kind)));
        let best =
            trials.iter().find(|trial| trial.can_be_made && trial.gain >= least_gain.max(f64::EPSILON));
        let gains: Vec<f64> = best.map_or_else(Vec::new, |best| {
            let gain = |configuration: &Configuration| {
                let [base, placed] = [PlacementKind::AsIs, best.kind]
                    .map(|kind| trial(kind, &self.replay(configuration, kind)));
                conditions.gain(&base, &placed)
            };
            configurations.par_iter().map(gain).collect()
        });
        let next = if best.is_some() { next() } else { String::new() };
        let unobserved = scales.unobserved_cycles / scales.data_cycles.max(1.0);
        let Conditions { instructions, first_touches, large_pages, .. } = conditions;
        let objects = self.objects.len() as u64;
        Some(Placements {
            objects,
            instructions,
            first_touches,
            large_pages,
            unobserved,
            as_is,
            trials,
            gains,
            next,
        })
    }

    /// The factors from the windows, as they were, to the run.
    fn scales(&self, as_is: &Outcome) -> Scales {
        let (latency, _) = &self.prices;
        let (mut unobserved_cycles, mut data_cycles) = (0.0, 0.0);
        let mut by_instruction = HashMap::default();
        for counts in self.run.instructions {
            let of_run = cycles(counts.load_misses, *latency) + cycles(counts.store_misses, *latency);
            data_cycles += of_run as f64;
            let own = as_is.by_instruction.get(&counts.pc).copied().unwrap_or_default();
            let accesses = counts.loads + counts.stores;
            let scale = if own.misses.l1 >= ENOUGH_MISSES {
                Some(of_run as f64 / cycles(own.misses, *latency).max(1) as f64)
            } else if own.accesses >= ENOUGH_ACCESSES.min(accesses.max(1)) {
                Some(accesses as f64 / own.accesses as f64)
            } else {
                None
            };
            match scale {
                Some(scale) => drop(by_instruction.insert(counts.pc, scale)),
                None => unobserved_cycles += of_run as f64,
            }
        }
        Scales { by_instruction, unobserved_cycles, data_cycles }
    }

    /// The run's stalls for caches and translations.
    fn stall_cycles(&self, scales: &Scales, outcome: &Outcome) -> f64 {
        let (latency, costs) = &self.prices;
        // Sums of floats in one order, so that the same recording has the same gain.
        let mut all: Vec<(&u64, &InWindows)> = outcome.by_instruction.iter().collect();
        all.sort_by_key(|(pc, _)| **pc);
        let scaled = all.into_iter().filter_map(|(pc, own)| {
            let stalls = cycles(own.misses, *latency) + costs.translation_cycles(own.translations);
            Some(scales.by_instruction.get(pc)? * stalls as f64)
        });
        scaled.sum::<f64>() + scales.unobserved_cycles + self.run.code_cycles as f64
    }

    /// The C library asks for huge pages as its heap grows. About half of the pages are touched before the huge page
    /// that they are part of belongs to the heap.
    ///
    /// The cycles of the run's first touches under a placement, and of finding pools by site.
    fn touch_cycles(&self, kind: PlacementKind) -> u64 {
        let Some(all) = self.run.first_touches else { return 0 };
        let (_, costs) = &self.prices;
        let HeapBytes { objects, small_chunks, small_in_pools, .. } = self.run.heap;
        let lookups = match kind {
            PlacementKind::PoolsBySite | PlacementKind::PoolsBySiteHuge => objects * SITE_LOOKUP_CYCLES,
            _ => 0,
        };
        let small = |bytes: u64| bytes.div_ceil(PageBytes::Small.bytes());
        let of_pages = |bytes: u64, is_huge: bool| match is_huge {
            true => bytes.div_ceil(PageBytes::Huge.bytes()) * u64::from(costs.huge_first_touch_cycles),
            false => small(bytes) * u64::from(costs.first_touch_cycles),
        };
        let without_large = all - self.run.large_pages();
        let of_small = without_large.saturating_sub(PAGES_OF_A_PROCESS).min(MOST_GAPS * small(small_chunks));
        let as_is = of_small * PageBytes::Small.bytes();
        let of_small_objects = match kind {
            PlacementKind::AsIs | PlacementKind::FirstVisit => of_pages(as_is, false),
            PlacementKind::HugePages => of_pages(as_is, false).midpoint(of_pages(as_is, true)),
            _ => of_pages(small_in_pools.min(as_is), kind.is_huge()),
        };
        (without_large - of_small) * u64::from(costs.first_touch_cycles) + lookups + of_small_objects
    }

    /// Bytes more than those of `malloc`: by the mean over the objects seen, for as many as were in use at a time.
    fn more_bytes(&self, kind: PlacementKind, live_objects: f64) -> i64 {
        let sum = |bytes: fn(u32) -> u64| -> f64 {
            self.objects.iter().map(|object| bytes(object.size_bytes) as f64).sum()
        };
        let each = (sum(class_bytes) - sum(|size_bytes| malloc_bytes(size_bytes.into())))
            / self.objects.len() as f64;
        let pools: HashSet<u64> = self.objects.iter().map(|object| pool(kind, *object)).collect();
        let huge = if kind.is_huge() { PageBytes::Huge.bytes() as i64 } else { 0 };
        match kind {
            PlacementKind::AsIs => 0,
            PlacementKind::HugePages => huge,
            _ => (each * live_objects) as i64 + POOL_BYTES.max(huge) * pools.len() as i64,
        }
    }

    /// The new address of an object.
    fn address(&self, kind: PlacementKind, number: u32) -> u64 {
        let object = self.objects[number as usize - 1];
        let slot = match kind {
            PlacementKind::AsIs | PlacementKind::HugePages => return object.address,
            PlacementKind::PoolsBySize | PlacementKind::PoolsBySizeHuge => object.slot_by_size,
            PlacementKind::PoolsBySite | PlacementKind::PoolsBySiteHuge => object.slot_by_site,
            PlacementKind::FirstVisit => self.first_visits[number as usize - 1],
        };
        POOLS + (pool(kind, object) << POOL_SHIFT) + u64::from(slot) * class_bytes(object.size_bytes)
    }

    fn replay(&self, configuration: &Configuration, kind: PlacementKind) -> Outcome {
        let (mut caches, mut tlb) = (configuration.caches(), Tlb::new());
        let mut outcome = Outcome::default();
        let mut pages: HashSet<u64> = HashSet::default();
        for (number, window) in self.windows.iter().enumerate() {
            if let Some(resident) = &window.resident {
                for (level, lines) in [
                    (CacheLevel::L2, &resident.l2),
                    (CacheLevel::L1i, &resident.l1i),
                    (CacheLevel::L1d, &resident.l1d),
                ] {
                    for line in lines {
                        self.each_resident(kind, number, *line, |address, object| {
                            let page = self.page_of(kind, object, address);
                            caches.hold(level, physical(address, page));
                            if level != CacheLevel::L1i {
                                tlb.access(address, 1, page);
                            }
                        });
                    }
                }
            }
            let mut uses = self.uses.get(number).map_or(&[][..], Vec::as_slice).iter();
            for step in &window.steps {
                match *step {
                    WindowStep::Fetch { pc, size_bytes } => {
                        caches.fetch(physical(pc, PageBytes::Small), u64::from(size_bytes));
                    }
                    WindowStep::Access { pc, address, size_shift, .. } => {
                        let object = uses.next().copied().unwrap_or(0);
                        if object == 0 && !kind.has_headers() && self.headers.contains(&(address & !7)) {
                            // The object's header, which a pool has not.
                            outcome.by_instruction.entry(pc).or_default().accesses += 1;
                            continue;
                        }
                        let address = match object.checked_sub(1) {
                            Some(at) => {
                                let offset = address.wrapping_sub(self.objects[at as usize].address);
                                self.address(kind, object).wrapping_add(offset)
                            }
                            None => address,
                        };
                        let page = self.page_of(kind, object, address);
                        if object > 0 {
                            pages.insert(address / page.bytes());
                        }
                        let own = outcome.by_instruction.entry(pc).or_default();
                        own.accesses += 1;
                        let missed = caches.data(physical(address, page), 1 << size_shift);
                        count(&mut outcome.data, missed);
                        count(&mut own.misses, missed);
                        let missed = tlb.access(address, 1 << size_shift, page);
                        count(&mut outcome.pages.translations, missed);
                        count(&mut own.translations.translations, missed);
                    }
                }
            }
        }
        outcome.pages.first_touches = pages.len() as u64;
        outcome
    }

    /// The page that an address is on. `object` is the accessed one, or 0.
    fn page_of(&self, kind: PlacementKind, object: u32, address: u64) -> PageBytes {
        let is_huge = match kind {
            PlacementKind::HugePages => self.heap_pages.contains(&(address / PageBytes::Huge.bytes())),
            _ => kind.is_huge() && object > 0,
        };
        if is_huge { PageBytes::Huge } else { PageBytes::Small }
    }

    /// Passes on where the contents of a line that a cache held would be, with the object there or 0.
    fn each_resident(
        &self,
        kind: PlacementKind,
        window: usize,
        line: u64,
        mut pass_on: impl FnMut(u64, u32),
    ) {
        const LINE_BYTES: u64 = 64;
        let own = self.by_address.get(window).map_or(&[][..], Vec::as_slice);
        let end = |number: u32| {
            let object = self.objects[number as usize - 1];
            object.address + u64::from(object.size_bytes)
        };
        let start = own.partition_point(|number| end(*number) <= line);
        let mut is_known = false;
        for number in &own[start..] {
            let object = self.objects[*number as usize - 1];
            if object.address >= line + LINE_BYTES {
                break;
            }
            is_known = true;
            let into = line.saturating_sub(object.address);
            pass_on(self.address(kind, *number) + into, *number);
        }
        if !is_known {
            pass_on(line, 0);
        }
    }
}

/// An address with the number of its page exchanged for one that looks random, and that no other page has.
fn physical(address: u64, page: PageBytes) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let bytes = page.bytes();
    let bits = u64::BITS - bytes.trailing_zeros();
    let mask = (1 << bits) - 1;
    let mut number = address / bytes;
    for _ in 0..2 {
        number = number.wrapping_mul(ODD) & mask;
        number ^= number >> (bits / 2);
    }
    number * bytes + address % bytes
}

/// The rank of each object among those of its size, by its first visit.
fn first_visits(objects: &[HeapObject], uses: &[Vec<u32>]) -> Vec<u32> {
    let mut ranks = vec![u32::MAX; objects.len()];
    let mut next: HashMap<u64, u32> = HashMap::default();
    for used in uses.iter().flatten().filter(|used| **used > 0) {
        let at = *used as usize - 1;
        if ranks[at] == u32::MAX {
            let rank = next.entry(class_bytes(objects[at].size_bytes)).or_default();
            ranks[at] = *rank;
            *rank += 1;
        }
    }
    ranks
}

/// The number of the pool that has an object.
fn pool(kind: PlacementKind, object: HeapObject) -> u64 {
    match kind {
        PlacementKind::PoolsBySite | PlacementKind::PoolsBySiteHuge => u64::from(object.site_pool) + 128,
        _ => class_bytes(object.size_bytes) / STEP_BYTES,
    }
}

/// Bytes of an object in a pool.
pub(crate) fn class_bytes(size_bytes: u32) -> u64 {
    u64::from(size_bytes.max(1)).next_multiple_of(STEP_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trials::cache_configurations::configurations;
    use lineup_cache::CacheSpec;

    /// A walk over objects of 16 bytes in chunks of 32, one access each, `step` objects further every time.
    fn walk(count: u32, step: u32) -> (Window, WindowObjects) {
        let object = |number: u32| HeapObject {
            address: 0x1000_0010 + 32 * u64::from(number),
            size_bytes: 16,
            site: 1,
            serial: number,
            slot_by_size: number,
            site_pool: 0,
            slot_by_site: number,
        };
        let visited: Vec<u32> =
            (0..count).map(|at| (u64::from(at) * u64::from(step) % u64::from(count)) as u32).collect();
        let access = |number: &u32| WindowStep::Access {
            pc: 0x40_0000,
            address: object(*number).address,
            size_shift: 3,
            is_store: false,
        };
        let steps = visited.iter().map(access).collect();
        let window = Window { steps, ..Window::default() };
        let objects = WindowObjects {
            window: 0,
            objects: (0..count).map(object).collect(),
            uses: visited.iter().map(|number| number + 1).collect(),
        };
        (window, objects)
    }

    fn tried(count: u32, step: u32) -> Placements {
        let (window, objects) = walk(count, step);
        let (windows, objects) = (vec![window], vec![objects]);
        let of_walk = instruction(0x40_0000, u64::from(count), 32_768);
        tried_in(&windows, &objects, &[of_walk])
    }

    /// An instruction of the whole run.
    fn instruction(pc: u64, loads: u64, missed: u64) -> ProfileInstruction {
        let load_misses = Misses { l1: missed, l2: missed };
        let (load_address, stores, store_misses, store_address) = Default::default();
        ProfileInstruction { pc, loads, load_misses, load_address, stores, store_misses, store_address }
    }

    fn tried_in(
        windows: &[Window],
        objects: &[WindowObjects],
        instructions: &[ProfileInstruction],
    ) -> Placements {
        let specs = ["l1d=32K,8,64", "l2=256K,8,64"];
        let specs: Vec<CacheSpec> = specs.map(|text| text.parse().expect("a cache")).to_vec();
        let prices = (Latency { l2_cycles: 14, memory_cycles: 200 }, PageCosts::default());
        let heap = HeapBytes::default();
        let (executed, first_touches, alone) = (0, None, RunAlone::default());
        let run = WholeRun { instructions, code_cycles: 0, executed, first_touches, alone, heap };
        let bench = Bench::of(windows, objects, prices, run).expect("objects");
        let count = objects.iter().map(|own| own.objects.len()).sum::<usize>();
        bench.tried(&configurations(&specs), 0.01, count as f64, || "next".to_owned()).expect("trials")
    }

    fn of(placements: &Placements, kind: PlacementKind) -> &PlacementTrial {
        placements.trials.iter().find(|trial| trial.kind == kind).expect("a trial")
    }

    /// Half of each line is headers: without them half as many lines and pages are fetched.
    #[test]
    fn objects_without_headers_need_half_of_the_lines() {
        let found = tried(65_536, 1);
        let by_size = of(&found, PlacementKind::PoolsBySize);
        assert_eq!((found.as_is.l1_misses, found.as_is.pages), (32_768, 512));
        assert_eq!((by_size.l1_misses, by_size.l2_misses, by_size.pages), (16_384, 16_384, 256));
        assert!((by_size.gain - 0.5).abs() < 0.01, "{}", by_size.gain);
        assert_eq!(by_size.more_bytes, -16 * 65_536 + POOL_BYTES);
        assert_eq!(of(&found, PlacementKind::HugePages).l2_misses, found.as_is.l2_misses);
        assert_eq!(found.gains.len(), 10);
        assert!(found.best().is_some_and(|best| best.can_be_made));
    }

    /// Each visit is far from the one before: only the order of visits makes a line serve more than one.
    #[test]
    fn a_walk_in_another_order_is_helped_by_the_order_of_its_visits_and_huge_pages_by_fewer_translations() {
        let found = tried(131_072, 40_503);
        let (first_visit, huge) =
            (of(&found, PlacementKind::FirstVisit), of(&found, PlacementKind::HugePages));
        assert_eq!(first_visit.l1_misses, 32_768);
        assert!(first_visit.gain > 0.7 && !first_visit.can_be_made, "{first_visit:?}");
        assert_eq!(found.trials[0].kind, PlacementKind::FirstVisit);
        // 4 MiB: 1,024 pages of 4 KiB, two of 2 MiB.
        assert_eq!((found.as_is.pages, huge.pages), (1024, 2));
        assert!(found.as_is.dtlb_l1_misses > 100_000 && huge.dtlb_l1_misses == 2, "{huge:?}");
    }

    /// The windows have the walk alone; of the run's stalls another instruction has as many, and a third one has most.
    #[test]
    fn instructions_that_the_windows_lack_count_as_unchanged_and_others_by_their_stalls_in_the_run() {
        let (window, objects) = walk(65_536, 1);
        let (windows, objects) = (vec![window], vec![objects]);
        let of_walk = instruction(0x40_0000, 65_536, 32_768);
        let elsewhere = instruction(0x40_1000, 50_000, 32_768);
        let found = tried_in(&windows, &objects, &[of_walk, elsewhere]);
        assert!((found.unobserved - 0.5).abs() < 0.01, "{}", found.unobserved);
        let gain = of(&found, PlacementKind::PoolsBySize).gain;
        assert!((gain - 0.25).abs() < 0.01, "half of the half that was seen: {gain}");
        // Ten times as often in the run as in the windows, and missing as much more.
        let often = instruction(0x40_0000, 655_360, 327_680);
        let found = tried_in(&windows, &objects, &[often, elsewhere]);
        let gain = of(&found, PlacementKind::PoolsBySize).gain;
        assert!((gain - 0.5 * 10.0 / 11.0).abs() < 0.01, "{gain}");
    }

    /// `malloc` writes the size in front of each object, which a pool does not.
    #[test]
    fn headers_are_not_written_in_pools() {
        let (mut window, mut objects) = walk(65_536, 1);
        let header = |object: &HeapObject| WindowStep::Access {
            pc: 0x50_0000,
            address: object.address - 8,
            size_shift: 3,
            is_store: true,
        };
        let written: Vec<WindowStep> = objects.objects.iter().map(header).collect();
        window.steps.splice(0..0, written);
        objects.uses.splice(0..0, vec![0; 65_536]);
        let mut of_headers = instruction(0x50_0000, 0, 0);
        of_headers.stores = 65_536;
        of_headers.store_misses = Misses { l1: 32_768, l2: 32_768 };
        let counts = [instruction(0x40_0000, 65_536, 32_768), of_headers];
        let found = tried_in(&[window], &[objects], &counts);
        assert_eq!(found.as_is.l1_misses, 65_536);
        let by_size = of(&found, PlacementKind::PoolsBySize);
        assert_eq!(by_size.l1_misses, 16_384);
        assert!((by_size.gain - 0.75).abs() < 0.01, "{}", by_size.gain);
    }
}
