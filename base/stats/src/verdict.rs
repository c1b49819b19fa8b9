//! The verdict on a ratio: changed, equivalent or inconclusive.

use crate::error::StatsError;
use crate::interval::{Interval, normal_quantile};
use crate::paired::{PairedBlocks, RatioEstimate};
use std::fmt;

/// The claim that a comparison supports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// The interval excludes "no change". The change may still be smaller than the margin: see
    /// [`Judgement::within_margin`].
    Changed,
    /// The interval includes "no change" and lies wholly inside the margin.
    Equivalent,
    /// The interval includes "no change" and reaches beyond the margin: measure more.
    Inconclusive,
}

impl Verdict {
    /// The verdict as one lower-case word.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Changed => "changed",
            Verdict::Equivalent => "equivalent",
            Verdict::Inconclusive => "inconclusive",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A verdict with its evidence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// True when the whole interval lies inside the margin, for any verdict.
    pub within_margin: bool,
    /// The smallest change, as a share of the cost (0.01 is 1 %), that a run like this one would have called
    /// changed four times in five.
    pub smallest_detectable: f64,
    /// True where the later half of the blocks changes to the other side: such a change is inconclusive.
    pub is_contradicted: bool,
}

impl Judgement {
    /// The judgement with the blocks in the order of their runs. A change of this ratio that their later half contradicts
    /// is inconclusive: the machine changed meanwhile.
    ///
    /// # Errors
    /// When a value is not positive.
    pub fn in_order(self, ratio: f64, blocks: &PairedBlocks) -> Result<Judgement, StatsError> {
        let logs = blocks.log_ratios()?;
        let later = &logs[logs.len() / 2..];
        let is_contradicted = self.verdict == Verdict::Changed
            && logs.len() >= LEAST_TO_CONTRADICT
            && later.iter().sum::<f64>() * ratio.ln() < 0.0;
        let verdict = if is_contradicted { Verdict::Inconclusive } else { self.verdict };
        Ok(Judgement { verdict, is_contradicted, ..self })
    }

    /// How many times the runs so far would have shown a change of this share, four times in five; `None` where no number
    /// of runs would, as far as these show.
    pub fn runs_to_show(&self, share: f64) -> Option<f64> {
        let times = (self.smallest_detectable.ln_1p() / share.ln_1p()).powi(2);
        times.is_finite().then_some(times)
    }
}

/// Fewer blocks have no later half to speak of.
const LEAST_TO_CONTRADICT: usize = 4;

/// The power at which the smallest detectable effect is stated.
const POWER: f64 = 0.8;

/// Judges a ratio's interval against a margin, a share of the cost (0.01 is 1 %). An interval at
/// level 1 − α inside the margin passes two one-sided tests at α/2 each (Schuirmann, Journal of
/// Pharmacokinetics and Biopharmaceutics 15, 1987), so "equivalent" is at least as sure as "changed".
pub fn judge(estimate: &RatioEstimate, margin: f64) -> Judgement {
    let Interval { low, high, .. } = estimate.interval;
    let within_margin = estimate.interval.lies_inside(1.0 / (1.0 + margin), 1.0 + margin);
    let verdict = if low > 1.0 || high < 1.0 {
        Verdict::Changed
    } else if within_margin {
        Verdict::Equivalent
    } else {
        Verdict::Inconclusive
    };
    let smallest_detectable = smallest_detectable(estimate);
    Judgement { verdict, within_margin, smallest_detectable, is_contradicted: false }
}

/// The smallest change, as a share of the cost, that is found with probability 0.8 by intervals as
/// wide as this one: exp(half the width of ln(ratio) + z₀.₈·its standard error) − 1.
pub fn smallest_detectable(estimate: &RatioEstimate) -> f64 {
    let half = (estimate.interval.high / estimate.interval.low).ln() / 2.0;
    (half + normal_quantile(POWER) * estimate.log_error).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(low: f64, high: f64) -> RatioEstimate {
        RatioEstimate {
            ratio: (low * high).sqrt(),
            interval: Interval { low, high, level: 0.95 },
            log_error: (high / low).ln() / 2.0 / 1.96,
            degrees: f64::INFINITY,
            p_value: 0.5,
            blocks: 30,
        }
    }

    #[test]
    fn three_verdicts_and_a_small_but_real_change() {
        assert_eq!(judge(&estimate(0.95, 0.98), 0.01).verdict, Verdict::Changed);
        assert_eq!(judge(&estimate(0.997, 1.002), 0.01).verdict, Verdict::Equivalent);
        assert_eq!(judge(&estimate(0.98, 1.01), 0.01).verdict, Verdict::Inconclusive);
        let small = judge(&estimate(1.002, 1.004), 0.01);
        assert_eq!((small.verdict, small.within_margin), (Verdict::Changed, true));
    }

    #[test]
    fn a_change_that_the_later_blocks_contradict_is_inconclusive() {
        let blocks = |after: &[f64]| {
            PairedBlocks::from_means(vec![100.0; after.len()], after.to_vec()).expect("blocks")
        };
        let changed = judge(&estimate(0.95, 0.98), 0.01);
        let drifting =
            changed.in_order(0.965, &blocks(&[90.0, 91.0, 92.0, 101.0, 102.0, 100.5])).expect("logs");
        assert_eq!((drifting.verdict, drifting.is_contradicted), (Verdict::Inconclusive, true));
        let steady = changed.in_order(0.965, &blocks(&[96.0, 97.0, 96.5, 96.0, 101.0, 95.5])).expect("logs");
        assert_eq!((steady.verdict, steady.is_contradicted), (Verdict::Changed, false));
        let few = changed.in_order(0.965, &blocks(&[90.0, 91.0, 101.0])).expect("logs");
        assert_eq!(few.verdict, Verdict::Changed);
    }

    /// An interval half as wide takes four times as many runs.
    #[test]
    fn a_tenth_of_the_change_takes_a_hundred_times_the_runs() {
        let judged = judge(&estimate(0.9, 1.1), 0.01);
        let least = judged.smallest_detectable;
        assert!((judged.runs_to_show(least).expect("a number") - 1.0).abs() < 1e-9);
        let tenth = (least.ln_1p() / 10.0).exp_m1();
        assert!((judged.runs_to_show(tenth).expect("a number") - 100.0).abs() < 1e-6);
    }

    #[test]
    fn the_smallest_detectable_effect_is_wider_than_half_the_interval() {
        let judged = judge(&estimate(0.99, 1.01), 0.01);
        assert!(judged.smallest_detectable > 0.013 && judged.smallest_detectable < 0.016);
    }
}
