//! Two variants measured side by side: the ratio of their costs and its interval.

use crate::bootstrap::{self, Estimate, Resampling};
use crate::error::{StatsError, require, require_level};
use crate::interval::{Interval, t_critical, t_two_sided_p};
use crate::summary::{deviation, mean};

/// Measurements in blocks that each hold both variants; per block and variant, the mean of its runs.
#[derive(Clone, PartialEq, Debug)]
pub struct PairedBlocks {
    before: Vec<f64>,
    after: Vec<f64>,
}

/// The cost of *after* as a multiple of *before*.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RatioEstimate {
    /// after ÷ before; 0.97 is 3 % less.
    pub ratio: f64,
    /// The interval of the ratio.
    pub interval: Interval,
    /// Standard error of ln(ratio).
    pub log_error: f64,
    /// Degrees of freedom behind `log_error`.
    pub degrees: f64,
    /// P-value of "no difference" by the paired t test on ln(ratio).
    pub p_value: f64,
    /// The number of blocks it rests on.
    pub blocks: usize,
}

/// The cost of *after* minus the cost of *before*, in the sample's unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DifferenceEstimate {
    /// after − before.
    pub difference: f64,
    /// The interval of the difference.
    pub interval: Interval,
    /// P-value of "no difference" by the paired t test.
    pub p_value: f64,
    /// The number of blocks it rests on.
    pub blocks: usize,
}

impl PairedBlocks {
    /// Blocks from the runs in each: for ABBA, two of each variant.
    ///
    /// # Errors
    /// When a block lacks a variant, or a value is not finite.
    pub fn from_runs(blocks: &[(Vec<f64>, Vec<f64>)]) -> Result<Self, StatsError> {
        for (index, (before, after)) in blocks.iter().enumerate() {
            if before.is_empty() || after.is_empty() {
                return Err(StatsError::Unpaired { block: index, before: before.len(), after: after.len() });
            }
        }
        let before = blocks.iter().map(|(before, _)| mean(before)).collect();
        let after = blocks.iter().map(|(_, after)| mean(after)).collect();
        Self::from_means(before, after)
    }

    /// Blocks from one value per variant and block.
    ///
    /// # Errors
    /// When the two differ in length, or a value is not finite.
    pub fn from_means(before: Vec<f64>, after: Vec<f64>) -> Result<Self, StatsError> {
        if before.len() != after.len() {
            let block = before.len().min(after.len());
            return Err(StatsError::Unpaired { block, before: before.len(), after: after.len() });
        }
        require("a comparison", &before, 0)?;
        require("a comparison", &after, 0)?;
        Ok(Self { before, after })
    }

    /// The number of blocks.
    pub fn len(&self) -> usize {
        self.before.len()
    }

    /// True when there is no block.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    /// Per block, the cost of each variant.
    pub fn means(&self) -> (&[f64], &[f64]) {
        (&self.before, &self.after)
    }

    /// Per block, after − before.
    pub fn differences(&self) -> Vec<f64> {
        self.after.iter().zip(&self.before).map(|(after, before)| after - before).collect()
    }

    /// Per block, ln(after ÷ before).
    ///
    /// # Errors
    /// When a value is zero or negative.
    pub fn log_ratios(&self) -> Result<Vec<f64>, StatsError> {
        for side in [&self.before, &self.after] {
            if let Some((index, &value)) = side.iter().enumerate().find(|(_, value)| **value <= 0.0) {
                return Err(StatsError::NotPositive { index, value });
            }
        }
        Ok(self.after.iter().zip(&self.before).map(|(after, before)| (after / before).ln()).collect())
    }

