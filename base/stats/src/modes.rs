//! Groups that a sample falls into: looked for before anything is averaged.
//!
//! A mixture of two normal distributions with one common spread is fitted and held against a single
//! one. Two groups are reported when the mixture explains the sample better by a wide margin of the Bayesian
//! information criterion *and* the groups lie apart with a valley between them; then each group is looked at in the
//! same way. A skewed or long-tailed sample alone passes neither test often; how often
//! is held down by a test below.

use crate::error::{StatsError, require};
use crate::summary::{deviation, mean, sorted};

/// Values that belong together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Group {
    /// The number of values.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// True for values too few to be a mode, which lie apart from one.
    pub is_outlier: bool,
}

/// By how much the criterion must improve.
const MARGIN: f64 = 10.0;

/// Distance of two groups' means in common spreads below which they are taken for one.
const SEPARATION: f64 = 4.0;

/// A sample is never split into more groups than this.
const MAX_GROUPS: usize = 8;

/// A sample smaller than this is one group: too few values to distinguish modes from noise.
const MIN_SAMPLE: usize = 8;

/// The minimum number of values in a mode.
const MIN_MODE: usize = 3;

/// The minimum share of all values in a mode.
const MIN_MODE_SHARE: f64 = 0.05;

/// Groups smaller than this are not split further.
const MIN_SPLIT: usize = 4;

/// The groups of a sample, in ascending order; one group when the sample hangs together. A group of few values next to
/// a larger one is no mode: its values are outliers.
///
/// # Errors
/// When the sample is empty or holds a value that is not finite.
///
/// ```
/// let runs = [15.51, 15.52, 20.56, 15.50, 15.51, 15.52, 15.50, 15.51];
/// let groups = lineup_stats::modes::find(&runs)?;
/// assert_eq!((groups[0].count, groups[0].is_outlier), (7, false));
/// assert_eq!((groups[1].count, groups[1].is_outlier), (1, true));
/// # Ok::<(), lineup_stats::StatsError>(())
/// ```
pub fn find(sample: &[f64]) -> Result<Vec<Group>, StatsError> {
    require("the search for modes", sample, 1)?;
    let ordered = sorted(sample);
    let mut groups: Vec<&[f64]> = Vec::new();
    let mut waiting = vec![ordered.as_slice()];
    while let Some(part) = waiting.pop() {
        let at = if sample.len() < MIN_SAMPLE { None } else { boundary(part) };
        match at {
            Some(at) if groups.len() + waiting.len() + 2 <= MAX_GROUPS => {
                let (low, high) = part.split_at(at);
                waiting.extend([high, low]);
            }
            _ => groups.push(part),
        }
    }
    let describe = |part: &[f64]| {
        let (low, high) = (part.first().copied()?, part.last().copied()?);
        Some(Group { count: part.len(), mean: mean(part), low, high, is_outlier: false })
    };
    let mut groups: Vec<Group> = groups.into_iter().filter_map(describe).collect();
    let is_mode =
        |group: &Group| group.count >= MIN_MODE && group.count as f64 >= MIN_MODE_SHARE * sample.len() as f64;
    if groups.iter().any(is_mode) {
        groups.iter_mut().for_each(|group| group.is_outlier = !is_mode(group));
    }
    Ok(groups)
}

/// The groups that are modes.
pub fn modes(groups: &[Group]) -> impl Iterator<Item = &Group> {
    groups.iter().filter(|group| !group.is_outlier)
}

/// The groups that are no modes.
pub fn outliers(groups: &[Group]) -> impl Iterator<Item = &Group> {
    groups.iter().filter(|group| group.is_outlier)
}

/// The position where a sorted sample splits in two; `None` when it does not.
fn boundary(part: &[f64]) -> Option<usize> {
    let n = part.len() as f64;
    if part.len() < MIN_SPLIT {
        return None;
    }
    let spread = deviation(part) * ((n - 1.0) / n).sqrt();
    if spread <= 0.0 {
        return None;
    }
    // Clock readings are granular: within a group, values are never known more finely than this.
    let floor = spread * 1e-3;
    let single = -n * spread.ln();
    let fits = starts(part).into_iter().filter_map(|start| Mixture::fit(part, start, floor));
    let best = fits.max_by(|a, b| a.likelihood.total_cmp(&b.likelihood))?;
    // Two parameters more: a mean and a weight. Constants common to both likelihoods are left out.
    let gain = 2.0 * (best.likelihood - (single - n / 2.0)) - 2.0 * n.ln();
    let separation = (best.high - best.low) / best.spread;
    let at = part.partition_point(|value| best.belongs_low(*value));
    let splits = gain > MARGIN && separation > SEPARATION && best.has_valley(part);
    (splits && at > 0 && at < part.len()).then_some(at)
}

/// Places to start the fit from: the widest gaps and the quartiles.
fn starts(part: &[f64]) -> Vec<usize> {
    let mut gaps: Vec<usize> = (1..part.len()).collect();
    gaps.sort_by(|&a, &b| (part[b] - part[b - 1]).total_cmp(&(part[a] - part[a - 1])));
    gaps.truncate(3);
    gaps.extend([part.len() / 4, part.len() / 2, part.len() - part.len() / 4]);
    gaps.retain(|at| *at > 0 && *at < part.len());
    gaps
}

/// Two normal distributions with one spread.
struct Mixture {
    low: f64,
    high: f64,
    /// Weight of the lower one.
    weight: f64,
    spread: f64,
    likelihood: f64,
}

