//! Loads and stores added up by byte.

use lineup_model::usage::ByteUse;
use std::collections::BTreeMap;

/// Sums of loads and stores as runs that do not overlap. An added run is cut at the ends of the present ones, and cuts
/// them at its own. Adding a run visits only the runs that it touches, so its cost does not grow with their number.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct ByteSums {
    /// By the offset of the first byte.
    runs: BTreeMap<u64, Sum>,
    /// Runs that were looked at so far, which tests compare.
    #[cfg(test)]
    looked_at: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sum {
    /// Offset after the last byte.
    end: u64,
    loads: u64,
    stores: u64,
}

impl ByteSums {
    /// Adds a run. One of no bytes adds nothing.
    pub(crate) fn add(&mut self, run: &ByteUse) {
        let (start, end) = (run.offset, run.offset.saturating_add(run.size_bytes));
        if start >= end {
            return;
        }
        self.cut(start);
        self.cut(end);
        let mut gaps: Vec<(u64, u64)> = Vec::new();
        let mut covered = start;
        for (first, sum) in self.runs.range_mut(start..end) {
            if covered < *first {
                gaps.push((covered, *first));
            }
            covered = sum.end;
            sum.loads += run.loads;
            sum.stores += run.stores;
            #[cfg(test)]
            {
                self.looked_at += 1;
            }
        }
        if covered < end {
            gaps.push((covered, end));
        }
        for (first, end) in gaps {
            self.runs.insert(first, Sum { end, loads: run.loads, stores: run.stores });
        }
    }

    /// A run that holds bytes on both sides of an offset becomes two.
    fn cut(&mut self, at: u64) {
        let Some((_, sum)) = self.runs.range_mut(..at).next_back() else { return };
        if sum.end > at {
            let behind = *sum;
            sum.end = at;
            self.runs.insert(at, behind);
        }
    }

    /// The runs in order.
    pub(crate) fn runs(&self) -> Vec<ByteUse> {
        let run = |(offset, sum): (&u64, &Sum)| ByteUse {
            offset: *offset,
            size_bytes: sum.end - offset,
            loads: sum.loads,
            stores: sum.stores,
        };
        self.runs.iter().map(run).collect()
    }
}

impl<'r> Extend<&'r ByteUse> for ByteSums {
    fn extend<I: IntoIterator<Item = &'r ByteUse>>(&mut self, runs: I) {
        runs.into_iter().for_each(|run| self.add(run));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(offset: u64, size_bytes: u64, loads: u64, stores: u64) -> ByteUse {
        ByteUse { offset, size_bytes, loads, stores }
    }

    fn sums(runs: &[ByteUse]) -> Vec<ByteUse> {
        let mut sums = ByteSums::default();
        sums.extend(runs);
        sums.runs()
    }

    #[test]
    fn runs_are_cut_at_each_others_ends_and_equal_bytes_add_up() {
        assert_eq!(
            sums(&[run(8, 4, 0, 1), run(0, 16, 1, 0)]),
            [run(0, 8, 1, 0), run(8, 4, 1, 1), run(12, 4, 1, 0)]
        );
        assert_eq!(
            sums(&[run(0, 16, 1, 0), run(8, 4, 0, 1)]),
            [run(0, 8, 1, 0), run(8, 4, 1, 1), run(12, 4, 1, 0)]
        );
        assert_eq!(sums(&[run(0, 8, 1, 0), run(0, 8, 2, 3)]), [run(0, 8, 3, 3)]);
        assert_eq!(
            sums(&[run(0, 8, 1, 0), run(4, 8, 0, 1)]),
            [run(0, 4, 1, 0), run(4, 4, 1, 1), run(8, 4, 0, 1)]
        );
        assert_eq!(sums(&[run(0, 4, 1, 0), run(8, 4, 1, 0), run(2, 8, 0, 1)]).len(), 5);
        assert_eq!(sums(&[run(3, 0, 1, 1)]), []);
    }

    #[test]
    fn a_run_costs_what_it_touches_and_not_what_is_there() {
        let looked_at = |elements: u64| {
            let mut sums = ByteSums::default();
            for call in 0..10 * elements {
                sums.add(&run(call * 7919 % elements * 8, 8, 1, 0));
            }
            assert_eq!(sums.runs().len() as u64, elements);
            sums.looked_at
        };
        // Ten times as many elements in ten times as many calls: ten times the work.
        assert_eq!(looked_at(10_007), 10 * looked_at(1000) + 9 * 7);
    }
}
