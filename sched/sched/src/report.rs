//! Results of an experiment, as plain values: estimates over seeds, and differences paired by seed.

use crate::error::Error;
use crate::experiment::Variant;
use crate::scenario::{Mechanism, Scenario};
use crate::sim::{Cause, Outcome, Steps};
use lineup_stats::interval::t_interval;
use lineup_stats::paired::PairedBlocks;
use lineup_stats::summary::Summary;
use serde::Serialize;

/// The level of all intervals.
pub const LEVEL: f64 = 0.95;

/// The document `lineup.sched/1`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// `lineup.sched/1`.
    pub schema: &'static str,
    /// The seeds; every variant was run with each.
    pub seeds: Vec<u64>,
    /// The level of the intervals.
    pub level: f64,
    /// The variants. Differences are from the first.
    pub variants: Vec<VariantReport>,
}

/// One variant.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct VariantReport {
    /// Its name.
    pub name: String,
    /// The number of CPUs.
    pub cpus: usize,
    /// The domains, smallest first.
    pub domains: Vec<usize>,
    /// Whether CPUs of a smallest domain share a core.
    pub smt: bool,
    /// Extra bits of the weights.
    pub resolution: u8,
    /// Mechanisms that are off.
    pub without: Vec<&'static str>,
    /// Measured simulated time.
    pub time_ns: u64,
    /// Each figure over the seeds.
    pub figures: Vec<Figure>,
    /// Idle time in per cent in each second, averaged over the seeds.
    pub idle_percent_by_second: Vec<f64>,
    /// Reasons why CPUs idled while tasks waited, per run on average. Causes that did not occur are left out.
    pub causes: Vec<CauseReport>,
    /// Steps that lost load, summed over the seeds.
    pub steps: Steps,
    /// Events handled, summed over the seeds.
    pub events: u64,
}

/// One figure of a variant.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figure {
    /// Its name, such as `idle`.
    pub name: String,
    /// Its unit: `%`, `ns` or `1`.
    pub unit: &'static str,
    /// The seeds that have it. Fewer than all if a run could not observe it.
    pub observed: usize,
    /// The mean over them; `None` without any.
    pub mean: Option<f64>,
    /// Its interval; `None` with fewer than two seeds.
    pub interval: Option<[f64; 2]>,
    /// The difference from the first variant's, paired by seed; `None` for the first variant itself.
    pub difference: Option<Difference>,
}

/// A difference paired by seed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Difference {
    /// Its mean.
    pub mean: f64,
    /// Its interval.
    pub interval: [f64; 2],
    /// Whether the interval excludes zero.
    pub excludes_zero: bool,
}

/// Idle time while some task waited, by cause.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CauseReport {
    /// The cause.
    pub cause: Cause,
    /// The cause, as a sentence.
    pub text: &'static str,
    /// CPU time idle for this cause, in milliseconds per run.
    pub idle_ms: f64,
    /// Passes that ended so, per run.
    pub passes: f64,
}

/// Sums up an experiment's outcomes, a row per variant and in it one per seed.
///
/// # Errors
/// [`Error::Statistics`] if a figure is not finite.
pub fn report(variants: &[Variant], seeds: &[u64], outcomes: &[Vec<Outcome>]) -> Result<Report, Error> {
    let first = outcomes.first().map(|outcomes| measures(outcomes)).unwrap_or_default();
    let rows = variants.iter().zip(outcomes).enumerate();
    let variants = rows
        .map(|(at, (variant, outcomes))| variant_report(variant, outcomes, (at > 0).then_some(&first)))
        .collect::<Result<_, _>>()?;
    Ok(Report { schema: "lineup.sched/1", seeds: seeds.to_vec(), level: LEVEL, variants })
}

fn variant_report(
    variant: &Variant,
    outcomes: &[Outcome],
    first: Option<&Vec<Measure>>,
) -> Result<VariantReport, Error> {
    let Scenario { topology, mechanisms, resolution, time_ns, .. } = &variant.scenario;
    let figure = |measure: Measure| {
        let base = first.and_then(|first| first.iter().find(|other| other.name == measure.name));
        measure.figure(base)
    };
    let off = Mechanism::ALL.iter().filter(|mechanism| !mechanisms.has(**mechanism));
    Ok(VariantReport {
        name: variant.name.clone(),
        cpus: topology.cpus,
        domains: topology.domains.clone(),
        smt: topology.smt,
        resolution: resolution.bits(),
        without: off.map(|mechanism| mechanism.name()).collect(),
        time_ns: *time_ns,
        figures: measures(outcomes).into_iter().map(figure).collect::<Result<_, _>>()?,
        idle_percent_by_second: by_second(outcomes),
        causes: causes(outcomes),
        steps: outcomes.iter().fold(Steps::default(), |sum, outcome| sum.plus(outcome.why.steps)),
        events: outcomes.iter().map(|outcome| outcome.events).sum(),
    })
}

