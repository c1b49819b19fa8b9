//! Interventions before some of the calls, and their effects.

use super::Clock;
use crate::record::host_caches;
use anyhow::{Context, Result};
use clap::Args;
use lineup_cache::CacheLevel;
use lineup_model::region::Regions;
use lineup_recording::native::timed::Arm;
use lineup_stats::interval::IntervalEstimate;
use lineup_stats::random::Seed;
use lineup_study::recorder::{self, RecordedCode, TimedRegion, Times};
use lineup_trace::attribution::raised_median;
use lineup_trace::estimate::Level;
use lineup_trace::tail::Sample;
use serde::Serialize;
use std::path::PathBuf;

/// By default one call in this many is sampled, on average.
const EVERY: u64 = 20;
/// By default at most one part in this many of each thread's time goes to interventions.
const PARTS: u64 = 20;
/// The caches' size is read this many times: the place of data in a cache is unknown, and one read may displace the
/// data of another read instead.
const SWEEPS: u64 = 4;
/// The number of a run's calls that are emptied, where calls are to be alike,
const EMPTIED: u64 = 2000;
/// but at most one in this many on average.
const LEAST_EVERY: u64 = 2;

/// Arguments for it.
#[derive(Args)]
pub(super) struct InterventionOptions {
    /// Interventions before randomly sampled calls, compared with none: flush_code (the lines of the function's code
    /// are flushed), flush_data (the caches of the first two levels are filled with other data), flush_both
    #[arg(long, value_name = "ARM,…", value_delimiter = ',', value_parser = arm)]
    intervene: Vec<Arm>,
    /// Sample one of N calls on average [default: one of 20, with at most a twentieth of each thread's time]
    #[arg(long, value_name = "N", requires = "intervene", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    intervene_every: Option<u64>,
    /// Where code is flushed: the lines of the function's file that its calls in this recording executed, callees'
    /// included, instead of its own alone
    #[arg(long, value_name = "RECORDING", requires = "intervene", conflicts_with = "children")]
    flush_recorded: Option<PathBuf>,
    /// Seed of the random choices
    #[arg(long, value_name = "N", requires = "intervene", default_value_t = Seed::default().0)]
    seed: u64,
}

fn arm(name: &str) -> Result<Arm, String> {
    let named = Arm::ALL.into_iter().find(|arm| arm.name() == name);
    named.ok_or_else(|| format!("it is one of {}", Arm::ALL.map(Arm::name).join(", ")))
}

impl InterventionOptions {
    /// The interventions that the engine is to make for these regions; `None` when there are none.
    pub(super) fn request(&self, regions: &Regions) -> Result<Option<recorder::Interventions>> {
        if self.intervene.is_empty() || regions.is_empty() {
            return Ok(None);
        }
        let recorded = self.flush_recorded.as_ref().map(|recording| RecordedCode::read(recording, regions));
        let arms: Vec<Arm> =
            Arm::ALL.into_iter().filter(|arm| *arm == Arm::None || self.intervene.contains(arm)).collect();
        let swept_bytes = match arms.iter().any(|arm| arm.flushes_data()) {
            true => swept_bytes()?,
            false => 0,
        };
        Ok(Some(recorder::Interventions {
            arms,
            every: self.intervene_every.unwrap_or(EVERY),
            rest: if self.intervene_every.is_some() { 0 } else { PARTS * regions.len() as u64 - 1 },
            seed: self.seed,
            swept_bytes,
            flushed: recorded.transpose()?.unwrap_or_default(),
        }))
    }
}

/// The bytes to read to push other data out of the first two levels.
fn swept_bytes() -> Result<u64> {
    let specs = host_caches::read().context("what empties its caches of data is chosen by their sizes")?;
    let holds_data = |level| matches!(level, CacheLevel::L1d | CacheLevel::L2);
    let sizes = specs.iter().filter(|spec| holds_data(spec.level())).map(|spec| spec.size_bytes());
    Ok(SWEEPS * sizes.sum::<u64>())
}

