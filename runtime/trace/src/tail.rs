//! The tail of a sample: the time that calls spend beyond a threshold.
//!
//! With the threshold `t` and the cap `c` fixed, `min(x, c) - t`, at least 0, summed over calls is linear in the calls:
//! one cause adds exactly the amount that its calls add. A mean *between quantiles* is not: take calls away and others
//! move into the window, so shares of it do not add up.

use crate::estimate::{Moment, RareMean};
use serde::Serialize;

/// The calls that form the tail: those beyond a quantile. Their time beyond a second quantile is not counted, because
/// on a shared machine the slowest calls are the scheduler's.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Tail {
    /// Lower quantile.
    pub from: f64,
    /// Upper quantile.
    pub to: f64,
}

impl Default for Tail {
    /// The slowest tenth, each call up to the 99th percentile.
    fn default() -> Self {
        Self { from: 0.90, to: 0.99 }
    }
}

impl Tail {
    /// A tail, or `None` unless `0.5 <= from < to <= 1`.
    pub fn new(from: f64, to: f64) -> Option<Self> {
        (from >= 0.5 && from < to && to <= 1.0).then_some(Self { from, to })
    }

    /// The tail of this sample in nanoseconds; `None` when it is empty.
    pub fn window(self, sample: &Sample) -> Option<Window> {
        Some(Window { from_ns: sample.quantile(self.from)?, to_ns: sample.quantile(self.to)? })
    }
}

/// A tail in nanoseconds, from the calls to which nothing was done.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Window {
    /// Calls are slow beyond this.
    pub from_ns: f64,
    /// Time beyond this is not counted.
    pub to_ns: f64,
}

impl Window {
    /// Nanoseconds that a call of this duration spends in the tail.
    pub fn time_beyond(&self, duration_ns: f64) -> f64 {
        (duration_ns.min(self.to_ns) - self.from_ns).max(0.0)
    }
}

/// Durations in ascending order.
#[derive(Clone, Debug)]
pub struct Sample(Vec<f64>);

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        Self(sorted)
    }
}

impl Sample {
    /// The number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True without a value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values, ascending.
    pub fn values(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.0.iter().copied()
    }

    /// The least value that `q` of the values do not exceed; `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = (q * self.len() as f64).ceil() as usize;
        self.0.get(rank.clamp(1, self.len().max(1)) - 1).copied()
    }

    /// The median, with the variance that the distance of two order statistics around it gives (McKean and Schrader,
    /// Communications in Statistics B 13, 1984); `None` for fewer than ten values.
    pub fn median(&self) -> Option<Moment> {
        let count = self.len();
        // The order statistics two standard deviations of a rank, √n / 2, off the middle.
        let rank = ((count as f64 + 1.0) / 2.0 - (count as f64).sqrt()).floor() as usize;
        let (low, high) = (self.0.get(rank.checked_sub(1)?)?, self.0.get(count.checked_sub(rank)?)?);
        (count >= 10).then_some(())?;
        Some(Moment { value: self.quantile(0.5)?, variance: ((high - low) / 4.0).powi(2), count })
    }

    /// The mean time per call in the tail.
    pub fn time_beyond(&self, window: &Window) -> Option<RareMean> {
        RareMean::of(self.values().map(|duration| window.time_beyond(duration)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_known_sample() {
        let sample: Sample = (1..=1000).map(f64::from).collect();
        let window = Tail::default().window(&sample).unwrap();
        assert_eq!(window, Window { from_ns: 900.0, to_ns: 990.0 });
        // 1 to 90 once each, and 90 for the last ten, over a thousand calls.
        assert_eq!(
            sample.time_beyond(&window).unwrap().mean.value,
            (90.0 * 91.0 / 2.0 + 10.0 * 90.0) / 1000.0
        );
        assert_eq!(sample.median().unwrap().value, 500.0);
    }

    #[test]
    fn too_few_values_give_no_tail() {
        assert_eq!(Tail::default().window(&Sample::from_iter([])), None);
        assert_eq!(Sample::from_iter([1.0; 9]).median(), None);
        assert_eq!(Sample::from_iter([1.0]).time_beyond(&Window { from_ns: 0.0, to_ns: 2.0 }), None);
        assert_eq!(Sample::from_iter([7.0]).quantile(0.0), Some(7.0));
    }
}