/// A figure with its value for each seed.
#[derive(Default)]
struct Measure {
    name: String,
    unit: &'static str,
    values: Vec<Option<f64>>,
}

fn measures(outcomes: &[Outcome]) -> Vec<Measure> {
    let of = |name: &str, unit, value: &dyn Fn(&Outcome) -> Option<f64>| Measure {
        name: name.to_string(),
        unit,
        values: outcomes.iter().map(value).collect(),
    };
    let latency = |pick: fn(&crate::sim::Latency) -> u64| {
        move |outcome: &Outcome| outcome.latency.as_ref().map(|latency| pick(latency) as f64)
    };
    let mut measures = vec![
        of("usr", "%", &|outcome| Some(outcome.usr_percent())),
        of("idle", "%", &|outcome| Some(outcome.idle_percent())),
        of("missed work", "%", &|outcome| Some(outcome.missed_percent())),
        of("latency p50", "ns", &latency(|latency| latency.p50_ns)),
        of("latency p95", "ns", &latency(|latency| latency.p95_ns)),
        of("latency p99", "ns", &latency(|latency| latency.p99_ns)),
        of("latency max", "ns", &latency(|latency| latency.max_ns)),
        of("balance attempts", "1", &|outcome| Some(outcome.balance.total().attempts as f64)),
        of("balance failures", "1", &|outcome| Some(outcome.balance.total().failed as f64)),
        of("tasks pulled", "1", &|outcome| Some(outcome.balance.total().moved as f64)),
        of("active moves", "1", &|outcome| Some(outcome.balance.active_moves as f64)),
        of("wake-up moves", "1", &|outcome| Some(outcome.balance.wake_moves as f64)),
    ];
    let groups = outcomes.first().map_or(0, |outcome| outcome.groups.len());
    for at in 0..groups {
        let name = outcomes[0].groups[at].name.clone();
        let cpu =
            |outcome: &Outcome| Some(100.0 * outcome.groups[at].cpu_ns as f64 / outcome.capacity_ns() as f64);
        measures.push(of(&format!("group {name}: CPU"), "%", &cpu));
        let error = |outcome: &Outcome| outcome.groups[at].error_percent();
        measures.push(of(&format!("group {name}: fairness error"), "%", &error));
    }
    measures
}

impl Measure {
    fn figure(self, base: Option<&Measure>) -> Result<Figure, Error> {
        let values: Vec<f64> = self.values.iter().copied().flatten().collect();
        let mean = if values.is_empty() { None } else { Some(Summary::of(&values)?.mean) };
        let interval = match values.len() {
            0 | 1 => None,
            _ => Some(t_interval(&values, LEVEL)?).map(|interval| [interval.low, interval.high]),
        };
        let difference = base.map(|base| self.difference(base)).transpose()?.flatten();
        Ok(Figure { name: self.name, unit: self.unit, observed: values.len(), mean, interval, difference })
    }

    /// Over the seeds that have both.
    fn difference(&self, base: &Measure) -> Result<Option<Difference>, Error> {
        let pairs = base.values.iter().zip(&self.values);
        let (before, after): (Vec<f64>, Vec<f64>) = pairs.filter_map(|(a, b)| (*a).zip(*b)).unzip();
        if before.len() < 2 {
            return Ok(None);
        }
        let estimate = PairedBlocks::from_means(before, after)?.difference(LEVEL)?;
        let interval = [estimate.interval.low, estimate.interval.high];
        let excludes_zero = interval[0] > 0.0 || interval[1] < 0.0;
        Ok(Some(Difference { mean: estimate.difference, interval, excludes_zero }))
    }
}

fn by_second(outcomes: &[Outcome]) -> Vec<f64> {
    let all: Vec<Vec<f64>> = outcomes.iter().map(Outcome::idle_percent_by_second).collect();
    let seconds = all.first().map_or(0, Vec::len);
    (0..seconds).map(|second| all.iter().map(|run| run[second]).sum::<f64>() / all.len() as f64).collect()
}

fn causes(outcomes: &[Outcome]) -> Vec<CauseReport> {
    let runs = outcomes.len() as f64;
    let sum = |pick: &dyn Fn(&Outcome) -> u64| outcomes.iter().map(pick).sum::<u64>() as f64 / runs;
    let of = |(at, &cause): (usize, &Cause)| CauseReport {
        cause,
        text: cause.text(),
        idle_ms: sum(&|outcome| outcome.why.causes[at].1) / 1e6,
        passes: sum(&|outcome| outcome.why.causes[at].2),
    };
    let mut causes: Vec<CauseReport> = Cause::ALL
        .iter()
        .enumerate()
        .map(of)
        .filter(|cause| cause.idle_ms > 0.0 || cause.passes > 0.0)
        .collect();
    causes.sort_by(|a, b| b.idle_ms.total_cmp(&a.idle_ms));
    causes
}
