//! Lines at the ends of objects that calls need anyway, for bytes beside the objects.

use crate::placement::Placed;
use crate::score::{Demand, Granules, ONE};
use lineup_model::line::LineSize;
use lineup_model::usage::NeededAnyway;

/// How often per call, in units of 2^-20, for lines of 32, 64 and 128 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Anyway {
    first: [u64; 3],
    last: [u64; 3],
    both: [u64; 3],
}

impl Anyway {
    /// Adds what so many calls showed.
    pub(crate) fn add(&mut self, counts: &NeededAnyway, calls: u64) {
        let pairs = [
            (&mut self.first, &counts.first),
            (&mut self.last, &counts.last),
            (&mut self.both, &counts.both),
        ];
        for (sums, counts) in pairs {
            for (sum, count) in sums.iter_mut().zip(counts) {
                let per_call = u128::from(*count) * u128::from(ONE) / u128::from(calls.max(1));
                *sum = sum.saturating_add(u64::try_from(per_call).unwrap_or(u64::MAX));
            }
        }
    }

    /// What is left without a part of it.
    pub(crate) fn without(&self, part: &Anyway) -> Anyway {
        let left =
            |all: [u64; 3], part: [u64; 3]| std::array::from_fn(|size| all[size].saturating_sub(part[size]));
        Anyway {
            first: left(self.first, part.first),
            last: left(self.last, part.last),
            both: left(self.both, part.both),
        }
    }

    /// True when no line is needed anyway.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Lines per call that `ends` of objects lie on and that are needed anyway.
    pub(crate) fn lines(&self, size: usize, ends: Ends) -> u64 {
        let (first, last, both) = (self.first[size], self.last[size], self.both[size]);
        match (ends.first, ends.last) {
            (true, true) if ends.are_one => first.saturating_add(last).saturating_sub(both),
            (true, true) => first.saturating_add(last),
            (true, false) => first,
            (false, true) => last,
            (false, false) => 0,
        }
    }

    /// No object that touches `lines` lines has more of them that are needed anyway.
    pub(crate) fn most_lines(&self, size: usize, lines: u64) -> u64 {
        match lines {
            0 => 0,
            1 => self.lines(size, Ends { first: true, last: true, are_one: true }),
            _ => self.lines(size, Ends { first: true, last: true, are_one: false }),
        }
    }

    /// The fewest lines per call that cost something when objects touch at least so many.
    pub(crate) fn least_cost(&self, size: usize, per_call: u64, lines: u64) -> u64 {
        let cost = |lines: u64| per_call.saturating_mul(lines).saturating_sub(self.most_lines(size, lines));
        // An object that touches a line more may have two ends that are needed anyway.
        if lines == 1 { cost(1).min(cost(2)) } else { cost(lines) }
    }
}

/// Which ends of an object lie on lines that are touched.
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
    /// Of an object at `base`, for lines of 32, 64 and 128 bytes. `touched` tells which lines are.
    pub(crate) fn of(base: u64, size_bytes: u64, touched: impl Fn(LineSize, u64) -> bool) -> [Ends; 3] {
        LineSize::ALL.map(|line| {
            let (first, last) = line.lines(base, size_bytes).into_inner();
            Ends { first: touched(line, first), last: touched(line, last), are_one: first == last }
        })
    }
}

/// Lines of 32, 64 and 128 bytes per call that one demand needs and nothing else does, in units of 2^-20. Objects count alone,
/// whether or not they have neighbours.
pub(crate) fn lines_per_call(demand: &Demand, layout: &Placed) -> [u64; 3] {
    let mut touched = Granules::of(demand.base, &demand.spans, &layout.offsets_bits);
    let mut lines = touched.counts().map(|lines| demand.per_call.saturating_mul(lines));
    if !demand.anyway.is_none() {
        let ends = Ends::of(demand.base, layout.size_bytes, |line, number| touched.touches(line, number));
        for (size, lines) in lines.iter_mut().enumerate() {
            *lines = lines.saturating_sub(demand.anyway.lines(size, ends[size]));
        }
    }
    lines
}
