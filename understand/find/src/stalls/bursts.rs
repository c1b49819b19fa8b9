//! Bursts of a running process: counts from their windows, and how sure shares are.
//!
//! The content of the caches when a burst begins is not known. Three assumptions bound and estimate it:
//!
//! * *Misses*: they hold nothing. No other content has more misses, with the replacement of the line used longest ago.
//! * *Hits*: of each set, they hold the lines that the burst uses there first. No other content has fewer.
//! * *Followed*: they hold what the thread's burst before has left, as if nothing ran in between. All else that is
//!   reported of bursts rests on this estimate.

use crate::error::FindError;
use crate::findings::{BurstShare, BurstShares};
use crate::owner::{self, Owner};
use crate::recorded::Recorded;
use crate::stalls::attribution::Attribution;
use crate::stalls::window_names::{Naming, Point};
use crate::trials::cache_configurations::{Caches, Configuration};
use crate::trials::layouts::Layout;
use crate::trials::replay::{count, cycles, replay};
use foldhash::{HashMap, HashSet};
use lineup_cache::{CacheLevel, CacheSpec, Missed};
use lineup_recording::{Latency, Misses, ProfileInstruction, Window, WindowStep};
use std::collections::BTreeMap;
use std::hash::Hash;

/// The factor of the standard error for a 95 % interval of many bursts.
const NORMAL: f64 = 1.96;
/// Fewer bursts give no interval.
const FEWEST: usize = 8;

impl Recorded {
    /// Fills in the counts of a recording of bursts, whose runs have executions alone.
    ///
    /// # Errors
    /// When it holds no bursts, or names caches that cannot be read.
    pub fn count_bursts(&mut self) -> Result<(), FindError> {
        if self.windows.is_empty() {
            return Err(FindError::NoWindows);
        }
        let specs: Vec<CacheSpec> =
            self.header.caches.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        let usual = &crate::trials::cache_configurations::configurations(&specs)[0];
        let points: Vec<Vec<Point>> = self.windows.iter().map(placeless).collect();
        let mut fetched: HashMap<u64, Misses> = HashMap::default();
        let mut all: BTreeMap<u64, ProfileInstruction> = BTreeMap::new();
        replay(usual, (&self.windows, &points), &Layout::AsIs, |step, _, missed| match *step {
            WindowStep::Fetch { pc, .. } => count(fetched.entry(pc).or_default(), missed),
            WindowStep::Access { pc, address, is_store, .. } => {
                let own = all.entry(pc).or_insert(ProfileInstruction { pc, ..ProfileInstruction::default() });
                let (accesses, misses, last) = match is_store {
                    false => (&mut own.loads, &mut own.load_misses, &mut own.load_address),
                    true => (&mut own.stores, &mut own.store_misses, &mut own.store_address),
                };
                *accesses += 1;
                count(misses, missed);
                if missed != Missed::Nothing || *last == 0 {
                    *last = address;
                }
            }
        });
        // Code that is executed by blocks of different beginnings is in several runs: the first has the misses.
        let mut is_counted: HashSet<u64> = HashSet::default();
        let mut places: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
        for (number, run) in self.runs.iter_mut().enumerate() {
            if is_counted.insert(run.pc) {
                run.fetch_misses = fetched.get(&run.pc).copied().unwrap_or_default();
                places.insert(run.pc, (number, run.pc + u64::from(run.size_bytes)));
            }
        }
        for own in all.values() {
            let Some((_, (number, _))) = places.range(..=own.pc).next_back() else { continue };
            let run = &mut self.runs[*number];
            run.loads += own.loads;
            run.stores += own.stores;
            run.load_misses += own.load_misses;
            run.store_misses += own.store_misses;
        }
        self.instructions = all.into_values().collect();
        Ok(())
    }
}

/// A place for each access of a window, where names do not matter.
fn placeless(window: &Window) -> Vec<Point> {
    let accesses = window.steps.iter().filter(|step| matches!(step, WindowStep::Access { .. })).count();
    vec![Point::default(); accesses]
}

/// Cycles of one burst, by what they are of.
struct Tallies<K>(HashMap<K, Vec<f64>>);

impl<K: Eq + Hash + Copy> Tallies<K> {
    fn add(&mut self, bursts: usize, key: K, burst: usize, cycles: f64) {
        if cycles > 0.0 {
            self.0.entry(key).or_insert_with(|| vec![0.0; bursts])[burst] += cycles;
        }
    }
}

/// Stalls of each burst under one assumption.
struct Assumed {
    owners: Tallies<Owner>,
    functions: Tallies<usize>,
    all: Vec<f64>,
}

impl Assumed {
    fn new(bursts: usize) -> Assumed {
        let (owners, functions) = (Tallies(HashMap::default()), Tallies(HashMap::default()));
        Assumed { owners, functions, all: vec![0.0; bursts] }
    }

    fn sum(&self) -> f64 {
        self.all.iter().sum()
    }
}

