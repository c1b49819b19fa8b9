//! Counts per range of values, for drawing.

use crate::error::{StatsError, require};
use crate::summary::{quantile_sorted, sorted};

/// Counts in bins of equal width.
#[derive(Clone, PartialEq, Debug)]
pub struct Histogram {
    /// Lower end of the first bin, in the sample's unit.
    pub start: f64,
    /// Width of every bin, in the sample's unit.
    pub bin_width: f64,
    /// Values per bin. The last bin includes its upper end.
    pub counts: Vec<u64>,
}

/// No histogram has more bins than this.
const MAX_BINS: usize = 200;

impl Histogram {
    /// A histogram whose bin width follows Freedman and Diaconis (2·IQR/∛n), between 1 and 200 bins.
    ///
    /// # Errors
    /// When the sample is empty or holds a value that is not finite.
    pub fn of(sample: &[f64]) -> Result<Self, StatsError> {
        require("a histogram", sample, 1)?;
        let ordered = sorted(sample);
        let (low, high) = (ordered[0], ordered[ordered.len() - 1]);
        let spread = quantile_sorted(&ordered, 0.75) - quantile_sorted(&ordered, 0.25);
        let wanted = 2.0 * spread / (sample.len() as f64).cbrt();
        let bins = if wanted > 0.0 { ((high - low) / wanted).ceil() } else { 10.0 };
        Self::with_range(sample, low, high, (bins as usize).clamp(1, MAX_BINS))
    }

    /// A histogram of `bins` (1 to 200) equal bins over a given range, so that two samples can be laid over
    /// each other. Values outside the range are not counted.
    ///
    /// # Errors
    /// When a value is not finite, the range is empty of numbers, or `bins` is out of range.
    pub fn with_range(sample: &[f64], low: f64, high: f64, bins: usize) -> Result<Self, StatsError> {
        require("a histogram", sample, 0)?;
        require("a histogram", &[low, high], 2)?;
        if bins == 0 || bins > MAX_BINS {
            return Err(StatsError::Parameter {
                name: "the number of bins",
                value: bins as f64,
                range: "from 1 to 200",
            });
        }
        let bin_width = if high > low { (high - low) / bins as f64 } else { 1.0 };
        let mut counts = vec![0; bins];
        for value in sample.iter().filter(|value| (low..=high).contains(*value)) {
            let bin = (((value - low) / bin_width) as usize).min(bins - 1);
            counts[bin] += 1;
        }
        Ok(Self { start: low, bin_width, counts })
    }

    /// The number of values counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lands_in_one_bin() {
        let sample: Vec<f64> = (0..1000).map(|i| f64::from(i) / 10.0).collect();
        let histogram = Histogram::of(&sample).unwrap();
        assert_eq!(histogram.total(), 1000);
        assert_eq!(histogram.start, 0.0);
        let end = histogram.start + histogram.bin_width * histogram.counts.len() as f64;
        assert!((end - 99.9).abs() < 1e-9);
    }

    #[test]
    fn equal_values_make_one_full_bin() {
        let histogram = Histogram::of(&[5.0; 12]).unwrap();
        assert_eq!(histogram.counts.iter().filter(|count| **count > 0).count(), 1);
        assert_eq!(histogram.total(), 12);
    }

    #[test]
    fn values_outside_a_given_range_are_left_out() {
        let histogram = Histogram::with_range(&[-1.0, 0.0, 0.5, 1.0, 2.0], 0.0, 1.0, 2).unwrap();
        assert_eq!(histogram.counts, [1, 2]);
    }

    #[test]
    fn bins_are_as_wide_as_freedman_and_diaconis_say() {
        // 2 · 49.95 ÷ ∛1000 is 9.99, a tenth of the range.
        let even: Vec<f64> = (0..1000).map(|i| 50.0 + f64::from(i) / 10.0).collect();
        assert_eq!(Histogram::of(&even).unwrap().counts, [100; 10]);
        // Without a spread of the middle half there are ten.
        let mut spiked = vec![5.0; 98];
        spiked.extend([0.0, 10.0]);
        assert_eq!(Histogram::of(&spiked).unwrap().counts.len(), 10);
    }

    #[test]
    fn a_range_of_one_value_has_bins_of_width_one() {
        let histogram = Histogram::with_range(&[5.0, 6.0], 5.0, 5.0, 3).unwrap();
        assert_eq!((histogram.bin_width, histogram.total()), (1.0, 1));
    }

    #[test]
    fn as_many_bins_as_the_limit_are_allowed_and_no_more() {
        let bins = |bins| Histogram::with_range(&[5.0], 0.0, 10.0, bins).map(|found| found.counts.len());
        assert_eq!(bins(MAX_BINS).unwrap(), MAX_BINS);
        assert!(bins(MAX_BINS + 1).is_err() && bins(0).is_err());
    }
}
