//! The difference of two independent samples, when no blocks pair their values.

use crate::bootstrap::{Estimate, Resampled, Resampling, resample};
use crate::error::{StatsError, require};
use crate::summary::{deviation, mean, quantile_sorted, sorted};

/// The statistic that is compared.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Of {
    /// The arithmetic mean.
    Mean,
    /// The quantile at this share, from 0 to 1.
    Quantile(f64),
}

/// `second` less `first`, with a bootstrap interval. Both samples are resampled together, so that the number of values
/// in each varies too, as it does where chance assigns events to the one or the other. Values are sampled one by one
/// and the plan's run length is ignored.
///
/// # Errors
/// With fewer than two values on a side, one that is not finite, or a plan that [`resample`] refuses.
///
/// ```
/// use lineup_stats::{bootstrap::Resampling, contrast::{Of, difference}};
/// let (slow, fast) = ([12.0, 13.0, 12.5, 13.5, 12.2], [2.0, 3.0, 2.5, 3.5, 2.2]);
/// let found = difference(&slow, &fast, Of::Mean, &Resampling::default())?;
/// assert!((found.estimate.value + 10.0).abs() < 1e-9 && found.interval.high < 0.0);
/// # Ok::<(), lineup_stats::StatsError>(())
/// ```
pub fn difference(first: &[f64], second: &[f64], of: Of, plan: &Resampling) -> Result<Resampled, StatsError> {
    require("a difference", first, 2)?;
    require("a difference", second, 2)?;
    if let Of::Quantile(p) = of
        && !(0.0..=1.0).contains(&p)
    {
        return Err(StatsError::Parameter { name: "the quantile", value: p, range: "from 0 to 1" });
    }
    let whole = statistic(&sorted(second), of) - statistic(&sorted(first), of);
    let error = (deviation(first).powi(2) / first.len() as f64
        + deviation(second).powi(2) / second.len() as f64)
        .sqrt();
    let (first, second) = (sorted(first), sorted(second));
    let border = first.len();
    let plan = Resampling { run_length: 1, ..*plan };
    resample(border + second.len(), &plan, |picked| {
        let mut counts = vec![0u32; border + second.len()];
        picked.iter().for_each(|index| counts[*index] += 1);
        let (low, high) = counts.split_at(border);
        let value = drawn(&second, high, of).zip(drawn(&first, low, of)).map(|(b, a)| b - a);
        // A resample without a value on one side adds no information.
        Estimate { value: value.unwrap_or(whole), error }
    })
}

fn statistic(ordered: &[f64], of: Of) -> f64 {
    match of {
        Of::Mean => mean(ordered),
        Of::Quantile(p) => quantile_sorted(ordered, p),
    }
}

/// The statistic of sorted values, each with its count in the resample; `None` when all counts are zero.
fn drawn(ordered: &[f64], counts: &[u32], of: Of) -> Option<f64> {
    let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    if total == 0 {
        return None;
    }
    match of {
        Of::Mean => {
            Some(ordered.iter().zip(counts).map(|(v, n)| v * f64::from(*n)).sum::<f64>() / total as f64)
        }
        Of::Quantile(p) => {
            let position = p * (total - 1) as f64;
            let at = |rank: u64| {
                let mut seen = 0;
                let found = ordered.iter().zip(counts).find(|(_, count)| {
                    seen += u64::from(**count);
                    seen > rank
                });
                found.map(|(value, _)| *value)
            };
            let (below, above) = (at(position.floor() as u64)?, at(position.ceil() as u64)?);
            Some(below + (above - below) * position.fract())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Resampling {
        Resampling { resamples: 400, ..Resampling::default() }
    }

    #[test]
    fn the_whole_sample_drawn_once_gives_its_own_statistics() {
        let ordered = [1.0, 2.0, 4.0, 8.0];
        for of in [Of::Mean, Of::Quantile(0.5), Of::Quantile(0.9), Of::Quantile(1.0)] {
            assert_eq!(drawn(&ordered, &[1; 4], of), Some(statistic(&ordered, of)));
        }
        assert_eq!(drawn(&ordered, &[0, 2, 0, 2], Of::Quantile(0.5)), Some(5.0));
        assert_eq!(drawn(&ordered, &[0; 4], Of::Mean), None);
    }

    #[test]
    fn a_shift_is_found_and_none_is_not() {
        let first: Vec<f64> = (0..80).map(|i| f64::from(i % 20)).collect();
        let shifted: Vec<f64> = first.iter().map(|v| v + 50.0).collect();
        let median = difference(&first, &shifted, Of::Quantile(0.5), &plan()).unwrap();
        assert!(median.interval.contains(50.0) && median.interval.low > 40.0, "{median:?}");
        assert!(difference(&first, &first, Of::Mean, &plan()).unwrap().interval.contains(0.0));
    }

    #[test]
    fn bad_samples_are_refused() {
        assert!(difference(&[1.0], &[1.0, 2.0], Of::Mean, &plan()).is_err());
        assert!(difference(&[1.0, f64::NAN], &[1.0, 2.0], Of::Mean, &plan()).is_err());
        assert!(difference(&[1.0, 2.0], &[1.0, 2.0], Of::Quantile(2.0), &plan()).is_err());
    }

    #[test]
    fn the_interval_of_means_is_about_welchs() {
        let first: Vec<f64> = (0..60).map(|i| f64::from(i % 12)).collect();
        let second: Vec<f64> = (0..40).map(|i| 10.0 + f64::from(i % 20)).collect();
        let plan = Resampling { resamples: 4000, ..Resampling::default() };
        let found = difference(&first, &second, Of::Mean, &plan).unwrap();
        // Means 5.5 and 19.5; variances 715/59 and 1330/39 by n − 1; √(715/59/60 + 1330/39/40).
        assert!((found.estimate.value - 14.0).abs() < 1e-9);
        assert!((found.estimate.error - 1.026_91).abs() < 1e-4, "{}", found.estimate.error);
        let half = found.interval.width() / 2.0;
        assert!(half > 1.85 && half < 2.25, "{:?}", found.interval);
    }

    #[test]
    fn the_ends_of_a_sample_are_quantiles_too() {
        let (first, second) = ([1.0, 2.0, 3.0], [2.0, 4.0, 9.0]);
        for (share, expected) in [(0.0, 1.0), (1.0, 6.0)] {
            let found = difference(&first, &second, Of::Quantile(share), &plan()).unwrap();
            assert_eq!(found.estimate.value, expected);
        }
    }
}