/// The shares of owners and functions, and how sure they are.
pub(crate) fn shares(
    recorded: &Recorded,
    naming: &mut Naming<'_>,
    attribution: &Attribution,
    (usual, specs): (&Configuration, &[CacheSpec]),
    latency: Latency,
) -> BurstShares {
    let bursts = recorded.windows.len();
    let assumed = |content: Content| assume(recorded, naming, attribution, (usual, specs), latency, content);
    let [followed, hits, misses] = [Content::Followed, Content::Used, Content::Nothing].map(assumed);
    let shares = |own: &[f64], least: f64, most: f64, name: String| {
        let (share, interval) = ratio(own, &followed.all);
        let of = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
        BurstShare {
            name,
            share,
            low: interval.map(|half| (share - half).max(0.0)),
            high: interval.map(|half| (share + half).min(1.0)),
            if_hits: of(least, hits.sum()),
            if_misses: of(most, misses.sum()),
        }
    };
    let none = vec![0.0; bursts];
    let total = |tally: Option<&Vec<f64>>| tally.map_or(0.0, |own| own.iter().sum());
    let mut owners: Vec<BurstShare> = misses
        .owners
        .0
        .iter()
        .map(|(owner, most)| {
            let own = followed.owners.0.get(owner).unwrap_or(&none);
            let name = owner::name(&mut naming.namer, *owner);
            shares(own, total(hits.owners.0.get(owner)), total(Some(most)), name)
        })
        .collect();
    let mut functions: Vec<BurstShare> = misses
        .functions
        .0
        .iter()
        .map(|(function, most)| {
            let own = followed.functions.0.get(function).unwrap_or(&none);
            let name = attribution.functions[*function].name.clone();
            shares(own, total(hits.functions.0.get(function)), total(Some(most)), name)
        })
        .collect();
    for all in [&mut owners, &mut functions] {
        all.sort_by(|one, other| other.share.total_cmp(&one.share).then_with(|| one.name.cmp(&other.name)));
    }
    BurstShares {
        stall_cycles: followed.sum(),
        stall_cycles_if_hits: hits.sum(),
        stall_cycles_if_misses: misses.sum(),
        owners,
        functions,
    }
}

/// The sum of one series as a share of another's, and half of its 95 % interval: a ratio of means, with a burst as the
/// unit that is drawn.
fn ratio(own: &[f64], all: &[f64]) -> (f64, Option<f64>) {
    let (part, whole): (f64, f64) = (own.iter().sum(), all.iter().sum());
    if whole <= 0.0 {
        return (0.0, None);
    }
    let share = part / whole;
    if own.len() < FEWEST {
        return (share, None);
    }
    let count = own.len() as f64;
    let squares: f64 = own.iter().zip(all).map(|(part, whole)| (part - share * whole).powi(2)).sum();
    (share, Some(NORMAL * (squares * count / (count - 1.0)).sqrt() / whole))
}

/// The assumed content of the caches when a burst begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Nothing,
    Used,
    Followed,
}

fn assume(
    recorded: &Recorded,
    naming: &Naming<'_>,
    attribution: &Attribution,
    (usual, specs): (&Configuration, &[CacheSpec]),
    latency: Latency,
    content: Content,
) -> Assumed {
    let bursts = recorded.windows.len();
    let mut assumed = Assumed::new(bursts);
    let mut caches = usual.caches();
    for (burst, (window, points)) in recorded.windows.iter().zip(&naming.points).enumerate() {
        if content != Content::Followed {
            caches = usual.caches();
        }
        if content == Content::Used {
            hold_used(&mut caches, window, specs);
        }
        let mut points = points.iter();
        for step in &window.steps {
            let (missed, function_pc, owner) = match *step {
                WindowStep::Fetch { pc, size_bytes } => (caches.fetch(pc, u64::from(size_bytes)), pc, None),
                WindowStep::Access { pc, address, size_shift, .. } => {
                    let Some(point) = points.next() else { break };
                    let owner = naming.spots[point.spot as usize].owner;
                    (caches.data(address, 1 << size_shift), pc, Some(owner))
                }
            };
            let mut own = Misses::default();
            count(&mut own, missed);
            let own = cycles(own, latency) as f64;
            if own <= 0.0 {
                continue;
            }
            assumed.all[burst] += own;
            if let Some(function) = attribution.number_of(function_pc) {
                assumed.functions.add(bursts, function, burst, own);
            }
            if let Some(owner) = owner {
                assumed.owners.add(bursts, owner, burst, own);
            }
        }
    }
    assumed
}

/// Puts into the caches the lines that a burst uses, the first ones as the most recently used: none of those that fit
/// into a set is gone before its first use.
fn hold_used(caches: &mut Caches, window: &Window, specs: &[CacheSpec]) {
    let line_of = |level: CacheLevel| {
        specs.iter().rfind(|spec| spec.level() == level).map_or(64, |spec| spec.line().bytes())
    };
    for (level, wants_code, wants_data) in
        [(CacheLevel::L2, true, true), (CacheLevel::L1i, true, false), (CacheLevel::L1d, false, true)]
    {
        let line = line_of(level);
        let (mut seen, mut order): (HashSet<u64>, Vec<u64>) = (HashSet::default(), Vec::new());
        for step in &window.steps {
            let (address, bytes) = match *step {
                WindowStep::Fetch { pc, size_bytes } if wants_code => (pc, u64::from(size_bytes)),
                WindowStep::Access { address, size_shift, .. } if wants_data => (address, 1 << size_shift),
                _ => continue,
            };
            let last = address.saturating_add(bytes.max(1) - 1) / line;
            order.extend((address / line..=last).filter(|line| seen.insert(*line)));
        }
        order.iter().rev().for_each(|number| caches.hold(level, number * line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_the_interval_of_its_bursts() {
        let all = [10.0; 16];
        assert_eq!(ratio(&[5.0; 16], &all), (0.5, Some(0.0)), "every burst alike");
        let own: Vec<f64> = (0..16).map(|burst| if burst % 2 == 0 { 10.0 } else { 0.0 }).collect();
        let (share, half) = ratio(&own, &all);
        // The error of a mean of 16 values of 0 or 1: 0.5 / √15.
        assert_eq!(share, 0.5);
        assert!((half.unwrap() - 1.96 * 0.5 / 15.0_f64.sqrt()).abs() < 1e-9, "{half:?}");
        assert_eq!(ratio(&[1.0, 2.0], &[2.0, 4.0]), (0.5, None), "too few");
        assert_eq!(ratio(&[0.0; 16], &[0.0; 16]), (0.0, None));
    }
}
