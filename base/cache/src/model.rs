//! The cache itself, and two levels of it.

use crate::recent::{Lines, MostRecent, NO_LINE};
use crate::spec::{CacheLevel, CacheSpec};

/// One cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cache {
    /// Line numbers, set after set, each set with the most recently used first.
    lines: Vec<u64>,
    /// The most recently used line of each set once more: most accesses are to it, and need no more than this.
    most_recent: MostRecent,
    ways: usize,
}

impl Cache {
    /// An empty cache.
    pub fn new(spec: &CacheSpec) -> Self {
        Cache {
            lines: vec![NO_LINE; (spec.sets() * u64::from(spec.ways())) as usize],
            most_recent: MostRecent::new(spec),
            ways: spec.ways() as usize,
        }
    }

    /// An empty cache of so many sets, with lines of this length; both are powers of two.
    pub(crate) fn of_sets(sets: u64, ways: usize, line_bytes: u64) -> Self {
        Cache {
            lines: vec![NO_LINE; sets as usize * ways],
            most_recent: MostRecent::of_sets(sets, line_bytes),
            ways,
        }
    }

    /// The number of the line that holds `address`.
    #[inline]
    pub fn line_of(&self, address: u64) -> u64 {
        self.most_recent.line_of(address)
    }

    /// Uses a line; true when it was there.
    #[inline]
    pub fn touch(&mut self, line: u64) -> bool {
        self.most_recent.is_most_recent(line) || self.touch_older(line)
    }

    /// True when all bytes lie on the most recently used line of its set: using it again changes nothing.
    #[inline(always)]
    fn is_most_recent(&self, address: u64, size_bytes: u64) -> bool {
        self.most_recent.passes_over(self.most_recent.lines(address, size_bytes))
    }

    #[inline]
    fn touch_older(&mut self, line: u64) -> bool {
        let set = self.most_recent.set(line);
        self.most_recent.use_line(line);
        let set = &mut self.lines[set * self.ways..(set + 1) * self.ways];
        let mut moved = set[0];
        set[0] = line;
        for way in &mut set[1..] {
            std::mem::swap(way, &mut moved);
            if moved == line {
                return true;
            }
        }
        false
    }

    /// Uses `size_bytes` bytes from `address`; true when every line of them was there.
    #[inline]
    pub fn access(&mut self, address: u64, size_bytes: u64) -> bool {
        self.is_most_recent(address, size_bytes) || self.access_older(address, size_bytes)
    }

    #[inline(never)]
    fn access_older(&mut self, address: u64, size_bytes: u64) -> bool {
        let Lines { first, last } = self.most_recent.lines(address, size_bytes);
        if first == last {
            return self.touch(first);
        }
        self.access_lines(first, last)
    }

    /// Uses several lines. Rare, so kept out of the way of the others.
    #[cold]
    fn access_lines(&mut self, first: u64, last: u64) -> bool {
        let mut hit = self.touch(first);
        for line in first + 1..=last {
            hit &= self.touch(line);
        }
        hit
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.lines.fill(NO_LINE);
        self.most_recent.clear();
    }

    /// First addresses of the lines that are present; of each set, the one used longest ago first.
    pub fn resident(&self) -> Vec<u64> {
        let line_bytes = self.most_recent.line_bytes();
        let oldest_first = self.lines.chunks(self.ways).flat_map(|set| set.iter().rev());
        oldest_first.filter(|line| **line != NO_LINE).map(|line| line * line_bytes).collect()
    }

    /// True when the line is present. Does not use it.
    pub fn holds(&self, line: u64) -> bool {
        let first = self.most_recent.set(line) * self.ways;
        self.lines[first..first + self.ways].contains(&line)
    }
}

/// The levels in which an access missed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Missed {
    /// Found in the first level.
    Nothing,
    /// Missed the first level only, or there is no second.
    L1,
    /// Missed both.
    L2,
}

/// First-level caches for code and data over an optional common second level. A level left out of the
/// specifications always hits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hierarchy {
    l1i: Option<Cache>,
    l1d: Option<Cache>,
    l2: Option<Cache>,
}

impl Hierarchy {
    /// Empty caches. The last specification of a level counts.
    pub fn new(specs: &[CacheSpec]) -> Self {
        let cache = |level| specs.iter().rfind(|spec| spec.level() == level).map(Cache::new);
        Hierarchy { l1i: cache(CacheLevel::L1i), l1d: cache(CacheLevel::L1d), l2: cache(CacheLevel::L2) }
    }

    /// True when fetching these bytes is a hit that changes nothing.
    #[inline(always)]
    pub fn passes_over_code(&self, address: u64, size_bytes: u64) -> bool {
        let Some(l1) = &self.l1i else { return false };
        l1.is_most_recent(address, size_bytes)
    }

    /// True when loading or storing these bytes is a hit that changes nothing.
    #[inline(always)]
    pub fn passes_over_data(&self, address: u64, size_bytes: u64) -> bool {
        let Some(l1) = &self.l1d else { return false };
        l1.is_most_recent(address, size_bytes)
    }

    /// Fetches `size_bytes` bytes of code.
    #[inline]
    pub fn fetch(&mut self, address: u64, size_bytes: u64) -> Missed {
        if self.passes_over_code(address, size_bytes) {
            return Missed::Nothing;
        }
        Self::access_older(&mut self.l1i, &mut self.l2, address, size_bytes)
    }

    /// Loads or stores `size_bytes` bytes of data.
    #[inline]
    pub fn data(&mut self, address: u64, size_bytes: u64) -> Missed {
        if self.passes_over_data(address, size_bytes) {
            return Missed::Nothing;
        }
        Self::access_older(&mut self.l1d, &mut self.l2, address, size_bytes)
    }

    #[inline(never)]
    fn access_older(l1: &mut Option<Cache>, l2: &mut Option<Cache>, address: u64, size_bytes: u64) -> Missed {
        let Some(l1) = l1 else { return Missed::Nothing };
        if l1.access_older(address, size_bytes) {
            return Missed::Nothing;
        }
        match l2 {
            Some(l2) => {
                if l2.access(address, size_bytes) {
                    Missed::L1
                } else {
                    Missed::L2
                }
            }
            None => Missed::L1,
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
            cache.touch(cache.line_of(address));
        });
    }

    /// Forgets the first level's code.
    pub fn clear_code(&mut self) {
        self.l1i.iter_mut().for_each(Cache::clear);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        for cache in [&mut self.l1i, &mut self.l1d, &mut self.l2].into_iter().flatten() {
            cache.clear();
        }
    }
}
