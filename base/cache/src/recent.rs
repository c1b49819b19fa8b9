//! Uses of the most recently used line of a set: they are hits and change nothing in a cache.

use crate::spec::{CacheLevel, CacheSpec};

/// No line has these numbers: addresses are 64 bits wide and lines at least 8 bytes.
pub(crate) const NO_LINE: u64 = u64::MAX;

/// The most recently used line of each set.
///
/// ```
/// use lineup_cache::MostRecent;
/// let mut recent = MostRecent::of_sets(8, 64);
/// let lines = recent.lines(0x1000, 8);
/// assert!(!recent.passes_over(lines));
/// assert!(!recent.uses_again(lines));
/// assert!(recent.passes_over(lines));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MostRecent {
    lines: Box<[u64]>,
    line_shift: u32,
}

/// The first and the last line of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lines {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Lines {
    /// No line at all.
    pub const NONE: Lines = Lines { first: NO_LINE, last: NO_LINE };

    /// The line with the number `first`, and `more` lines after it.
    #[inline]
    pub fn starting(first: u64, more: u64) -> Lines {
        Lines { first, last: first.wrapping_add(more) }
    }

    /// The first of them.
    pub fn first(self) -> u64 {
        self.first
    }

    /// The number of lines after the first.
    #[inline]
    pub fn more(self) -> u64 {
        self.last.wrapping_sub(self.first)
    }

    /// The lines of both, and the lines between them.
    pub fn with(self, other: Lines) -> Lines {
        Lines { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

impl MostRecent {
    /// No line was used yet, in a cache as specified.
    pub fn new(spec: &CacheSpec) -> Self {
        Self::of_sets(spec.sets(), spec.line().bytes())
    }

    /// No line was used yet, in the level of these caches. The last specification of a level counts. Without one, there
    /// is one set.
    pub fn of_level(specs: &[CacheSpec], level: CacheLevel) -> Self {
        let spec = specs.iter().rfind(|spec| spec.level() == level);
        spec.map_or_else(|| MostRecent::of_sets(1, 64), MostRecent::new)
    }

    /// No line was used yet. Both numbers are powers of two.
    pub fn of_sets(sets: u64, line_bytes: u64) -> Self {
        MostRecent { lines: vec![NO_LINE; sets as usize].into(), line_shift: line_bytes.trailing_zeros() }
    }

    /// Sets of the cache: a power of two.
    pub fn sets(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Bytes of a line.
    pub fn line_bytes(&self) -> u64 {
        1 << self.line_shift
    }

    /// The number of the line that holds `address`.
    #[inline]
    pub fn line_of(&self, address: u64) -> u64 {
        address >> self.line_shift
    }

    /// The lines of `size_bytes` bytes from `address`.
    #[inline(always)]
    pub fn lines(&self, address: u64, size_bytes: u64) -> Lines {
        let last = address.saturating_add(size_bytes.max(1) - 1);
        Lines { first: self.line_of(address), last: self.line_of(last) }
    }

    /// True when using these lines changes nothing: one or two, each the most recently used of its set. Using some of
    /// them only, or often, changes nothing either.
    #[inline(always)]
    pub fn passes_over(&self, lines: Lines) -> bool {
        let Lines { first, last } = lines;
        self.is_most_recent(first)
            && (first == last || (last == first.wrapping_add(1) && self.is_most_recent(last)))
    }

    /// True when the line is the most recently used of its set.
    #[inline(always)]
    pub fn is_most_recent(&self, line: u64) -> bool {
        self.lines[self.set(line)] == line
    }

    /// Records a use of these lines. Returns true when that changed nothing, as [`Self::passes_over`] defines it.
    #[inline]
    pub fn uses_again(&mut self, lines: Lines) -> bool {
        let is_first = self.use_line(lines.first);
        if lines.first == lines.last {
            return is_first;
        }
        if lines.more() > 1 {
            self.use_others(lines);
            return false;
        }
        self.use_line(lines.last) && is_first
    }

    #[cold]
    fn use_others(&mut self, lines: Lines) {
        (lines.first + 1..=lines.last).for_each(|line| {
            self.use_line(line);
        });
    }

    /// Uses a line; true when it was the most recently used of its set.
    #[inline]
    pub(crate) fn use_line(&mut self, line: u64) -> bool {
        let set = self.set(line);
        let place = &mut self.lines[set];
        std::mem::replace(place, line) == line
    }

    /// The set that a line belongs to.
    #[inline]
    pub(crate) fn set(&self, line: u64) -> usize {
        line as usize & (self.lines.len() - 1)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.lines.fill(NO_LINE);
    }
}
