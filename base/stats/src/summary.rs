//! A summary of one sample: centre, spread, quantiles.

use crate::error::{StatsError, require};

/// A sample in a few numbers. All values carry the sample's unit.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// The number of values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with the n − 1 divisor; `None` for a single value.
    pub deviation: Option<f64>,
    /// The smallest, the quartiles and the largest: 0, 25, 50, 75 and 100 %.
    pub quartiles: [f64; 5],
}

impl Summary {
    /// Summarises a sample.
    ///
    /// # Errors
    /// When it is empty or holds a value that is not finite.
    ///
    /// ```
    /// let summary = lineup_stats::summary::Summary::of(&[4.0, 1.0, 3.0, 2.0])?;
    /// assert_eq!(summary.quartiles, [1.0, 1.75, 2.5, 3.25, 4.0]);
    /// # Ok::<(), lineup_stats::StatsError>(())
    /// ```
    pub fn of(sample: &[f64]) -> Result<Self, StatsError> {
        require("a summary", sample, 1)?;
        let ordered = sorted(sample);
        Ok(Self {
            n: sample.len(),
            mean: mean(sample),
            deviation: (sample.len() > 1).then(|| deviation(sample)),
            quartiles: [0.0, 0.25, 0.5, 0.75, 1.0].map(|p| quantile_sorted(&ordered, p)),
        })
    }

    /// The standard error of the mean, s/√n: `None` for a single value.
    pub fn standard_error(&self) -> Option<f64> {
        self.deviation.map(|deviation| deviation / (self.n as f64).sqrt())
    }

    /// The smallest value.
    pub fn min(&self) -> f64 {
        self.quartiles[0]
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.quartiles[2]
    }

    /// The largest value.
    pub fn max(&self) -> f64 {
        self.quartiles[4]
    }
}

/// The quantile of a sample at `p` from 0 to 1 by linear interpolation between order statistics at
/// position p·(n − 1) (definition 7 of Hyndman and Fan, The American Statistician 50, 1996).
///
/// # Errors
/// When the sample is empty or not finite, or `p` lies outside 0 to 1.
pub fn quantile(sample: &[f64], p: f64) -> Result<f64, StatsError> {
    require("a quantile", sample, 1)?;
    if !(0.0..=1.0).contains(&p) {
        return Err(StatsError::Parameter { name: "the quantile", value: p, range: "from 0 to 1" });
    }
    Ok(quantile_sorted(&sorted(sample), p))
}

/// The mean of a sample that is known not to be empty.
pub(crate) fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

/// Standard deviation with the n − 1 divisor, of two values or more.
pub(crate) fn deviation(sample: &[f64]) -> f64 {
    let centre = mean(sample);
    let squares: f64 = sample.iter().map(|value| (value - centre).powi(2)).sum();
    (squares / (sample.len() as f64 - 1.0)).sqrt()
}

/// A sorted copy.
pub(crate) fn sorted(sample: &[f64]) -> Vec<f64> {
    let mut ordered = sample.to_vec();
    ordered.sort_by(f64::total_cmp);
    ordered
}

/// [`quantile`] of a sample that is sorted and not empty.
pub(crate) fn quantile_sorted(ordered: &[f64], p: f64) -> f64 {
    let last = ordered.len().saturating_sub(1);
    let position = p.clamp(0.0, 1.0) * last as f64;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let weight = position - below as f64;
    ordered[below] * (1.0 - weight) + ordered[above] * weight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_no_deviation() {
        let summary = Summary::of(&[3.0]).unwrap();
        assert_eq!(summary.deviation, None);
        assert_eq!(summary.standard_error(), None);
        assert_eq!(summary.quartiles, [3.0; 5]);
    }

    #[test]
    fn deviation_uses_n_minus_one() {
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!(summary.mean, 5.0);
        assert!((summary.deviation.unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn bad_samples_are_refused_with_the_place() {
        assert_eq!(
            Summary::of(&[]).unwrap_err(),
            StatsError::TooFew { what: "a summary", needed: 1, got: 0 }
        );
        assert!(matches!(Summary::of(&[1.0, f64::NAN]), Err(StatsError::NotFinite { index: 1, .. })));
        assert!(matches!(quantile(&[1.0], 1.5), Err(StatsError::Parameter { .. })));
    }

    #[test]
    fn quantiles_agree_with_the_definition() {
        let sample = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];
        assert!((quantile(&sample, 0.1).unwrap() - 1.9).abs() < 1e-12);
        assert!((quantile(&sample, 0.9).unwrap() - 9.1).abs() < 1e-12);
    }
}
