//! The floor of noise: how far runs of one and the same variant lie apart. A difference between two variants that does not
//! exceed it is no result.

use crate::error::{StatsError, require, require_level};
use crate::interval::t_critical;
use crate::summary::mean;

/// The smallest difference that counts, whatever the runs show.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NoiseFloor {
    /// The confidence level of the interval of a difference.
    pub level: f64,
    /// Differences up to this one are noise even when the runs agree: it covers causes that these runs do not vary.
    pub least: f64,
}

/// The difference of two variants, and the noise that it has to exceed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NoisyDifference {
    /// The mean of the second variant less that of the first.
    pub difference: f64,
    /// Half the width of the interval around no difference.
    pub noise: f64,
}

/// The side on which a difference lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The second variant has less, beyond the noise.
    Less,
    /// The second variant has more, beyond the noise.
    More,
    /// The runs of one variant differ as much.
    Within,
}

impl NoisyDifference {
    /// The side on which the difference lies.
    pub fn direction(&self) -> Direction {
        match self.difference {
            less if less < -self.noise => Direction::Less,
            more if more > self.noise => Direction::More,
            _ => Direction::Within,
        }
    }
}

impl NoiseFloor {
    /// Compares runs of two variants. Both are taken to scatter alike, so that few runs of each suffice.
    ///
    /// # Errors
    /// With fewer than two runs of a variant, a value that is not finite, or a level outside (0, 1).
    pub fn compare(&self, before: &[f64], after: &[f64]) -> Result<NoisyDifference, StatsError> {
        for runs in [before, after] {
            require("a floor of noise", runs, 2)?;
        }
        require_level(self.level)?;
        let squares = |runs: &[f64]| {
            let centre = mean(runs);
            runs.iter().map(|run| (run - centre).powi(2)).sum::<f64>()
        };
        let counts = [before, after].map(|runs| runs.len() as f64);
        let degrees = counts[0] + counts[1] - 2.0;
        let variance = (squares(before) + squares(after)) / degrees;
        let error = (variance * (1.0 / counts[0] + 1.0 / counts[1])).sqrt();
        Ok(NoisyDifference {
            difference: mean(after) - mean(before),
            noise: self.least.max(t_critical(degrees, self.level) * error),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: NoiseFloor = NoiseFloor { level: 0.95, least: 0.01 };

    fn direction(before: &[f64], after: &[f64]) -> Direction {
        FLOOR.compare(before, after).expect("runs").direction()
    }

    #[test]
    fn a_difference_counts_beyond_the_scatter_of_the_runs() {
        assert_eq!(direction(&[3.0, 3.02, 2.98], &[2.47, 2.5, 2.45]), Direction::Less);
        assert_eq!(direction(&[2.47, 2.5, 2.45], &[3.0, 3.02, 2.98]), Direction::More);
        assert_eq!(direction(&[15.5, 15.9, 15.1], &[15.0, 15.4, 15.2]), Direction::Within);
    }

    #[test]
    fn runs_that_agree_leave_the_least_difference() {
        assert_eq!(direction(&[3.0, 3.0], &[3.005, 3.005]), Direction::Within);
        assert_eq!(direction(&[3.0, 3.0], &[3.02, 3.02]), Direction::More);
        let total = NoiseFloor { least: 0.9, ..FLOOR };
        let said = total.compare(&[89.0, 89.0], &[88.53, 88.53]).expect("runs");
        assert_eq!((said.direction(), said.noise), (Direction::Within, 0.9));
    }

    #[test]
    fn one_run_shows_no_noise() {
        assert!(FLOOR.compare(&[3.0], &[2.0, 2.0]).is_err());
        assert!(FLOOR.compare(&[3.0, f64::NAN], &[2.0, 2.0]).is_err());
        assert!(NoiseFloor { level: 1.0, ..FLOOR }.compare(&[3.0, 3.0], &[2.0, 2.0]).is_err());
    }
}
