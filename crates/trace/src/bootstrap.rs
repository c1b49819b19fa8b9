//! Quantiles and tail means with intervals, by the Poisson bootstrap.

use serde::Serialize;

/// An estimate with its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Estimate {
    /// True when the interval lies wholly above zero.
    pub fn is_above_zero(&self) -> bool {
        self.low > 0.0
    }

    /// True when the interval holds `truth`.
    pub fn covers(&self, truth: f64) -> bool {
        (self.low..=self.high).contains(&truth)
    }
}

/// Which calls make up the tail: those between two quantiles. The slowest of all are left out, because on a shared
/// machine they are the scheduler's.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Tail {
    /// Lower quantile.
    pub from: f64,
    /// Upper quantile.
    pub to: f64,
}

impl Default for Tail {
    /// The slowest tenth without the slowest 0.5 %.
    fn default() -> Self {
        Self { from: 0.90, to: 0.995 }
    }
}

impl Tail {
    /// A tail, or `None` unless `0.5 <= from < to <= 1`.
    pub fn new(from: f64, to: f64) -> Option<Self> {
        (from >= 0.5 && from < to && to <= 1.0).then_some(Self { from, to })
    }
}

/// Resamples drawn.
pub const RESAMPLES: usize = 1000;

/// A sample in ascending order.
#[derive(Clone, Debug)]
pub struct Sample(Vec<f64>);

/// What is computed of a sample, or of a resample of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shape {
    /// The median.
    pub median: f64,
    /// The mean of the tail.
    pub tail_mean: f64,
}

impl Shape {
    /// How far the tail lies above the median.
    pub fn excess(&self) -> f64 {
        self.tail_mean - self.median
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        Self(sorted)
    }
}

impl Sample {
    /// How many values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True without a value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Median and tail mean; `None` when empty.
    pub fn shape(&self, tail: Tail) -> Option<Shape> {
        self.weighted_shape(tail, &mut || 1)
    }

    /// The shape of one resample: every value taken a Poisson number of times.
    pub fn resampled_shape(&self, tail: Tail, random: &mut Random) -> Option<Shape> {
        self.weighted_shape(tail, &mut || random.poisson())
    }

    fn weighted_shape(&self, tail: Tail, weight: &mut dyn FnMut() -> u32) -> Option<Shape> {
        let weights: Vec<u32> = self.0.iter().map(|_| weight()).collect();
        let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
        if total == 0.0 {
            return None;
        }
        let (from, to, middle) = (tail.from * total, tail.to * total, total / 2.0);
        let mut seen = 0.0;
        let mut median = None;
        let mut tail_sum = 0.0;
        for (value, weight) in self.0.iter().zip(&weights) {
            let next = seen + f64::from(*weight);
            if median.is_none() && next >= middle {
                median = Some(*value);
            }
            tail_sum += value * (next.min(to) - seen.max(from)).max(0.0);
            seen = next;
        }
        Some(Shape { median: median?, tail_mean: tail_sum / (to - from) })
    }
}

/// A small generator with a fixed seed: the same file gives the same intervals.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A Poisson number of mean 1, by inversion.
    fn poisson(&mut self) -> u32 {
        let uniform = (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut probability = (-1.0f64).exp();
        let mut cumulative = probability;
        let mut count = 0;
        while uniform > cumulative && count < 20 {
            count += 1;
            probability /= f64::from(count);
            cumulative += probability;
        }
        count
    }
}

/// The estimate `value` with the interval that `resampled` values give.
pub fn estimate(value: f64, mut resampled: Vec<f64>) -> Estimate {
    resampled.sort_by(f64::total_cmp);
    let at = |q: f64| {
        let rank = (q * resampled.len() as f64) as usize;
        resampled.get(rank.min(resampled.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    };
    Estimate { value, low: at(0.025), high: at(0.975) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape_of_a_known_sample() {
        let sample: Sample = (1..=1000).map(f64::from).collect();
        let shape = sample.shape(Tail::default()).unwrap();
        assert_eq!(shape.median, 500.0);
        assert!((shape.tail_mean - 948.0).abs() < 1.0, "{shape:?}");
        assert!(Sample::from_iter([]).shape(Tail::default()).is_none());
    }

    #[test]
    fn the_interval_of_a_median_covers_it_about_as_often_as_it_says() {
        let mut random = Random::new(7);
        let mut covered = 0;
        for _ in 0..200 {
            let sample: Sample = (0..200).map(|_| (random.next_u64() % 1_000) as f64).collect();
            let value = sample.shape(Tail::default()).unwrap().median;
            let resampled = (0..200)
                .filter_map(|_| sample.resampled_shape(Tail::default(), &mut random))
                .map(|shape| shape.median)
                .collect();
            covered += usize::from(estimate(value, resampled).covers(499.5));
        }
        assert!((180..=200).contains(&covered), "{covered} of 200");
    }
}
