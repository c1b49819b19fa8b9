//! The floor of noise: how far runs of one and the same variant lie apart. A difference between two variants that does not
//! exceed it is no result.

use crate::error::{StatsError, require, require_level};
use crate::interval::{t_critical, t_interval};
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

/// The noise of a difference between one run of a variant and one of another, where runs of one of them lie so: the
/// half width of the interval around no difference.
///
/// # Errors
/// With fewer than two runs, a value that is not finite, or a level outside (0, 1).
pub fn of_single_runs(runs: &[f64], level: f64) -> Result<f64, StatsError> {
    // The mean of n runs scatters by a root of n less than one run, and a difference of two by a root of two more.
    let of_mean = t_interval(runs, level)?.width() / 2.0;
    Ok(of_mean * (2.0 * runs.len() as f64).sqrt())
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

    /// Lines per call in eight boots of one kernel: Debian's 6.12 cloud kernel, with 512 to 624 MiB, `pipe_write`,
    /// `vfs_read` and `do_sys_openat2` under `dd | cat` and `find`. All types together first.
    const BOOTS: [(&str, [f64; 8]); 9] = [
        ("all", [205.668, 205.033, 204.987, 211.055, 212.283, 204.797, 205.488, 204.633]),
        ("inode", [22.18, 21.45, 21.27, 21.22, 21.46, 19.74, 22.64, 20.90]),
        ("task_struct", [21.15, 20.41, 21.06, 22.44, 24.16, 20.59, 20.77, 19.58]),
        ("dentry", [14.83, 14.90, 14.86, 14.84, 14.90, 14.83, 14.83, 14.84]),
        ("kernfs_node", [9.74, 9.74, 10.01, 10.00, 9.95, 9.80, 9.26, 9.67]),
        ("pipe_inode_info", [3.16, 3.16, 3.16, 3.30, 3.43, 3.16, 3.16, 3.16]),
        ("file", [6.04, 6.03, 6.02, 6.01, 6.03, 6.03, 6.01, 6.02]),
        ("nameidata", [3.88, 4.05, 4.06, 3.96, 4.08, 3.95, 4.05, 3.97]),
        ("pglist_data", [4.85, 4.85, 4.88, 4.71, 4.33, 4.81, 4.81, 4.81]),
    ];

    /// Every choice of three boots against three others.
    fn halves(boots: &[f64; 8]) -> Vec<[Vec<f64>; 2]> {
        let sets: Vec<u32> = (0..256u32).filter(|set| set.count_ones() == 3).collect();
        let of = |set: u32| (0..8).filter(|at| set >> at & 1 == 1).map(|at| boots[at]).collect::<Vec<f64>>();
        let pairs = sets.iter().flat_map(|one| sets.iter().map(move |other| (*one, *other)));
        pairs.filter(|(one, other)| one & other == 0).map(|(one, other)| [of(one), of(other)]).collect()
    }

    fn floor_of(name: &str) -> NoiseFloor {
        NoiseFloor { least: if name == "all" { 0.9 } else { 0.01 }, ..FLOOR }
    }

    #[test]
    fn of_comparisons_of_a_kernel_with_itself_one_in_twenty_is_called_a_change() {
        let (mut compared, mut changed) = (0, 0);
        for (name, boots) in &BOOTS {
            for [before, after] in halves(boots) {
                let found = floor_of(name).compare(&before, &after).expect("runs");
                compared += 1;
                changed += usize::from(found.direction() != Direction::Within);
            }
        }
        assert_eq!(compared, 9 * 560);
        assert!(20 * changed <= compared, "{changed} of {compared}");
    }

    #[test]
    fn of_forty_placebos_at_most_two_are_called_changed() {
        // Spread over all types and choices of boots.
        let mut changed = Vec::new();
        for number in 0..40 {
            let (name, boots) = &BOOTS[number % BOOTS.len()];
            let all = halves(boots);
            let [before, after] = &all[number * 137 % all.len()];
            let found = floor_of(name).compare(before, after).expect("runs");
            if found.direction() != Direction::Within {
                changed.push(*name);
            }
        }
        assert!(changed.len() <= 2, "{changed:?}");
    }

    #[test]
    fn single_runs_differ_by_as_much_as_runs_of_one_variant_do() {
        // Student's t of 4 degrees at 95 % is 2.776.
        let noise = of_single_runs(&[0.0, 1.0, 2.0, 3.0, 4.0], 0.95).expect("five runs");
        assert!((noise - 2.776 * (2.0f64 * 2.5).sqrt()).abs() < 0.01, "{noise}");
        assert_eq!(of_single_runs(&[3.0, 3.0], 0.95), Ok(0.0));
        assert!(of_single_runs(&[3.0], 0.95).is_err());
    }

    #[test]
    fn half_a_line_of_a_type_that_scatters_little_is_found_in_every_choice_of_boots() {
        for (_, boots) in BOOTS.iter().filter(|(name, _)| ["file", "dentry"].contains(name)) {
            for [before, after] in halves(boots) {
                let fewer: Vec<f64> = after.iter().map(|lines| lines - 0.53).collect();
                assert_eq!(direction(&before, &fewer), Direction::Less);
                assert_eq!(direction(&fewer, &before), Direction::More);
            }
        }
    }
}
