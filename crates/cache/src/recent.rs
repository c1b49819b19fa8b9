//! The uses that change nothing in a cache, and are hits: those of the most recently used line of a set.

use crate::spec::CacheSpec;

/// No line has these numbers: addresses are 64 bits wide and lines at least 8 bytes.
pub(crate) const NO_LINE: u64 = u64::MAX;
const SEVERAL_LINES: u64 = u64::MAX - 1;

/// The most recently used line of each set.
///
/// ```
/// use lineup_cache::MostRecent;
/// let mut recent = MostRecent::of_sets(8, 64);
/// let lines = recent.lines(0x1000, 8);
/// assert!(!recent.passes_over(lines));
/// recent.use_lines(lines);
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

    /// The line, if it is only one; else a number that no line has.
    pub fn only(self) -> u64 {
        if self.first == self.last { self.first } else { SEVERAL_LINES }
    }

    /// The lines of both, as far as [`Self::only`] tells.
    pub fn with(self, other: Lines) -> Lines {
        Lines { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

impl MostRecent {
    /// No line was used yet, in a cache as specified.
    pub fn new(spec: &CacheSpec) -> Self {
        Self::of_sets(spec.sets(), spec.line().bytes())
    }

    /// No line was used yet. Both numbers are powers of two.
    pub fn of_sets(sets: u64, line_bytes: u64) -> Self {
        MostRecent { lines: vec![NO_LINE; sets as usize].into(), line_shift: line_bytes.trailing_zeros() }
    }

    /// The number of the line that holds `address`.
    #[inline]
    pub fn line_of(&self, address: u64) -> u64 {
        address >> self.line_shift
    }

    /// The lines of `size_bytes` bytes from `address`.
    #[inline]
    pub fn lines(&self, address: u64, size_bytes: u64) -> Lines {
        let last = address.saturating_add(size_bytes.max(1) - 1);
        Lines { first: self.line_of(address), last: self.line_of(last) }
    }

    /// True when using these lines changes nothing.
    #[inline]
    pub fn passes_over(&self, lines: Lines) -> bool {
        lines.first == lines.last && self.is_most_recent(lines.first)
    }

    /// True when the line is the most recently used of its set.
    #[inline]
    pub fn is_most_recent(&self, line: u64) -> bool {
        self.lines[self.set(line)] == line
    }

    /// Takes in that these lines were used, first to last.
    #[inline]
    pub fn use_lines(&mut self, lines: Lines) {
        self.use_line(lines.first);
        if lines.first != lines.last {
            self.use_others(lines);
        }
    }

    #[cold]
    fn use_others(&mut self, lines: Lines) {
        (lines.first + 1..=lines.last).for_each(|line| self.use_line(line));
    }

    #[inline]
    pub(crate) fn use_line(&mut self, line: u64) {
        let set = self.set(line);
        self.lines[set] = line;
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
