//! Distributions in numbers, and how calls of different treatment differ.

use crate::metric::Metric;
use crate::run::Measured;
use lineup_recording::Arm;
use lineup_stats::bootstrap::Resampling;
use lineup_stats::contrast::{self, Of};
use lineup_stats::correlation::correlate;
use lineup_stats::interval::IntervalEstimate;
use lineup_stats::modes;
use lineup_stats::series::run_length;
use lineup_stats::summary::{Summary, quantile};
use serde::{Serialize, Serializer};

/// A count over calls.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Distribution {
    /// The count.
    pub metric: Metric,
    /// Calls.
    pub calls: usize,
    /// Least.
    pub min: f64,
    /// Half lie below.
    pub median: f64,
    /// 99 % lie below.
    pub p99: f64,
    /// Greatest.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation; `None` for one call.
    pub deviation: Option<f64>,
    /// The densest value: the median of the interval that holds half of them and whose ends have the smallest ratio.
    pub peak: f64,
}

impl Distribution {
    /// The distribution of a count over calls; `None` without calls.
    pub fn of<'a>(metric: Metric, calls: impl Iterator<Item = &'a Measured>) -> Option<Self> {
        let values = values(metric, calls);
        let summary = Summary::of(&values).ok()?;
        Some(Distribution {
            metric,
            calls: summary.n,
            min: summary.min(),
            median: summary.median(),
            p99: quantile(&values, 0.99).ok()?,
            max: summary.max(),
            mean: summary.mean,
            deviation: summary.deviation,
            peak: peak(values)?,
        })
    }

    /// Deviation as a share of the mean; `None` for one call or a mean of zero.
    pub fn spread(&self) -> Option<f64> {
        self.deviation.filter(|_| self.mean > 0.0).map(|deviation| deviation / self.mean)
    }
}

/// The values of a count.
pub fn values<'a>(metric: Metric, calls: impl Iterator<Item = &'a Measured>) -> Vec<f64> {
    calls.map(|measured| metric.of(&measured.call) as f64).collect()
}

/// The shortest interval of sorted values that holds half of them, by a measure of its ends.
pub(crate) fn shortest_half(sorted: &[f64], length: impl Fn(f64, f64) -> f64) -> Option<&[f64]> {
    let half = sorted.len().div_ceil(2).max(1);
    let length = |part: &&[f64]| match (part.first(), part.last()) {
        (Some(first), Some(last)) => length(*first, *last),
        _ => f64::INFINITY,
    };
    sorted.windows(half).min_by(|a, b| length(a).total_cmp(&length(b)))
}

/// The densest value: the median of the shortest half, by the ratio of its ends, because quotients by it are compared
/// as multiples. Unlike a mode it does not follow a few equal values.
fn peak(mut sample: Vec<f64>) -> Option<f64> {
    sample.sort_by(f64::total_cmp);
    quantile(shortest_half(&sample, |first, last| (last + 1.0) / (first + 1.0))?, 0.5).ok()
}

/// The correlation of a count with cycles.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Correlation {
    /// The count that is correlated with [`Metric::Cycles`].
    pub with: Metric,
    /// Calls.
    pub calls: usize,
    /// Pearson's coefficient, with its 95 % interval.
    pub pearson: IntervalEstimate,
    /// Spearman's coefficient, with its 95 % interval.
    pub spearman: IntervalEstimate,
}

/// Resamples fewer of a large sample: 200 at least.
fn plan(count: usize, run_length: usize) -> Resampling {
    let resamples = (400_000 / count.max(1)).clamp(200, 1000);
    Resampling { resamples, run_length: run_length.clamp(1, count.max(1)), ..Resampling::default() }
}

/// The correlation of cycles with a count; `None` with fewer than ten calls or where either does not vary. Calls that
/// follow each other resemble each other, so runs of neighbours are resampled together where they do.
pub fn correlation(with: Metric, calls: &[&Measured]) -> Option<Correlation> {
    if calls.len() < 10 {
        return None;
    }
    let cycles = values(Metric::Cycles, calls.iter().copied());
    let other = values(with, calls.iter().copied());
    let plan = plan(calls.len(), run_length(&cycles).max(run_length(&other)));
    let found = correlate(&cycles, &other, &plan).ok()??;
    Some(Correlation {
        with,
        calls: found.pairs,
        pearson: found.pearson.into(),
        spearman: found.spearman.into(),
    })
}