    /// The typical ratio: the geometric mean over the blocks, with the t interval of its logarithm.
    /// Blocks are compared as ratios, so that a common disturbance of a block cancels and one
    /// outlier weighs no more than its logarithm.
    ///
    /// # Errors
    /// With fewer than two blocks, a value at or below zero, or a level outside (0, 1).
    pub fn ratio(&self, level: f64) -> Result<RatioEstimate, StatsError> {
        require_level(level)?;
        let logs = self.log_ratios()?;
        require("a ratio", &logs, 2)?;
        let degrees = logs.len() as f64 - 1.0;
        let centre = mean(&logs);
        let log_error = deviation(&logs) / (logs.len() as f64).sqrt();
        let half = t_critical(degrees, level) * log_error;
        Ok(RatioEstimate {
            ratio: centre.exp(),
            interval: Interval { low: (centre - half).exp(), high: (centre + half).exp(), level },
            log_error,
            degrees,
            p_value: paired_p(centre, log_error, degrees),
            blocks: logs.len(),
        })
    }

    /// The ratio of the totals, Σafter ÷ Σbefore, with a block bootstrap that forms the ratio inside
    /// every resample. The standard error of a resample is that of the linearised ratio.
    ///
    /// # Errors
    /// As [`bootstrap::resample`]; also when a value is zero or negative.
    pub fn ratio_of_totals(&self, plan: &Resampling) -> Result<RatioEstimate, StatsError> {
        self.log_ratios()?;
        let drawn = bootstrap::resample(self.len(), plan, |picked| self.log_total_ratio(picked))?;
        let degrees = self.len() as f64 - 1.0;
        Ok(RatioEstimate {
            ratio: drawn.estimate.value.exp(),
            interval: drawn.interval.map(f64::exp),
            log_error: drawn.estimate.error,
            degrees,
            p_value: paired_p(drawn.estimate.value, drawn.estimate.error, degrees),
            blocks: self.len(),
        })
    }

    /// ln(Σafter ÷ Σbefore) over the picked blocks. With a = before ÷ mean(before) and b alike, its
    /// standard error is sd(b − a) ÷ √n (the delta method).
    fn log_total_ratio(&self, picked: &[usize]) -> Estimate {
        let n = picked.len() as f64;
        let before = picked.iter().map(|&index| self.before[index]).sum::<f64>() / n;
        let after = picked.iter().map(|&index| self.after[index]).sum::<f64>() / n;
        let squares: f64 = picked
            .iter()
            .map(|&index| (self.after[index] / after - self.before[index] / before).powi(2))
            .sum();
        Estimate { value: (after / before).ln(), error: (squares / (n - 1.0) / n).sqrt() }
    }

    /// The mean difference with its t interval: for counts that may be zero.
    ///
    /// # Errors
    /// With fewer than two blocks or a level outside (0, 1).
    pub fn difference(&self, level: f64) -> Result<DifferenceEstimate, StatsError> {
        let differences = self.differences();
        let interval = crate::interval::t_interval(&differences, level)?;
        let error = deviation(&differences) / (differences.len() as f64).sqrt();
        let difference = mean(&differences);
        let p_value = paired_p(difference, error, differences.len() as f64 - 1.0);
        Ok(DifferenceEstimate { difference, interval, p_value, blocks: differences.len() })
    }
}

