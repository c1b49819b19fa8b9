//! Interventions before some of the calls, and their effects.

use crate::host::caches;
use crate::timing::clock::Clock;
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

/// Arguments for it.
#[derive(Args)]
pub(crate) struct InterventionOptions {
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
    pub(crate) fn request(&self, regions: &Regions) -> Result<Option<recorder::Interventions>> {
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
    let specs =
        caches::of_this_machine().context("what empties its caches of data is chosen by their sizes")?;
    let holds_data = |level| matches!(level, CacheLevel::L1d | CacheLevel::L2);
    let sizes = specs.iter().filter(|spec| holds_data(spec.level())).map(|spec| spec.size_bytes());
    Ok(SWEEPS * sizes.sum::<u64>())
}

/// The requested interventions.
#[derive(Serialize)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) every: u64,
    pub(crate) rest: u64,
    pub(crate) swept_bytes: u64,
    /// The code that recorded calls executed is flushed, not the function's own code alone.
    pub(crate) flushes_recorded: bool,
    pub(crate) level: Level,
}

impl Plan {
    pub(crate) fn of(request: &recorder::Interventions) -> Plan {
        let recorder::Interventions { every, rest, seed, swept_bytes, .. } = *request;
        let flushes_recorded = !request.flushed.is_empty();
        Plan { seed, every, rest, swept_bytes, flushes_recorded, level: Level::default() }
    }
}

/// The sampled calls of a region, with their times.
#[derive(Serialize)]
pub(crate) struct SampledCallTimes {
    pub(crate) drawn: u64,
    pub(crate) spent_ns: f64,
    pub(crate) arms: Vec<ArmTimes>,
}

/// The calls before which the same was done.
#[derive(Serialize)]
pub(crate) struct ArmTimes {
    pub(crate) arm: &'static str,
    pub(crate) calls: u64,
    pub(crate) mean_ns: Option<f64>,
    pub(crate) min_ns: Option<f64>,
    pub(crate) p50_ns: Option<f64>,
    pub(crate) p90_ns: Option<f64>,
    pub(crate) p99_ns: Option<f64>,
    pub(crate) max_ns: Option<f64>,
    /// By how much it raises the median of calls before which nothing was done.
    pub(crate) raises_median_ns: Option<IntervalEstimate>,
}

/// By arm, of the region at a position.
pub(crate) fn drawn(
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
