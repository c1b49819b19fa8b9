//! Estimates with intervals, from means and medians of independent samples: closed forms, so that any confidence level
//! can be asked for and the same file gives the same numbers.

use lineup_stats::interval::{IntervalEstimate, normal_quantile, t_critical};
use serde::Serialize;

/// A confidence level.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(transparent)]
pub struct Level(f64);

impl Default for Level {
    /// 95 %.
    fn default() -> Self {
        Self(0.95)
    }
}

impl Level {
    /// A level, or `None` unless `0.5 <= level < 1`.
    pub fn new(level: f64) -> Option<Self> {
        (0.5..1.0).contains(&level).then_some(Self(level))
    }

    /// As a fraction of one.
    pub fn fraction(self) -> f64 {
        self.0
    }
}

/// A statistic of one sample, with the variance of its own error.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Moment {
    /// The statistic.
    pub value: f64,
    /// Its variance: that of a single value divided by their number, for a mean.
    pub variance: f64,
    /// The number of values it rests on.
    pub count: usize,
}

impl Moment {
    /// The mean of `values`; `None` for fewer than two.
    pub fn mean(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let count = values.clone().count();
        let mean = values.clone().sum::<f64>() / count as f64;
        let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
        (count >= 2).then(|| Self {
            value: mean,
            variance: squares / (count as f64 - 1.0) / count as f64,
            count,
        })
    }
}

/// `a - b`, both times `scale`, of independent samples: the normal interval.
pub fn difference(a: &Moment, b: &Moment, scale: f64, level: Level) -> IntervalEstimate {
    let value = (a.value - b.value) * scale;
    let half = normal_quantile(0.5 + level.0 / 2.0) * (a.variance + b.variance).sqrt() * scale.abs();
    IntervalEstimate { value, low: value - half, high: value + half }
}

/// The mean of values that are zero but for a few: times beyond a threshold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RareMean {
    /// The mean.
    pub mean: Moment,
    /// The mean of the squares.
    pub mean_square: f64,
}

impl RareMean {
    /// The mean of `values`, none below zero; `None` for fewer than two.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let mean = Moment::mean(values.clone())?;
        let mean_square = values.map(|value| value * value).sum::<f64>() / mean.count as f64;
        Some(Self { mean, mean_square })
    }

    fn sums(&self) -> (f64, f64) {
        let count = self.mean.count as f64;
        (self.mean.value * count, self.mean_square * count)
    }

    /// The size of the nonzero values, each weighted by itself, after one more is added that is as large as those of
    /// both samples together. A removal that works leaves too few values for an estimate from them alone.
    fn severity(&self, other: &Self) -> f64 {
        let (own, own_squares) = self.sums();
        let (others, other_squares) = other.sums();
        let pooled = (own_squares + other_squares) / (own + others);
        (own_squares + pooled * pooled) / (own + pooled)
    }
}

/// The ratio `a / b` of the means of independent samples: the ratios that a score test would not reject. As Wilson's
/// interval for a proportion (JASA 22, 1927), it takes the variance of `a` from the tested ratio and not from the few
/// values seen. So it holds when next to no values are left. As Fieller's for a ratio (JRSS B 16, 1954), it does not
/// pretend that `b` is known. `None` where `b` is not above zero at this level: then no bound exists.
pub fn ratio(a: &RareMean, b: &RareMean, level: Level) -> Option<IntervalEstimate> {
    let (numerator, denominator) = (a.mean.value, b.mean.value);
    let count = a.mean.count as f64;
    let t2 = t_critical(a.mean.count.min(b.mean.count) as f64 - 1.0, level.0).powi(2);
    // For a mean ρ·b, the variance is (severity · ρ·b − (ρ·b)²) / count; the bounds solve a quadratic equation in ρ.
    let square = denominator.powi(2) - t2 * (b.mean.variance - denominator.powi(2) / count);
    let linear = denominator * (2.0 * numerator + t2 * a.severity(b) / count);
    let known = denominator.powi(2) > t2 * b.mean.variance;
    if !(denominator > 0.0 && known) {
        return None;
    }
    let root = (linear * linear - 4.0 * square * numerator.powi(2)).max(0.0).sqrt();
    let value = numerator / denominator;
    Some(IntervalEstimate {
        value,
        low: (linear - root) / (2.0 * square),
        high: (linear + root) / (2.0 * square),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `some` values of `size` among `count`, the rest zero.
    fn rare(some: usize, size: f64, count: usize) -> RareMean {
        RareMean::of((0..count).map(|index| if index < some { size } else { 0.0 })).unwrap()
    }

    #[test]
    fn beside_a_large_sample_a_ratio_has_wilsons_interval() {
        // 10 of 100 against one half: Wilson's 95 % interval of 10 of 100 is 0.0552 to 0.1744.
        let share = ratio(&rare(10, 1.0, 100), &rare(5_000_000, 1.0, 10_000_000), Level::default()).unwrap();
        assert!((share.value - 0.2).abs() < 1e-12);
        assert!((share.low - 0.1104).abs() < 0.003 && (share.high - 0.3488).abs() < 0.003, "{share:?}");
    }

    #[test]
    fn nothing_left_is_a_ratio_of_zero_with_an_upper_bound() {
        let share = ratio(&rare(0, 1.0, 200), &rare(100, 1.0, 1_000), Level::default()).unwrap();
        assert_eq!((share.value, share.low), (0.0, 0.0));
        assert!(share.high > 0.1 && share.high < 0.3, "{share:?}");
    }

    #[test]
    fn a_ratio_to_what_may_be_zero_is_refused() {
        assert_eq!(ratio(&rare(50, 1.0, 100), &rare(1, 1.0, 100), Level::default()), None);
        assert_eq!(ratio(&rare(50, 1.0, 100), &rare(0, 1.0, 100), Level::default()), None);
    }

    #[test]
    fn a_higher_level_gives_a_wider_interval() {
        let mean = rare(50, 3.0, 500);
        let narrow = ratio(&mean, &mean, Level::default()).unwrap();
        let wide = ratio(&mean, &mean, Level::new(0.9999).unwrap()).unwrap();
        assert!(wide.low < narrow.low && narrow.high < wide.high);
        assert_eq!(Level::new(1.0), None);
    }
}
