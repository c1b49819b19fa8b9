//! Caches that differ from the usual model in replacement and prefetching.

use crate::model::Missed;
use crate::recent::NO_LINE;
use crate::spec::{CacheLevel, CacheSpec};

/// The line that a full set evicts for a new one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Replacement {
    /// The one used longest ago.
    LeastRecent,
    /// The line that a binary tree of bits points to. Each bit on the path points away from the last use.
    TreePlru,
    /// Any, by a fixed sequence of pseudo-random numbers.
    Random,
}

/// A cache with a choice of replacement, which may fetch the next line with each line that it lacks.
#[derive(Clone, Debug)]
struct VariedCache {
    /// Line numbers, set after set.
    lines: Vec<u64>,
    /// The time of each way's last use. For [`Replacement::TreePlru`], the bits of each set in its first place.
    ages: Vec<u64>,
    ways: usize,
    sets: u64,
    line_shift: u32,
    replacement: Replacement,
    fetches_next: bool,
    clock: u64,
    random: u64,
}

impl VariedCache {
    fn new(spec: &CacheSpec, replacement: Replacement, fetches_next: bool) -> Self {
        let places = (spec.sets() * u64::from(spec.ways())) as usize;
        VariedCache {
            lines: vec![NO_LINE; places],
            ages: vec![0; places],
            ways: spec.ways() as usize,
            sets: spec.sets(),
            line_shift: spec.line().bytes().trailing_zeros(),
            replacement,
            fetches_next,
            clock: 0,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Uses `size_bytes` bytes from `address`; true when every line of them was there.
    fn access(&mut self, address: u64, size_bytes: u64) -> bool {
        let last = address.saturating_add(size_bytes.max(1) - 1) >> self.line_shift;
        let mut hit = true;
        for line in address >> self.line_shift..=last {
            if !self.touch(line) {
                hit = false;
                if self.fetches_next {
                    self.touch(line.wrapping_add(1));
                }
            }
        }
        hit
    }

    /// Uses a line; true when it was there.
    fn touch(&mut self, line: u64) -> bool {
        self.clock += 1;
        let first = (line & (self.sets - 1)) as usize * self.ways;
        let found = self.lines[first..first + self.ways].iter().position(|held| *held == line);
        let way = found.unwrap_or_else(|| self.victim(first));
        self.lines[first + way] = line;
        match self.replacement {
            Replacement::TreePlru => self.point_away(first, way),
            Replacement::LeastRecent | Replacement::Random => self.ages[first + way] = self.clock,
        }
        found.is_some()
    }

    /// The way of a set that is replaced: an empty one where there is one.
    fn victim(&mut self, first: usize) -> usize {
        let set = &self.lines[first..first + self.ways];
        if let Some(empty) = set.iter().position(|held| *held == NO_LINE) {
            return empty;
        }
        match self.replacement {
            Replacement::LeastRecent => {
                let ages = self.ages[first..first + self.ways].iter().enumerate();
                ages.min_by_key(|(_, age)| **age).map_or(0, |(way, _)| way)
            }
            Replacement::Random => {
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                (self.random % self.ways as u64) as usize
            }
            Replacement::TreePlru => self.pointed_to(first),
        }
    }

    /// The way that the tree of a set points to. Its leaves are the ways, padded to a power of two; the padding is
    /// skipped.
    fn pointed_to(&self, first: usize) -> usize {
        let bits = self.ages[first];
        let (mut low, mut room, mut node) = (0, self.ways.next_power_of_two(), 1);
        while room > 1 {
            room /= 2;
            let goes_right = bits >> (node % 64) & 1 == 1 && low + room < self.ways;
            low += if goes_right { room } else { 0 };
            node = 2 * node + usize::from(goes_right);
        }
        low
    }

    fn point_away(&mut self, first: usize, way: usize) {
        let (mut low, mut room, mut node) = (0, self.ways.next_power_of_two(), 1);
        while room > 1 {
            room /= 2;
            let went_right = way >= low + room;
            let bit = 1u64 << (node % 64);
            match went_right {
                true => self.ages[first] &= !bit,
                false => self.ages[first] |= bit,
            }
            low += if went_right { room } else { 0 };
            node = 2 * node + usize::from(went_right);
        }
    }
}

/// First levels for code and data over an optional second one, as [`crate::Hierarchy`], with a choice of the
/// replacement policy of all levels and of prefetching in those for data. The same uses give the same misses each time.
#[derive(Clone, Debug)]
pub struct VariedHierarchy {
    l1i: Option<VariedCache>,
    l1d: Option<VariedCache>,
    l2: Option<VariedCache>,
}

impl VariedHierarchy {
    /// Empty caches. The last specification of a level counts. With `fetches_next` the first level for data, and the
    /// second, fetch the line after each that they lack.
    pub fn new(specs: &[CacheSpec], replacement: Replacement, fetches_next: bool) -> Self {
        let cache = |level, fetches_next| {
            let spec = specs.iter().rfind(|spec| spec.level() == level);
            spec.map(|spec| VariedCache::new(spec, replacement, fetches_next))
        };
        VariedHierarchy {
            l1i: cache(CacheLevel::L1i, false),
            l1d: cache(CacheLevel::L1d, fetches_next),
            l2: cache(CacheLevel::L2, fetches_next),
        }
    }

    /// Puts the line that holds `address` into one level, as the most recently used of its set.
    pub fn hold(&mut self, level: CacheLevel, address: u64) {
        let cache = match level {
            CacheLevel::L1i => &mut self.l1i,
            CacheLevel::L1d => &mut self.l1d,
            CacheLevel::L2 => &mut self.l2,
        };
        cache.iter_mut().for_each(|cache| {
            cache.touch(address >> cache.line_shift);
        });
    }

    /// Fetches `size_bytes` bytes of code.
    pub fn fetch(&mut self, address: u64, size_bytes: u64) -> Missed {
        access(&mut self.l1i, &mut self.l2, address, size_bytes)
    }

    /// Loads or stores `size_bytes` bytes of data.
    pub fn data(&mut self, address: u64, size_bytes: u64) -> Missed {
        access(&mut self.l1d, &mut self.l2, address, size_bytes)
    }
}

fn access(
    l1: &mut Option<VariedCache>,
    l2: &mut Option<VariedCache>,
    address: u64,
    size_bytes: u64,
) -> Missed {
    let Some(l1) = l1 else { return Missed::Nothing };
    if l1.access(address, size_bytes) {
        return Missed::Nothing;
    }
    let is_there = l2.as_mut().is_none_or(|l2| l2.access(address, size_bytes));
    if is_there { Missed::L1 } else { Missed::L2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hierarchy;

    fn specs() -> Vec<CacheSpec> {
        ["l1i=1K,2,64", "l1d=2K,4,64", "l2=8K,8,64"].iter().map(|spec| spec.parse().unwrap()).collect()
    }

    /// Addresses with some locality.
    fn addresses() -> impl Iterator<Item = u64> {
        let mut random = 1u64;
        (0..40_000u64).map(move |step| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let room = if step % 3 == 0 { 1 << 15 } else { 1 << 11 };
            0x40_0000 + (random >> 33) % room
        })
    }

    #[test]
    fn least_recent_replacement_is_that_of_the_usual_model() {
        let mut usual = Hierarchy::new(&specs());
        let mut varied = VariedHierarchy::new(&specs(), Replacement::LeastRecent, false);
        for address in addresses() {
            assert_eq!(usual.data(address, 8), varied.data(address, 8));
            assert_eq!(usual.fetch(address ^ 0x1000, 20), varied.fetch(address ^ 0x1000, 20));
        }
    }

    #[test]
    fn other_replacements_miss_about_as_often_and_the_same_each_time() {
        let misses = |replacement| {
            let mut caches = VariedHierarchy::new(&specs(), replacement, false);
            addresses().filter(|address| caches.data(*address, 8) != Missed::Nothing).count()
        };
        let usual = misses(Replacement::LeastRecent);
        for replacement in [Replacement::TreePlru, Replacement::Random] {
            let other = misses(replacement);
            assert!(other != usual && other > usual * 3 / 4 && other < usual * 4 / 3, "{usual} {other}");
            assert_eq!(other, misses(replacement));
        }
    }

    #[test]
    fn the_next_line_is_there_in_a_walk() {
        let walk = |fetches_next| {
            let mut caches = VariedHierarchy::new(&specs(), Replacement::LeastRecent, fetches_next);
            (0..1000u64).filter(|line| caches.data(line * 64, 8) != Missed::Nothing).count()
        };
        assert_eq!((walk(false), walk(true)), (1000, 500));
    }

    /// Every way is used, also in sets whose number of ways is no power of two.
    #[test]
    fn a_tree_replaces_every_way_in_turn() {
        for (spec, ways) in [("l1d=768,12,64", 12), ("l1d=512,8,64", 8), ("l1d=64,1,64", 1)] {
            let spec: CacheSpec = spec.parse().unwrap();
            let mut cache = VariedCache::new(&spec, Replacement::TreePlru, false);
            (0..200).for_each(|line| assert!(!cache.touch(line)));
            let mut recent = cache.lines.clone();
            recent.sort_unstable();
            assert_eq!(recent.len(), ways);
            assert!(recent[0] >= 200 - 2 * ways as u64, "{recent:?}");
            assert!(cache.touch(199));
        }
    }
}
