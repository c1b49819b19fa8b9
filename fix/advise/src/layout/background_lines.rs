//! Background lines at the ends of objects: lines that calls load for bytes outside the objects, in any layout.

use crate::layout::granules::ONE;
use lineup_model::line::LineSize;
use lineup_model::usage::NeededAnyway;

/// Counts per call, in units of 2^-20.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct BackgroundLines(NeededAnyway);

impl BackgroundLines {
    /// Adds the counts of a number of calls.
    pub(crate) fn add(&mut self, counts: &NeededAnyway, calls: u64) {
        let per_call = |count: u64| u128::from(count) * u128::from(ONE) / u128::from(calls.max(1));
        let add = |sum: u64, count| sum.saturating_add(u64::try_from(per_call(count)).unwrap_or(u64::MAX));
        self.0 = self.0.zip(counts, add);
    }

    /// The rest without a part of it.
    pub(crate) fn without(&self, part: &BackgroundLines) -> BackgroundLines {
        BackgroundLines(self.0.zip(&part.0, u64::saturating_sub))
    }

    /// True without background lines.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Background lines per call that `ends` of objects lie on.
    pub(crate) fn lines(&self, size: usize, ends: Ends) -> u64 {
        let (first, last, both) = (self.0.first[size], self.0.last[size], self.0.both[size]);
        match (ends.first, ends.last) {
            (true, true) if ends.are_one => first.saturating_add(last).saturating_sub(both),
            (true, true) => first.saturating_add(last),
            (true, false) => first,
            (false, true) => last,
            (false, false) => 0,
        }
    }

    /// The fewest lines per call that cost something when objects touch at least `lines` lines. `may_be_one`: an
    /// object's two ends may lie on one line.
    pub(crate) fn least_cost(&self, size: usize, per_call: u64, lines: u64, may_be_one: bool) -> u64 {
        let cost =
            |lines: u64, ends: Ends| per_call.saturating_mul(lines).saturating_sub(self.lines(size, ends));
        match lines {
            0 => 0,
            1 if may_be_one => cost(1, Ends::ONE).min(cost(2, Ends::BOTH)),
            1 => cost(1, Ends::FIRST).min(cost(1, Ends::LAST)).min(cost(2, Ends::BOTH)),
            _ => cost(lines, Ends::BOTH),
        }
    }
}

/// The ends of an object that lie on touched lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ends {
    /// The line of the first byte is touched.
    pub(crate) first: bool,
    /// The line of the last byte is touched.
    pub(crate) last: bool,
    /// Both lie on one line.
    pub(crate) are_one: bool,
}

impl Ends {
    /// The one line that both ends lie on.
    const ONE: Ends = Ends { first: true, last: true, are_one: true };
    /// Both, apart.
    pub(crate) const BOTH: Ends = Ends { are_one: false, ..Self::ONE };
    const FIRST: Ends = Ends { last: false, ..Self::BOTH };
    const LAST: Ends = Ends { first: false, ..Self::BOTH };