/// The compared statistic of two samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The median.
    Median,
    /// The 99th percentile.
    P99,
}

impl Statistic {
    const ALL: [Statistic; 3] = [Statistic::Mean, Statistic::Median, Statistic::P99];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Statistic::Mean => "mean",
            Statistic::Median => "median",
            Statistic::P99 => "99th percentile",
        }
    }

    fn of(self) -> Of {
        match self {
            Statistic::Mean => Of::Mean,
            Statistic::Median => Of::Quantile(0.5),
            Statistic::P99 => Of::Quantile(0.99),
        }
    }

    /// Calls on either side below which it is not compared.
    fn least_calls(self) -> usize {
        match self {
            Statistic::Mean | Statistic::Median => 8,
            Statistic::P99 => 200,
        }
    }
}

/// The difference in a count between the second and the first of two samples.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// The count.
    pub metric: Metric,
    /// The compared statistic.
    pub statistic: Statistic,
    /// Its value in the first sample.
    pub first: f64,
    /// Second less first, with its 95 % interval.
    pub difference: IntervalEstimate,
}

/// The counts by which treatments and runs are compared; spans, which are many, by cycles alone.
pub const COMPARED: [Metric; 6] = [
    Metric::Cycles,
    Metric::CodeStallCycles,
    Metric::DataStallCycles,
    Metric::CodeMissesL1,
    Metric::DataMissesL1,
    Metric::Instructions,
];

/// The differences between two samples of calls in these counts. Statistics for which there are too few calls are left
/// out.
pub fn differences(first: &[&Measured], second: &[&Measured], metrics: &[Metric]) -> Vec<Difference> {
    let one = |metric: Metric, statistic: Statistic| {
        if first.len().min(second.len()) < statistic.least_calls() {
            return None;
        }
        let (a, b) = (values(metric, first.iter().copied()), values(metric, second.iter().copied()));
        let found = contrast::difference(&a, &b, statistic.of(), &plan(a.len() + b.len(), 1)).ok()?;
        let base = match statistic.of() {
            Of::Mean => Summary::of(&a).ok()?.mean,
            Of::Quantile(p) => quantile(&a, p).ok()?,
        };
        Some(Difference { metric, statistic, first: base, difference: found.into() })
    };
    let pairs = metrics.iter().flat_map(|metric| Statistic::ALL.map(|statistic| (*metric, statistic)));
    pairs.filter_map(|(metric, statistic)| one(metric, statistic)).collect()
}

/// Calls whose cycles lie close together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Mode {
    /// Share of the calls.
    pub share: f64,
    /// Mean cycles.
    pub mean_cycles: f64,
    /// Least cycles.
    pub low_cycles: f64,
    /// Most cycles.
    pub high_cycles: f64,
}

/// More values than this are thinned evenly by rank before modes are sought.
const MODE_VALUES: usize = 2000;

/// The groups that the cycles of calls fall into; one when they hang together, none without calls.
pub fn modes_of(calls: &[&Measured]) -> Vec<Mode> {
    let mut cycles = values(Metric::Cycles, calls.iter().copied());
    cycles.sort_by(f64::total_cmp);
    if cycles.len() > MODE_VALUES {
        let last = cycles.len() - 1;
        cycles = (0..MODE_VALUES).map(|rank| cycles[rank * last / (MODE_VALUES - 1)]).collect();
    }
    let total = cycles.len() as f64;
    let groups = modes::find(&cycles).unwrap_or_default();
    let mode = |group: modes::Group| Mode {
        share: group.count as f64 / total,
        mean_cycles: group.mean,
        low_cycles: group.low,
        high_cycles: group.high,
    };
    groups.into_iter().map(mode).collect()
}

/// An arm by its name.
pub(crate) fn arm_name<S: Serializer>(arm: &Arm, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(arm.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_where_values_lie_closest() {
        assert_eq!(peak(vec![1.0, 50.0, 51.0, 52.0, 51.0, 200.0, 900.0]), Some(51.0));
        assert_eq!(peak(vec![3.0, 1.0]), Some(1.0));
        // The narrower group in multiples, not in units.
        assert_eq!(peak(vec![1.0, 40.0, 80.0, 3000.0, 3050.0, 3100.0]), Some(3050.0));
        assert_eq!(peak(vec![7.0; 9]), Some(7.0));
        assert_eq!(peak(vec![]), None);
    }
}
