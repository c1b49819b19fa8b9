//! What callbacks need not pass on: uses of lines that are the most recently used of their sets change nothing in a
//! first-level cache, and are hits.

use lineup_cache::CacheSpec;

/// The most recently used line of each set of a first-level cache.
pub(super) struct Filter {
    most_recent: Box<[u64]>,
    line_shift: u32,
}

/// No line has these numbers: addresses are 64 bits wide and lines at least 8 bytes.
const NO_LINE: u64 = u64::MAX;
const SEVERAL_LINES: u64 = u64::MAX - 1;

/// The first and the last line of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lines {
    first: u64,
    last: u64,
}

impl Lines {
    /// No line at all.
    pub(super) const NONE: Lines = Lines { first: NO_LINE, last: NO_LINE };

    /// The line, if it is only one; else a number that no line has.
    pub(super) fn only(self) -> u64 {
        if self.first == self.last { self.first } else { SEVERAL_LINES }
    }

    /// The lines of both, as far as [`Self::only`] tells.
    pub(super) fn with(self, other: Lines) -> Lines {
        Lines { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

impl Filter {
    pub(super) fn new(spec: &CacheSpec) -> Filter {
        Filter {
            most_recent: vec![NO_LINE; spec.sets() as usize].into(),
            line_shift: spec.line().bytes().trailing_zeros(),
        }
    }

    #[inline]
    pub(super) fn lines(&self, address: u64, size_bytes: u64) -> Lines {
        let last = address.saturating_add(size_bytes.max(1) - 1);
        Lines { first: address >> self.line_shift, last: last >> self.line_shift }
    }

    /// True when using these lines changes nothing.
    #[inline]
    pub(super) fn passes_over(&self, lines: Lines) -> bool {
        lines.first == lines.last && self.is_most_recent(lines.first)
    }

    /// True when the line is the most recently used of its set.
    #[inline]
    pub(super) fn is_most_recent(&self, line: u64) -> bool {
        self.most_recent[self.set(line)] == line
    }

    /// Takes in that these lines were used, first to last.
    #[inline]
    pub(super) fn use_lines(&mut self, lines: Lines) {
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
    fn use_line(&mut self, line: u64) {
        let set = self.set(line);
        self.most_recent[set] = line;
    }

    #[inline]
    fn set(&self, line: u64) -> usize {
        // A power of two, by the specification.
        line as usize & (self.most_recent.len() - 1)
    }
}