    /// The ends of an object at `base`, for lines of 32, 64 and 128 bytes. `touched` says whether a line is touched.
    /// Bytes behind an object of `recorded_bytes` move with its end, or stay. They are known to be on the object's last
    /// line if that is the same line and the object has not grown.
    pub(crate) fn of(
        base: u64,
        (size_bytes, recorded_bytes): (u64, u64),
        touched: impl Fn(LineSize, u64) -> bool,
    ) -> [Ends; 3] {
        LineSize::ALL.map(|line| {
            let (first, last) = line.lines(base, size_bytes).into_inner();
            let is_known = size_bytes <= recorded_bytes && *line.lines(base, recorded_bytes).end() == last;
            Ends {
                first: touched(line, first),
                last: is_known && touched(line, last),
                are_one: first == last,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::demand::Demand;
    use crate::layout::line_counts::{demand_lines, lines_per_call};
    use crate::layout::placement::Placed;
    use lineup_model::region::RegionId;
    use proptest::prelude::*;

    /// Counts of a hundred calls for one size of line.
    fn anyway(first: u64, last: u64, both: u64) -> BackgroundLines {
        let mut anyway = BackgroundLines::default();
        let counts = NeededAnyway { first: [first; 3], last: [last; 3], both: [both; 3] };
        anyway.add(&counts, 100);
        anyway
    }

    /// Lines of 64 bytes per call of an object of 256 bytes that one touches at these offsets.
    fn lines(base: u64, anyway: BackgroundLines, offsets: &[u64]) -> f64 {
        let demand = demand(base, anyway, offsets);
        let layout = Placed { offsets_bits: vec![0], size_bytes: 256 };
        lines_per_call(&demand, &layout)[1] as f64 / ONE as f64
    }

    fn demand(base: u64, anyway: BackgroundLines, offsets: &[u64]) -> Demand {
        let spans = offsets.iter().map(|offset| (0, *offset, 8)).collect();
        Demand {
            region: RegionId(0),
            base,
            per_call: ONE,
            weight: ONE,
            spans,
            neighbours: Vec::new(),
            recorded_bytes: 256,
            anyway,
        }
    }

    #[test]
    fn a_line_at_an_end_costs_what_calls_do_not_need_it_for_anyway() {
        let needed = anyway(50, 100, 50);
        assert_eq!(lines(8, needed, &[0]), 0.5, "the first line");
        assert_eq!(lines(8, needed, &[248]), 0.0, "the last");
        assert_eq!(lines(8, needed, &[0, 248]), 0.5);
        assert_eq!(lines(8, needed, &[64, 128]), 2.0, "neither");
        assert_eq!(lines(8, BackgroundLines::default(), &[0, 248]), 2.0);
    }

    #[test]
    fn what_lay_behind_an_object_is_not_known_to_lie_there_once_its_end_is_on_another_line() {
        let lines = |base, size_bytes, offset| {
            let demand = demand(base, anyway(0, 100, 0), &[offset]);
            lines_per_call(&demand, &Placed { offsets_bits: vec![0], size_bytes })[1] as f64 / ONE as f64
        };
        // 256 bytes from 8 on end in the fifth line of 64.
        assert_eq!(lines(8, 256, 248), 0.0, "as recorded");
        assert_eq!(lines(16, 248, 240), 0.0, "on the same line, and nearer");
        assert_eq!(lines(8, 248, 240), 1.0, "it ends with the line before");
        assert_eq!(lines(8, 264, 256), 1.0, "what lay behind may have been pushed on");
    }

    proptest! {
        #[test]
        fn no_object_costs_less_than_the_least(
            base in 0u64..16, (first, last) in (0u64..101, 0u64..101), size in 1u64..64, recorded in 1u64..64,
            offsets in proptest::collection::btree_set(0u64..64, 1..6),
        ) {
            let offsets: Vec<u64> = offsets.into_iter().map(|word| word % size * 8).collect();
            // The lowest and the highest possible number of calls with both.
            for both in [(first + last).saturating_sub(100), first.min(last)] {
                let mut demand = demand(base * 8, anyway(first, last, both), &offsets);
                demand.recorded_bytes = recorded * 8;
                let layout = Placed { offsets_bits: vec![0], size_bytes: size * 8 };
                let counts = demand_lines(&demand, &layout.offsets_bits);
                for (size, cost) in lines_per_call(&demand, &layout).into_iter().enumerate() {
                    let line = LineSize::ALL[size];
                    let is_one = line.count(demand.base, layout.size_bytes) == 1;
                    for may_be_one in [true, is_one] {
                        let least = demand.anyway.least_cost(size, ONE, counts[size], may_be_one);
                        prop_assert!(least <= cost, "{least} {cost}");
                    }
                }
            }
        }
    }
}
