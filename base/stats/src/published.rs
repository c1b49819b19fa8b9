//! Comparisons from printed figures alone: a mean with its error, or with a deviation.
//!
//! Two unpaired samples: a drift between them looks like a change, and no figure printed with the means can distinguish
//! the two. Intervals from here cover chance alone.

use crate::error::{StatsError, require_level};
use crate::interval::{Interval, normal_quantile, t_critical, t_two_sided_p};
use crate::paired::RatioEstimate;

/// A mean as printed, such as `1,171,186,635 ( +- 0.08% )` over 200 runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PrintedMean {
    /// The mean, above zero.
    pub mean: f64,
    /// Its standard error, in the same unit.
    pub standard_error: f64,
    /// The number of runs it was computed from: two or more.
    pub runs: usize,
}

impl PrintedMean {
    /// From a relative error in per cent, as `perf stat -r` prints it.
    pub fn with_percent(mean: f64, error_percent: f64, runs: usize) -> Self {
        Self { mean, standard_error: mean * error_percent / 100.0, runs }
    }

    /// From the standard deviation of single runs.
    pub fn with_deviation(mean: f64, deviation: f64, runs: usize) -> Self {
        Self { mean, standard_error: deviation / (runs as f64).sqrt(), runs }
    }

    fn relative_error(&self) -> Result<f64, StatsError> {
        if self.mean > 0.0 && self.mean.is_finite() && self.standard_error >= 0.0 {
            return Ok(self.standard_error / self.mean);
        }
        Err(StatsError::NotPositive { index: 0, value: self.mean })
    }
}

/// The ratio of two printed means. The error of ln(ratio) is √(r₁² + r₂²) for relative errors r (the
/// delta method), its degrees of freedom are Welch's (Biometrika 34, 1947).
///
/// # Errors
/// When a mean is not above zero, a side has fewer than two runs, or the level lies outside (0, 1).
pub fn ratio(before: PrintedMean, after: PrintedMean, level: f64) -> Result<RatioEstimate, StatsError> {
    require_level(level)?;
    for side in [before, after] {
        if side.runs < 2 {
            return Err(StatsError::TooFew { what: "a printed mean", needed: 2, got: side.runs });
        }
    }
    let (first, second) = (before.relative_error()?.powi(2), after.relative_error()?.powi(2));
    let log_error = (first + second).sqrt();
    let welch = first.powi(2) / (before.runs as f64 - 1.0) + second.powi(2) / (after.runs as f64 - 1.0);
    let degrees = if welch > 0.0 { (first + second).powi(2) / welch } else { f64::INFINITY };
    let centre = (after.mean / before.mean).ln();
    let half = t_critical(degrees, level) * log_error;
    let p_value = if log_error > 0.0 {
        t_two_sided_p(centre / log_error, degrees)
    } else {
        f64::from(u8::from(centre == 0.0))
    };
    Ok(RatioEstimate {
        ratio: centre.exp(),
        interval: Interval { low: (centre - half).exp(), high: (centre + half).exp(), level },
        log_error,
        degrees,
        p_value,
        blocks: before.runs.min(after.runs),
    })
}

/// The number of runs of each variant that a comparison of two unpaired samples needs to find this ratio of means with
/// probability 0.8. `deviations` are the relative deviations of single runs on each side.
pub fn runs_needed(ratio: f64, deviations: (f64, f64), level: f64) -> f64 {
    let wanted = normal_quantile(0.5 + level / 2.0) + normal_quantile(0.8);
    let spread = deviations.0.powi(2) + deviations.1.powi(2);
    (wanted.powi(2) * spread / ratio.ln().powi(2)).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_means_have_a_ratio_of_one_inside_the_interval() {
        let mean = PrintedMean::with_percent(100.0, 1.0, 10);
        let estimate = ratio(mean, mean, 0.95).unwrap();
        assert_eq!(estimate.ratio, 1.0);
        assert!(estimate.interval.contains(1.0));
        assert!((estimate.degrees - 18.0).abs() < 1e-9);
        assert!((estimate.p_value - 1.0).abs() < 1e-9);
    }

    #[test]
    fn impossible_figures_are_refused() {
        let good = PrintedMean::with_percent(100.0, 1.0, 10);
        assert!(ratio(PrintedMean { mean: 0.0, ..good }, good, 0.95).is_err());
        assert!(ratio(PrintedMean { runs: 1, ..good }, good, 0.95).is_err());
        assert!(ratio(PrintedMean { standard_error: f64::NAN, ..good }, good, 0.95).is_err());
    }

    #[test]
    fn smaller_effects_need_more_runs() {
        assert!(runs_needed(1.003, (0.01, 0.01), 0.95) > 8.0 * runs_needed(1.01, (0.01, 0.01), 0.95));
    }
}
