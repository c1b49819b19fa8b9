//! The sizes of a region's calls, and the selection of recorded ones.

use std::collections::BTreeMap;

/// Counts up to here are kept exactly; above, the ten highest binary digits are.
const EXACT: u64 = 1 << 10;

/// The number of calls by their number of executed instructions: small enough to be kept for every call that a program
/// makes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CallSizes {
    /// Calls by their instructions, rounded down to ten binary digits.
    pub(crate) calls_by_size: BTreeMap<u64, u64>,
    /// Instructions of all calls, exact.
    pub(crate) instructions: u64,
}

impl CallSizes {
    /// Adds a call.
    pub fn add(&mut self, instructions: u64) {
        *self.calls_by_size.entry(rounded(instructions)).or_default() += 1;
        self.instructions = self.instructions.saturating_add(instructions);
    }

    /// Adds all calls of another count.
    pub fn add_all(&mut self, other: &CallSizes) {
        for (size, calls) in &other.calls_by_size {
            let sum = self.calls_by_size.entry(*size).or_default();
            *sum = sum.saturating_add(*calls);
        }
        self.instructions = self.instructions.saturating_add(other.instructions);
    }

    /// Calls counted.
    pub fn calls(&self) -> u64 {
        self.calls_by_size.values().fold(0, |sum, calls| sum.saturating_add(*calls))
    }

    /// Instructions per call on average; `None` without a call.
    pub fn mean(&self) -> Option<f64> {
        let calls = self.calls();
        (calls > 0).then(|| self.instructions as f64 / calls as f64)
    }

    /// Instructions that half of the calls do not exceed, to one part in five hundred; `None` without a call.
    pub fn median(&self) -> Option<u64> {
        let middle = self.calls().div_ceil(2);
        let mut below = 0u64;
        self.calls_by_size.iter().find_map(|(size, calls)| {
            below = below.saturating_add(*calls);
            (below >= middle && middle > 0).then_some(*size)
        })
    }
}

/// The share by which figures must differ to be reported.
const NOTABLE: f64 = 0.1;

impl CallSizes {
    /// True when some of these calls, with this median and mean of instructions, are like all of them.
    pub fn is_like(&self, median: f64, mean: f64) -> bool {
        let is_near = |one: f64, all: f64| (one - all).abs() <= NOTABLE * all;
        self.median().is_none_or(|all| is_near(median, all as f64))
            && self.mean().is_none_or(|all| is_near(mean, all))
    }
}

fn rounded(instructions: u64) -> u64 {
    let shift = (u64::BITS - instructions.leading_zeros()).saturating_sub(EXACT.ilog2());
    instructions >> shift << shift
}

/// Calls in a row that are recorded together, see [`crate::Selection::Runs`].
pub const CALLS_IN_RUN: u64 = 1 << CALLS_IN_RUN_SHIFT;

/// Its logarithm.
pub const CALLS_IN_RUN_SHIFT: u32 = 5;

/// The position of a call in the recording order under a limit: the calls with the lowest positions are recorded.
/// `number` counts the calls of a region after its warm-up, from 0.
///
/// These are the multiples of the golden ratio's fraction, in 64 bits. The `n` lowest of any number of calls are spread
/// evenly over them and meet every period of the program equally often. They stay the same when calls are added, except
/// for calls that new ones displace. So two recordings of the same number of calls keep the same ones in any mode.
pub fn spread_position(number: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    number.wrapping_add(1).wrapping_mul(GOLDEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_sizes_are_exact_and_large_ones_keep_ten_digits() {
        assert_eq!([0, 1, 1023, 1024, 1025].map(rounded), [0, 1, 1023, 1024, 1024]);
        assert_eq!(rounded(u64::MAX).count_ones(), 10);
        for size in [5000u64, 123_456_789] {
            assert!(rounded(size) <= size && size - rounded(size) < size / 500);
        }
    }

    #[test]
    fn median_and_mean_are_of_the_calls() {
        let mut sizes = CallSizes::default();
        assert_eq!((sizes.median(), sizes.mean()), (None, None));
        [10, 30, 20].iter().for_each(|size| sizes.add(*size));
        assert_eq!((sizes.median(), sizes.mean(), sizes.calls()), (Some(20), Some(20.0), 3));
        assert!(sizes.is_like(19.0, 21.0) && !sizes.is_like(17.0, 20.0) && !sizes.is_like(20.0, 23.0));
        let mut more = CallSizes::default();
        (0..5).for_each(|_| more.add(100));
        sizes.add_all(&more);
        assert_eq!((sizes.median(), sizes.calls()), (Some(100), 8));
    }

    /// The lowest positions among `made` calls.
    fn kept(made: u64, limit: usize) -> Vec<u64> {
        let mut calls: Vec<u64> = (0..made).collect();
        calls.sort_by_key(|call| spread_position(*call));
        calls.truncate(limit);
        calls.sort_unstable();
        calls
    }

    #[test]
    fn the_lowest_positions_are_spread_over_the_run_and_over_every_period() {
        for (made, limit) in [(1000, 100), (12_345, 777), (50_000, 2000)] {
            let kept = kept(made, limit);
            let even = made as f64 / limit as f64;
            let gaps = kept.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(gaps.clone().max().is_some_and(|gap| (gap as f64) < 3.0 * even), "{made} {limit}");
            for period in 2..8 {
                let first = kept.iter().filter(|call| *call % period == 0).count() as f64;
                let share = first / limit as f64 * period as f64;
                assert!((0.6..1.4).contains(&share), "{made} {limit} {period}: {share}");
            }
        }
    }

    #[test]
    fn one_more_call_displaces_one_at_most() {
        let (before, after) = (kept(1000, 100), kept(1001, 100));
        assert!(before.iter().filter(|call| !after.contains(call)).count() <= 1);
    }
}
