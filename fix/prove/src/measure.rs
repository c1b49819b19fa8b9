//! One program measured several times: every quantity with its error, every ratio with its own
//! interval.

use crate::metric::{Absence, Metric, Unit};
use lineup_stats::bootstrap::Resampling;
use lineup_stats::interval::Interval;
use lineup_stats::paired::PairedBlocks;
use lineup_stats::random::Seed;
use lineup_stats::summary::Summary;

/// One quantity, summarised.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasuredMetric {
    /// The quantity's name.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// The summary over the runs, or the reason for its absence.
    pub summary: Result<Summary, Absence>,
    /// The smallest share of the time that the counter ran; `None` when it always ran.
    pub smallest_share: Option<f64>,
    /// The values in run order; empty when absent.
    pub values: Vec<f64>,
}

impl MeasuredMetric {
    /// Standard error of the mean as a share of the mean; `None` with a single run or a mean of zero.
    pub fn relative_error(&self) -> Option<f64> {
        let summary = self.summary.as_ref().ok()?;
        let error = summary.standard_error()?;
        (summary.mean != 0.0).then(|| error / summary.mean.abs())
    }
}

/// The quotient of two quantities of the same runs.
#[derive(Clone, PartialEq, Debug)]
pub struct DerivedRatio {
    /// The ratio's name, such as `insn per cycle`.
    pub name: &'static str,
    /// The metric next to which it is shown.
    pub beside: &'static str,
    /// Total of the numerator ÷ total of the denominator.
    pub ratio: f64,
    /// Its 95 % interval, the ratio formed inside every resample of whole runs; `None` with fewer than four
    /// runs.
    pub interval: Option<Interval>,
}

/// The measurements of all runs of one program.
#[derive(Clone, PartialEq, Debug)]
pub struct Measurement {
    /// The number of runs.
    pub runs: usize,
    /// Every quantity.
    pub metrics: Vec<MeasuredMetric>,
    /// Every ratio whose two quantities were seen.
    pub ratios: Vec<DerivedRatio>,
}

/// A ratio worth showing: its name, the metric it is shown next to, numerator and denominator.
struct RatioRule {
    name: &'static str,
    beside: &'static str,
    numerator: &'static [&'static str],
    denominator: &'static [&'static str],
}

const fn rule(
    name: &'static str,
    beside: &'static str,
    numerator: &'static [&'static str],
    denominator: &'static [&'static str],
) -> RatioRule {
    RatioRule { name, beside, numerator, denominator }
}

/// The ratios of `perf stat`, and miss rates. Alternative names of an event stand in one list.
const RULES: &[RatioRule] = &[
    rule("CPUs utilized", "task-clock", &["task-clock"], &["elapsed"]),
    rule("GHz", "cycles", &["cycles", "cpu-cycles"], &["task-clock"]),
    rule("insn per cycle", "instructions", &["instructions"], &["cycles", "cpu-cycles"]),
    rule(
        "frontend cycles idle",
        "stalled-cycles-frontend",
        &["stalled-cycles-frontend"],
        &["cycles", "cpu-cycles"],
    ),
    rule(
        "backend cycles idle",
        "stalled-cycles-backend",
        &["stalled-cycles-backend"],
        &["cycles", "cpu-cycles"],
    ),
    rule("frontend stalled cycles per insn", "instructions", &["stalled-cycles-frontend"], &["instructions"]),
    rule("backend stalled cycles per insn", "instructions", &["stalled-cycles-backend"], &["instructions"]),
    rule("of all branches", "branch-misses", &["branch-misses"], &["branches", "branch-instructions"]),
    rule("of all cache refs", "cache-misses", &["cache-misses"], &["cache-references"]),
    rule("of all L1-dcache loads", "L1-dcache-load-misses", &["L1-dcache-load-misses"], &["L1-dcache-loads"]),
    rule("of all LL-cache loads", "LLC-load-misses", &["LLC-load-misses"], &["LLC-loads"]),
    rule("of all dTLB loads", "dTLB-load-misses", &["dTLB-load-misses"], &["dTLB-loads"]),
];