/// The p-value of a mean; without any spread it is 1 at zero and 0 elsewhere.
fn paired_p(centre: f64, error: f64, degrees: f64) -> f64 {
    if error > 0.0 {
        t_two_sided_p(centre / error, degrees)
    } else if centre == 0.0 {
        1.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks() -> PairedBlocks {
        PairedBlocks::from_means(vec![100.0, 110.0, 90.0, 105.0], vec![98.0, 107.0, 89.0, 102.0]).unwrap()
    }

    #[test]
    fn the_ratio_is_the_geometric_mean_of_the_block_ratios() {
        let estimate = blocks().ratio(0.95).unwrap();
        let product: f64 = [0.98, 107.0 / 110.0, 89.0 / 90.0, 102.0 / 105.0].iter().product();
        assert!((estimate.ratio - product.powf(0.25)).abs() < 1e-12);
        assert!(estimate.interval.contains(estimate.ratio));
        assert!(!estimate.interval.contains(1.0));
        assert!(estimate.p_value < 0.05);
    }

    #[test]
    fn a_disturbance_common_to_a_block_cancels() {
        let disturbed = PairedBlocks::from_means(vec![100.0, 300.0, 50.0], vec![97.0, 291.0, 48.5]).unwrap();
        let estimate = disturbed.ratio(0.95).unwrap();
        assert!((estimate.ratio - 0.97).abs() < 1e-12);
        assert!(estimate.interval.width() < 1e-9);
    }

    #[test]
    fn identical_variants_have_a_p_value_of_one() {
        let same = PairedBlocks::from_means(vec![5.0, 6.0, 7.0], vec![5.0, 6.0, 7.0]).unwrap();
        assert_eq!(same.ratio(0.95).unwrap().p_value, 1.0);
        assert_eq!(same.difference(0.95).unwrap().p_value, 1.0);
    }

    #[test]
    fn the_bootstrap_forms_its_ratio_from_the_totals() {
        let estimate = blocks().ratio_of_totals(&Resampling::default()).unwrap();
        assert!((estimate.ratio - 396.0 / 405.0).abs() < 1e-12);
        assert!(estimate.interval.contains(estimate.ratio));
    }

    #[test]
    fn counts_of_zero_have_a_difference_but_no_ratio() {
        let zeros = PairedBlocks::from_means(vec![0.0, 0.0, 1.0], vec![2.0, 3.0, 3.0]).unwrap();
        assert!(matches!(zeros.ratio(0.95), Err(StatsError::NotPositive { index: 0, .. })));
        assert!((zeros.difference(0.95).unwrap().difference - 7.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_block_without_a_variant_is_refused() {
        let error = PairedBlocks::from_runs(&[(vec![1.0], vec![1.0]), (vec![1.0], vec![])]).unwrap_err();
        assert_eq!(error, StatsError::Unpaired { block: 1, before: 1, after: 0 });
    }

    fn close(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 1e-9
    }

    /// Expected values by hand, with the closed form of Student's t for three degrees of freedom.
    #[test]
    fn intervals_and_p_values_are_students() {
        let ratio = blocks().ratio(0.95).unwrap();
        assert!(close(ratio.log_error, 0.004_094_845_357_657_062));
        assert!(close(ratio.p_value, 0.012_619_207_424_268));
        assert!((ratio.interval.low - 0.965_571_239_732).abs() < 1e-9);
        assert!((ratio.interval.high - 0.991_067_986_023).abs() < 1e-9);
        let difference = blocks().difference(0.95).unwrap();
        assert_eq!(difference.difference, -2.25);
        assert!(close(difference.p_value, 0.018_219_854_743_222));
        assert!((difference.interval.low + 3.773_480_180_8).abs() < 1e-9);
        assert!((difference.interval.high + 0.726_519_819_2).abs() < 1e-9);
    }

    /// By hand: the standard deviation of after ÷ mean(after) − before ÷ mean(before), over √4.
    #[test]
    fn the_error_of_totals_is_the_linearised_ratios() {
        let estimate = blocks().ratio_of_totals(&Resampling::default()).unwrap();
        assert!(close(estimate.log_error, 0.003_914_786_669_745));
        assert!(close(estimate.p_value, 0.010_497_825_030_159));
        assert_eq!((estimate.degrees, estimate.blocks), (3.0, 4));
    }

    #[test]
    fn a_change_without_any_spread_is_certain() {
        let shifted = PairedBlocks::from_means(vec![1.0, 2.0, 4.0], vec![2.0, 4.0, 8.0]).unwrap();
        assert_eq!(shifted.ratio(0.95).unwrap().p_value, 0.0);
        assert_eq!(shifted.len(), 3);
        assert_eq!(shifted.means(), (&[1.0, 2.0, 4.0][..], &[2.0, 4.0, 8.0][..]));
        assert!(!shifted.is_empty() && PairedBlocks::from_means(vec![], vec![]).unwrap().is_empty());
    }
}