impl Mixture {
    /// Expectation maximisation from a split of the sorted sample.
    fn fit(part: &[f64], start: usize, floor: f64) -> Option<Self> {
        let (below, above) = part.split_at(start);
        let mut mixture = Self {
            low: mean(below),
            high: mean(above),
            weight: below.len() as f64 / part.len() as f64,
            spread: floor,
            likelihood: f64::NEG_INFINITY,
        };
        let within = |values: &[f64], centre: f64| values.iter().map(|v| (v - centre).powi(2)).sum::<f64>();
        let squares = within(below, mixture.low) + within(above, mixture.high);
        mixture.spread = (squares / part.len() as f64).sqrt().max(floor);
        for _ in 0..200 {
            let before = mixture.likelihood;
            mixture.step(part, floor)?;
            if mixture.likelihood - before < 1e-8 {
                break;
            }
        }
        Some(mixture)
    }

    /// One round; `None` when a group has lost all its values.
    fn step(&mut self, part: &[f64], floor: f64) -> Option<()> {
        let n = part.len() as f64;
        let (mut mass, mut low, mut high, mut likelihood) = (0.0, 0.0, 0.0, 0.0);
        let shares: Vec<f64> = part
            .iter()
            .map(|value| {
                let (a, b) = self.log_densities(*value);
                let top = a.max(b);
                let total = top + ((a - top).exp() + (b - top).exp()).ln();
                likelihood += total;
                (a - total).exp()
            })
            .collect();
        for (value, share) in part.iter().zip(&shares) {
            mass += share;
            low += share * value;
            high += (1.0 - share) * value;
        }
        self.likelihood = likelihood;
        if mass < 0.5 || n - mass < 0.5 {
            return None;
        }
        (self.low, self.high, self.weight) = (low / mass, high / (n - mass), mass / n);
        let squares: f64 = part
            .iter()
            .zip(&shares)
            .map(|(v, share)| share * (v - self.low).powi(2) + (1.0 - share) * (v - self.high).powi(2))
            .sum();
        self.spread = (squares / n).sqrt().max(floor);
        Some(())
    }

    /// Logarithms of both weighted densities, without the constant √(2π).
    fn log_densities(&self, value: f64) -> (f64, f64) {
        let density = |centre: f64, weight: f64| {
            weight.ln() - self.spread.ln() - 0.5 * ((value - centre) / self.spread).powi(2)
        };
        (density(self.low, self.weight), density(self.high, 1.0 - self.weight))
    }

    /// True when the middle third between the two means holds less than half the values that a third as
    /// wide holds around either mean: a tail thins out without ever rising again.
    fn has_valley(&self, part: &[f64]) -> bool {
        let sixth = (self.high - self.low) / 6.0;
        let around = |centre: f64| {
            part.partition_point(|value| *value <= centre + sixth)
                - part.partition_point(|value| *value < centre - sixth)
        };
        let middle = around((self.low + self.high) / 2.0);
        2 * middle < around(self.low).min(around(self.high))
    }

    fn belongs_low(&self, value: f64) -> bool {
        let (low, high) = self.log_densities(value);
        low >= high
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::normal_quantile;
    use crate::random::Seed;
    use rand::RngExt;

    /// The number of samples out of 300, each of `n` values, in which more than one group is reported.
    fn reported(n: usize, draw: impl Fn(f64, f64) -> f64) -> f64 {
        let split = (0..300u64).filter(|experiment| {
            let mut random = Seed(31).part(*experiment).generator();
            let mut uniform = || random.random::<f64>().clamp(1e-12, 1.0 - 1e-12);
            let sample: Vec<f64> = (0..n).map(|_| draw(uniform(), uniform())).collect();
            find(&sample).unwrap().len() > 1
        });
        split.count() as f64 / 300.0
    }

    #[test]
    fn samples_that_hang_together_are_rarely_split() {
        for n in [10, 20, 40, 80] {
            let normal = reported(n, |u, _| normal_quantile(u));
            let flat = reported(n, |u, _| u);
            let skewed = reported(n, |u, _| (0.5 * normal_quantile(u)).exp());
            assert!(normal <= 0.02 && flat <= 0.08, "{n}: normal {normal}, flat {flat}");
            assert!(skewed <= 0.2, "{n}: skewed {skewed}");
        }
    }

    #[test]
    fn two_modes_are_found() {
        for (n, weight, apart) in [(10, 0.5, 12.0), (20, 0.3, 8.0), (40, 0.2, 7.0), (80, 0.1, 7.0)] {
            let two = |u: f64, v: f64| normal_quantile(u) + if v < weight { apart } else { 0.0 };
            let found = reported(n, two);
            assert!(found >= 0.85, "{n}: {found}");
        }
    }

    #[test]
    fn a_few_values_far_away_are_outliers_and_no_mode() {
        let near = |count: usize| (0..count).map(|number| 1.68 + 0.001 * (number % 7) as f64);
        let counted = |sample: &[f64]| {
            let groups = find(sample).unwrap();
            let outliers: usize = outliers(&groups).map(|group| group.count).sum();
            (modes(&groups).count(), outliers)
        };
        assert_eq!(counted(&near(39).chain([70.0]).collect::<Vec<_>>()), (1, 1));
        assert_eq!(counted(&near(38).chain([70.0, 71.0]).collect::<Vec<_>>()), (1, 2));
        assert_eq!(
            counted(&near(30).chain((0..10).map(|n| 70.0 + 0.1 * f64::from(n))).collect::<Vec<_>>()),
            (2, 0)
        );
    }

    #[test]
    fn equal_values_are_one_group() {
        assert_eq!(find(&[5.0; 20]).unwrap().len(), 1);
        assert_eq!(find(&[5.0]).unwrap()[0].count, 1);
        assert!(find(&[]).is_err());
    }
}