/// Summarises metrics over runs; the first says how many there were.
pub fn summarise(metrics: &[Metric], seed: Seed) -> Measurement {
    let measured = metrics.iter().map(measured).collect();
    let ratios = RULES.iter().filter_map(|rule| derive(rule, metrics, seed)).collect();
    let runs = metrics.first().map(|metric| metric.per_run.len()).unwrap_or_default();
    Measurement { runs, metrics: measured, ratios }
}

fn measured(metric: &Metric) -> MeasuredMetric {
    let values = metric.values();
    let summary = values
        .as_ref()
        .map_err(|absence| *absence)
        .and_then(|values| Summary::of(values).map_err(|_| Absence::NotCounted));
    MeasuredMetric {
        name: metric.name.clone(),
        unit: metric.unit.clone(),
        summary,
        smallest_share: metric.smallest_share(),
        values: values.unwrap_or_default(),
    }
}

fn derive(rule: &RatioRule, metrics: &[Metric], seed: Seed) -> Option<DerivedRatio> {
    let values = |names: &[&str]| {
        metrics.iter().find(|metric| names.contains(&plain_name(&metric.name)))?.values().ok()
    };
    let (numerator, denominator) = (values(rule.numerator)?, values(rule.denominator)?);
    let total = denominator.iter().sum::<f64>();
    if total <= 0.0 {
        return None;
    }
    let ratio = numerator.iter().sum::<f64>() / total;
    let plan = Resampling { seed, ..Resampling::default() };
    let interval = PairedBlocks::from_means(denominator, numerator)
        .and_then(|pairs| pairs.ratio_of_totals(&plan))
        .map(|estimate| estimate.interval)
        .ok();
    Some(DerivedRatio { name: rule.name, beside: rule.beside, ratio, interval })
}

/// An event's name without its modifiers: `cycles:u` is `cycles`.
pub fn plain_name(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Observed;

    fn metric(name: &str, values: &[f64]) -> Metric {
        let per_run = values.iter().map(|value| Observed::Value(*value)).collect();
        Metric { name: name.into(), unit: Unit::Events, per_run }
    }

    #[test]
    fn ratios_come_with_their_own_interval() {
        let cycles = metric("cycles:u", &[100.0, 110.0, 90.0, 100.0, 105.0, 95.0]);
        let instructions = metric("instructions:u", &[80.0, 89.0, 71.0, 80.0, 84.0, 76.0]);
        let measurement = summarise(&[cycles, instructions], Seed(1));
        let [ratio] = measurement.ratios.as_slice() else { panic!("one ratio") };
        assert_eq!(ratio.name, "insn per cycle");
        assert!((ratio.ratio - 0.8).abs() < 1e-12);
        let interval = ratio.interval.unwrap();
        assert!(interval.contains(0.8) && interval.width() < 0.02, "{interval:?}");
    }

    #[test]
    fn an_unsupported_counter_stays_unsupported_and_gives_no_ratio() {
        let absent =
            Metric { per_run: vec![Observed::Absent(Absence::NotSupported); 3], ..metric("cycles", &[]) };
        let measurement = summarise(&[absent, metric("instructions", &[1.0, 2.0, 3.0])], Seed(1));
        assert_eq!(measurement.metrics[0].summary, Err(Absence::NotSupported));
        assert!(measurement.ratios.is_empty());
    }

    #[test]
    fn the_relative_error_is_that_of_perf_stat() {
        let measurement = summarise(&[metric("elapsed", &[9.0, 10.0, 11.0, 10.0])], Seed(1));
        let expected = (2.0f64 / 3.0).sqrt() / 2.0 / 10.0;
        assert!((measurement.metrics[0].relative_error().unwrap() - expected).abs() < 1e-12);
    }
}