/// Flushes this code before some calls; `most_calls` is the number of calls of the most called function. The seed alone
/// decides which calls these are: programs that make the same calls get the same ones.
pub(crate) fn emptied(flushed: Vec<RecordedCode>, most_calls: u64, seed: u64) -> recorder::Interventions {
    recorder::Interventions {
        arms: vec![Arm::FlushCode],
        every: (most_calls / EMPTIED).max(LEAST_EVERY),
        rest: 0,
        seed,
        swept_bytes: 0,
        flushed,
    }
}

/// The number of calls of each region with an intervention before them, and the median of their times.
pub(crate) fn typical(times: &Times) -> Vec<(u64, Option<f64>)> {
    let clock = Clock::of(times);
    let one = |position| {
        let own = times.trials.iter().filter(|trial| trial.region == position);
        let sample: Sample = own.map(|trial| clock.ns(trial.cycles)).collect();
        (sample.len() as u64, sample.quantile(0.5))
    };
    (0..times.regions.len()).map(one).collect()
}

/// The requested interventions.
#[derive(Serialize)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) every: u64,
    pub(super) rest: u64,
    pub(super) swept_bytes: u64,
    /// The code that recorded calls executed is flushed, not the function's own code alone.
    pub(super) flushes_recorded: bool,
    pub(super) level: Level,
}

impl Plan {
    pub(super) fn of(request: &recorder::Interventions) -> Plan {
        let recorder::Interventions { every, rest, seed, swept_bytes, .. } = *request;
        let flushes_recorded = !request.flushed.is_empty();
        Plan { seed, every, rest, swept_bytes, flushes_recorded, level: Level::default() }
    }
}

/// The sampled calls of a region, with their times.
#[derive(Serialize)]
pub(super) struct SampledCallTimes {
    pub(super) drawn: u64,
    pub(super) spent_ns: f64,
    pub(super) arms: Vec<ArmTimes>,
}

/// The calls before which the same was done.
#[derive(Serialize)]
pub(super) struct ArmTimes {
    pub(super) arm: &'static str,
    pub(super) calls: u64,
    pub(super) mean_ns: Option<f64>,
    pub(super) min_ns: Option<f64>,
    pub(super) p50_ns: Option<f64>,
    pub(super) p90_ns: Option<f64>,
    pub(super) p99_ns: Option<f64>,
    pub(super) max_ns: Option<f64>,
    /// By how much it raises the median of calls before which nothing was done.
    pub(super) raises_median_ns: Option<IntervalEstimate>,
}

/// By arm, of the region at a position.
pub(super) fn drawn(
    request: &recorder::Interventions,
    times: &Times,
    (position, region): (usize, &TimedRegion),
    clock: &Clock,
) -> SampledCallTimes {
    let sample = |arm: Arm| -> Sample {
        let own = times.trials.iter().filter(|trial| trial.region == position && trial.arm == arm);
        own.map(|trial| clock.ns(trial.cycles)).collect()
    };
    let base = sample(Arm::None);
    let arms = request.arms.iter().map(|arm| {
        let sample = sample(*arm);
        let raises_median_ns = match arm {
            Arm::None => None,
            _ => raised_median(&sample, &base, Level::default()),
        };
        arm_times(*arm, &sample, raises_median_ns)
    });
    SampledCallTimes { drawn: region.drawn, spent_ns: clock.span_ns(region.spent), arms: arms.collect() }
}

fn arm_times(arm: Arm, sample: &Sample, raises_median_ns: Option<IntervalEstimate>) -> ArmTimes {
    let mean = sample.values().sum::<f64>() / sample.len() as f64;
    ArmTimes {
        arm: arm.name(),
        calls: sample.len() as u64,
        mean_ns: (!sample.is_empty()).then_some(mean),
        min_ns: sample.quantile(0.0),
        p50_ns: sample.quantile(0.5),
        p90_ns: sample.quantile(0.9),
        p99_ns: sample.quantile(0.99),
        max_ns: sample.quantile(1.0),
        raises_median_ns,
    }
}
