//! The correlation of two quantities of the same events.

use crate::bootstrap::{Estimate, Resampled, Resampling, resample};
use crate::error::{StatsError, require};

/// Two measures of association, each with its interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Correlation {
    /// The number of pairs.
    pub pairs: usize,
    /// Pearson's: how close the pairs lie to a straight line.
    pub pearson: Resampled,
    /// Spearman's: how close they lie to any line that only rises, or only falls. Few far values weigh no more than
    /// others.
    pub spearman: Resampled,
}

/// Pearson's coefficient, from −1 to 1; `None` when either side does not vary.
///
/// # Errors
/// With fewer than two pairs, sides of different length, or a value that is not finite.
///
/// ```
/// use lineup_stats::correlation::pearson;
/// assert!(pearson(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0])?.is_some_and(|r| r > 0.9999));
/// assert_eq!(pearson(&[1.0, 2.0, 3.0], &[5.0, 5.0, 5.0])?, None);
/// # Ok::<(), lineup_stats::StatsError>(())
/// ```
pub fn pearson(x: &[f64], y: &[f64]) -> Result<Option<f64>, StatsError> {
    check(x, y)?;
    Ok(weighted(x, y, &vec![1.0; x.len()]))
}

/// Spearman's coefficient, from −1 to 1; ties share their mean rank. `None` when either side does not vary.
///
/// # Errors
/// As [`pearson`].
pub fn spearman(x: &[f64], y: &[f64]) -> Result<Option<f64>, StatsError> {
    check(x, y)?;
    let weights = vec![1.0; x.len()];
    Ok(weighted(&Order::of(x).ranks(x, &weights), &Order::of(y).ranks(y, &weights), &weights))
}

/// Both coefficients with bootstrap intervals over pairs; `None` when either side does not vary.
///
/// # Errors
/// As [`pearson`] and [`resample`].
pub fn correlate(x: &[f64], y: &[f64], plan: &Resampling) -> Result<Option<Correlation>, StatsError> {
    check(x, y)?;
    if pearson(x, y)?.is_none() {
        return Ok(None);
    }
    let (by_x, by_y) = (Order::of(x), Order::of(y));
    // A resample in which one side does not vary carries no information: it counts as no association.
    let estimate = |value: Option<f64>| Estimate { value: value.unwrap_or(0.0), error: 0.0 };
    let line = resample(x.len(), plan, |picked| estimate(weighted(x, y, &multiplicities(picked, x.len()))))?;
    let rising = resample(x.len(), plan, |picked| {
        let weights = multiplicities(picked, x.len());
        estimate(weighted(&by_x.ranks(x, &weights), &by_y.ranks(y, &weights), &weights))
    })?;
    Ok(Some(Correlation { pairs: x.len(), pearson: line, spearman: rising }))
}

fn check(x: &[f64], y: &[f64]) -> Result<(), StatsError> {
    require("a correlation", x, 2)?;
    require("a correlation", y, 2)?;
    if x.len() != y.len() {
        let value = y.len() as f64;
        return Err(StatsError::Parameter {
            name: "the length of the second side",
            value,
            range: "that of the first",
        });
    }
    Ok(())
}

/// The number of times that each of `count` pairs was sampled.
fn multiplicities(picked: &[usize], count: usize) -> Vec<f64> {
    let mut weights = vec![0.0; count];
    picked.iter().for_each(|index| weights[*index] += 1.0);
    weights
}

fn weighted(x: &[f64], y: &[f64], weights: &[f64]) -> Option<f64> {
    let total: f64 = weights.iter().sum();
    let mean = |values: &[f64]| values.iter().zip(weights).map(|(v, w)| v * w).sum::<f64>() / total;
    let (centre_x, centre_y) = (mean(x), mean(y));
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for ((x, y), weight) in x.iter().zip(y).zip(weights) {
        let (x, y) = (x - centre_x, y - centre_y);
        xx += weight * x * x;
        yy += weight * y * y;
        xy += weight * x * y;
    }
    (xx > 0.0 && yy > 0.0).then(|| (xy / (xx.sqrt() * yy.sqrt())).clamp(-1.0, 1.0))
}

/// The positions of a sample's values in ascending order: sorted once, ranked anew for each resample.
struct Order(Vec<usize>);

impl Order {
    fn of(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        Order(order)
    }

    /// Mean ranks of values, weighted by their counts in the resample.
    fn ranks(&self, values: &[f64], weights: &[f64]) -> Vec<f64> {
        let mut ranks = vec![0.0; values.len()];
        let mut below = 0.0;
        for tied in self.0.chunk_by(|a, b| values[*a] == values[*b]) {
            let here: f64 = tied.iter().map(|index| weights[*index]).sum();
            tied.iter().for_each(|index| ranks[*index] = below + (here + 1.0) / 2.0);
            below += here;
        }
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::normal_quantile;
    use crate::random::Seed;
    use rand::RngExt;

    #[test]
    fn a_line_and_its_mirror_are_one_and_minus_one() {
        let x: Vec<f64> = (0..50).map(f64::from).collect();
        let falling: Vec<f64> = x.iter().map(|x| 3.0 - 2.0 * x).collect();
        let found = correlate(&x, &falling, &Resampling::default()).unwrap().unwrap();
        assert!((found.pearson.estimate.value + 1.0).abs() < 1e-12);
        assert!((found.spearman.estimate.value + 1.0).abs() < 1e-12);
        assert!(found.pearson.interval.high < -0.999);
    }

    #[test]
    fn a_curve_that_only_rises_has_rank_correlation_one() {
        let x: Vec<f64> = (0..30).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| (0.5 * x).exp()).collect();
        assert!((spearman(&x, &y).unwrap().unwrap() - 1.0).abs() < 1e-12);
        assert!(pearson(&x, &y).unwrap().unwrap() < 0.7);
    }

    /// Worked by hand: ranks (1, 2.5, 2.5, 4) and (1, 3, 2, 4).
    #[test]
    fn ties_share_their_mean_rank() {
        let found = spearman(&[10.0, 20.0, 20.0, 30.0], &[1.0, 3.0, 2.0, 4.0]).unwrap().unwrap();
        assert!((found - 4.5 / (4.5f64.sqrt() * 5f64.sqrt())).abs() < 1e-12, "{found}");
    }

    #[test]
    fn the_interval_covers_the_truth_of_a_normal_pair() {
        let rho: f64 = 0.6;
        let plan = Resampling { resamples: 400, ..Resampling::default() };
        let covered = (0..200u64).filter(|experiment| {
            let mut random = Seed(5).part(*experiment).generator();
            let mut normal = || normal_quantile(random.random::<f64>().clamp(1e-12, 1.0 - 1e-12));
            let pairs: Vec<(f64, f64)> = (0..60)
                .map(|_| {
                    let (a, b) = (normal(), normal());
                    (a, rho * a + (1.0 - rho * rho).sqrt() * b)
                })
                .collect();
            let (x, y): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            correlate(&x, &y, &plan).unwrap().unwrap().pearson.interval.contains(rho)
        });
        let covered = covered.count();
        assert!((180..=199).contains(&covered), "{covered} of 200");
    }

    #[test]
    fn what_does_not_vary_has_no_correlation() {
        assert_eq!(correlate(&[1.0; 9], &[2.0; 9], &Resampling::default()).unwrap(), None);
        assert!(pearson(&[1.0, 2.0], &[1.0]).is_err());
        assert!(pearson(&[1.0], &[1.0]).is_err());
    }
}
