//! Code laid anew, for trials.

use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a line that a cache held, as far as placing its contents goes.
pub(crate) const LINE_BYTES: u64 = 64;

/// The address of packed code.
const CODE: u64 = 3 << 60;

/// Code laid without the code that was not executed.
#[derive(Clone, Default, Debug)]
pub(crate) struct Packed {
    /// First and last byte of each run of executed bytes, and where it goes.
    runs: BTreeMap<u64, (u64, u64)>,
    /// From the first of these bytes to the last.
    room: Range<u64>,
}

impl Packed {
    /// Packs fetched code: first byte and size of each fetch.
    pub(crate) fn new(fetched: &BTreeMap<u64, u64>) -> Packed {
        Packed::at(CODE, fetched)
    }

    /// As [`Packed::new`] for one function, at its present address: it shares cache sets with the same other code as
    /// before.
    pub(crate) fn in_place(fetched: &BTreeMap<u64, u64>) -> Packed {
        Packed::at(fetched.keys().next().copied().unwrap_or(CODE), fetched)
    }

    fn at(to: u64, fetched: &BTreeMap<u64, u64>) -> Packed {
        let mut runs: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut last: Option<(u64, u64)> = None;
        let mut next = to;
        let mut close = |run: Option<(u64, u64)>| {
            if let Some((start, end)) = run {
                runs.insert(start, (end, next));
                next += end - start;
            }
        };
        for (start, size) in fetched {
            let end = start + size;
            last = match last {
                Some((first, until)) if *start <= until => Some((first, until.max(end))),
                other => {
                    close(other);
                    Some((*start, end))
                }
            };
        }
        close(last);
        let start = runs.keys().next().copied().unwrap_or_default();
        let end = runs.values().next_back().map_or(start, |(end, _)| *end);
        Packed { runs, room: start..end }
    }

    /// Bytes that are moved.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.runs.iter().map(|(start, (end, _))| end - start).sum()
    }

    /// Lines that they lie on now.
    pub(crate) fn lines_now(&self, line_bytes: u64) -> u64 {
        let lines =
            self.runs.iter().flat_map(|(start, (end, _))| start / line_bytes..=(end - 1) / line_bytes);
        lines.collect::<std::collections::BTreeSet<u64>>().len() as u64
    }

    /// A line held parts of runs: each is held where it goes.
    pub(crate) fn each_resident(&self, line: u64, mut pass_on: impl FnMut(u64)) {
        let end = line.saturating_add(LINE_BYTES);
        if line >= self.room.end || end <= self.room.start {
            return pass_on(line);
        }
        let inside = self.runs.range(..end).rev().take_while(|(_, (until, _))| *until > line);
        let mut is_known = false;
        for (start, _) in inside {
            is_known = true;
            pass_on(self.place(line.max(*start)));
        }
        if !is_known {
            pass_on(line);
        }
    }

    #[inline]
    pub(crate) fn place(&self, pc: u64) -> u64 {
        match self.runs.range(..=pc).next_back() {
            Some((start, (end, to))) if pc < *end => to + (pc - start),
            _ => pc,
        }
    }
}
