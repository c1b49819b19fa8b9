//! Confidence intervals and the distributions behind them.

use crate::error::{StatsError, require, require_level};
use crate::summary::{deviation, mean};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// A range that should hold the truth with probability `level`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence level, such as 0.95.
    pub level: f64,
}

impl Interval {
    /// True when `value` lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// True when the whole interval lies strictly inside `low..high`.
    pub fn lies_inside(&self, low: f64, high: f64) -> bool {
        low < self.low && self.high < high
    }

    /// Upper end minus lower end.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// Both ends through a function that grows with its argument.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Interval {
        Interval { low: f(self.low), high: f(self.high), level: self.level }
    }
}

/// An estimate with its interval, at a level that is stated elsewhere. In JSON: `value`, `low`, `high`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct IntervalEstimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl IntervalEstimate {
    /// True when the interval lies wholly above zero.
    pub fn is_above_zero(&self) -> bool {
        self.low > 0.0
    }

    /// True when the interval leaves out zero.
    pub fn excludes_zero(&self) -> bool {
        self.is_above_zero() || self.high < 0.0
    }

    /// True when the interval holds `truth`.
    pub fn covers(&self, truth: f64) -> bool {
        (self.low..=self.high).contains(&truth)
    }
}

/// The two-sided interval of a mean by Student's t.
///
/// # Errors
/// With fewer than two values, a value that is not finite, or a level outside (0, 1).
pub fn t_interval(sample: &[f64], level: f64) -> Result<Interval, StatsError> {
    require("an interval", sample, 2)?;
    require_level(level)?;
    let half =
        t_critical(sample.len() as f64 - 1.0, level) * deviation(sample) / (sample.len() as f64).sqrt();
    let centre = mean(sample);
    Ok(Interval { low: centre - half, high: centre + half, level })
}

/// The factor t with P(|T| ≤ t) = `level` for Student's t with `degrees` of freedom (above 0).
/// Infinite degrees give the normal distribution.
pub fn t_critical(degrees: f64, level: f64) -> f64 {
    let p = 0.5 + level / 2.0;
    match StudentsT::new(0.0, 1.0, degrees) {
        Ok(t) if degrees.is_finite() => t.inverse_cdf(p),
        _ => normal_quantile(p),
    }
}

/// P(|T| ≥ |t|) for Student's t with `degrees` of freedom (above 0).
pub fn t_two_sided_p(t: f64, degrees: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, degrees) {
        Ok(distribution) if degrees.is_finite() => 2.0 * distribution.cdf(-t.abs()),
        _ => 2.0 * Normal::standard().cdf(-t.abs()),
    }
}

/// The standard normal quantile at `p`.
pub fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// P(Z ≤ z) for a standard normal Z.
pub fn normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_are_those_of_the_tables() {
        assert!((t_critical(9.0, 0.95) - 2.262157).abs() < 1e-5);
        assert!((t_critical(1.0, 0.95) - 12.706205).abs() < 1e-5);
        assert!((t_critical(f64::INFINITY, 0.95) - 1.959964).abs() < 1e-5);
        assert!((t_two_sided_p(2.262157, 9.0) - 0.05).abs() < 1e-6);
    }

    #[test]
    fn t_interval_of_a_small_sample() {
        let interval = t_interval(&[1.0, 2.0, 3.0], 0.95).unwrap();
        let half = 4.302653 / 3f64.sqrt();
        assert!((interval.low - (2.0 - half)).abs() < 1e-5);
        assert!((interval.high - (2.0 + half)).abs() < 1e-5);
        assert!(interval.contains(2.0) && !interval.contains(5.0));
    }

    #[test]
    fn an_interval_that_touches_zero_does_not_exclude_it() {
        let estimate = |low, high| IntervalEstimate { value: (low + high) / 2.0, low, high };
        let excludes = |low, high| (estimate(low, high).is_above_zero(), estimate(low, high).excludes_zero());
        assert_eq!(excludes(0.5, 1.0), (true, true));
        assert_eq!(excludes(-1.0, -0.5), (false, true));
        assert_eq!(excludes(0.0, 1.0), (false, false));
        assert_eq!(excludes(-1.0, 1.0), (false, false));
        assert!(estimate(0.0, 1.0).covers(0.0) && !estimate(0.0, 1.0).covers(1.5));
    }

    #[test]
    fn levels_outside_their_range_are_refused() {
        assert!(t_interval(&[1.0, 2.0], 1.0).is_err());
        assert!(t_interval(&[1.0, 2.0], f64::NAN).is_err());
    }

    #[test]
    fn an_interval_that_ends_at_a_limit_does_not_lie_inside() {
        let lies_inside = |low, high| Interval { low, high, level: 0.95 }.lies_inside(0.0, 1.0);
        assert!(lies_inside(0.25, 0.75) && !lies_inside(0.0, 0.75) && !lies_inside(0.25, 1.0));
    }
}
