//! A stopping rule that does not bias the result.
//!
//! Stopping when a test first turns significant raises the false-alarm rate without bound. Here the stop looks at the
//! interval's *width* only, which for normal data is independent of where the interval lies. A run still tends to stop
//! on spreads that happened to look small (Stein, Annals of Mathematical Statistics 16, 1945); so the final interval is
//! computed at a stricter level than stated. Simulation gave that level, and simulations check the result against it.

use crate::error::StatsError;
use crate::interval::Interval;
use crate::paired::{PairedBlocks, RatioEstimate};

/// Stop once the interval of the ratio is narrow enough.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WidthStop {
    /// Blocks measured before the width is looked at for the first time: two or more.
    pub first_look: usize,
    /// The interval's full width at which to stop, as a share of the cost (0.005 is 0.5 %).
    pub target_width: f64,
    /// Confidence level.
    pub level: f64,
}

/// The share of the error probability that the final interval is computed with; the rest is spent
/// on having chosen the number of blocks by their spread.
const ALPHA_KEPT: f64 = 0.6;

impl WidthStop {
    /// True when these blocks are enough.
    ///
    /// # Errors
    /// As [`PairedBlocks::ratio`].
    pub fn is_reached(&self, blocks: &PairedBlocks) -> Result<bool, StatsError> {
        Ok(self.looks_at(blocks.len()) && self.is_narrow(blocks)?)
    }

    /// True when the interval is narrow enough, for a caller that knows by other means that it may look.
    ///
    /// # Errors
    /// As [`PairedBlocks::ratio`].
    pub fn is_narrow(&self, blocks: &PairedBlocks) -> Result<bool, StatsError> {
        Ok(self.estimate(blocks)?.interval.width() <= self.target_width)
    }

    /// The ratio with the interval that is valid under this stop.
    ///
    /// # Errors
    /// As [`PairedBlocks::ratio`].
    pub fn estimate(&self, blocks: &PairedBlocks) -> Result<RatioEstimate, StatsError> {
        Ok(self.settle(blocks.ratio(self.working_level())?))
    }

    /// The level to compute an interval at so that it holds at [`Self::level`] under this stop.
    pub fn working_level(&self) -> f64 {
        1.0 - ALPHA_KEPT * (1.0 - self.level)
    }

    /// Restates an estimate that was computed at the working level: the interval holds at the level of
    /// this stop, and the p-value grows in step.
    pub fn settle(&self, estimate: RatioEstimate) -> RatioEstimate {
        RatioEstimate {
            interval: Interval { level: self.level, ..estimate.interval },
            p_value: (estimate.p_value / ALPHA_KEPT).min(1.0),
            ..estimate
        }
    }

    /// True when the width is looked at after this many blocks: at the first look and then each time
    /// the sample has grown by a fifth, since fewer looks find fewer lucky spreads.
    pub fn looks_at(&self, blocks: usize) -> bool {
        let mut look = self.first_look.max(2);
        while look < blocks {
            look += (look / 5).max(1);
        }
        look == blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOP: WidthStop = WidthStop { first_look: 4, target_width: 0.02, level: 0.95 };

    fn blocks(spread: f64, count: usize) -> PairedBlocks {
        let after = (0..count).map(|i| if i % 2 == 0 { 1.0 - spread } else { 1.0 + spread }).collect();
        PairedBlocks::from_means(vec![1.0; count], after).unwrap()
    }

    #[test]
    fn never_before_the_first_look_and_then_by_width() {
        assert!(!STOP.is_reached(&blocks(0.0001, 3)).unwrap());
        assert!(STOP.is_reached(&blocks(0.0001, 4)).unwrap());
        assert!(!STOP.is_reached(&blocks(0.05, 4)).unwrap());
    }

    #[test]
    fn looks_grow_apart() {
        let stop = WidthStop { first_look: 10, ..STOP };
        let looks: Vec<usize> = (1..40).filter(|blocks| stop.looks_at(*blocks)).collect();
        assert_eq!(looks, [10, 12, 14, 16, 19, 22, 26, 31, 37]);
    }

    #[test]
    fn the_interval_pays_for_the_choice_of_the_sample_size() {
        let many = blocks(0.05, 40);
        let (paid, plain) = (STOP.estimate(&many).unwrap(), many.ratio(0.95).unwrap());
        assert_eq!(paid.interval.level, 0.95);
        assert!(paid.interval.width() > 1.08 * plain.interval.width());
        assert!(paid.p_value >= plain.p_value);
    }
}
