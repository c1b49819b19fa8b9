//! The weight of each recorded region, from samples of time.

use crate::samples::findings::{Symbols, read};
use crate::terminal::progress::Stages;
use anyhow::{Result, bail};
use clap::Args;
use lineup_explain::Explained;
use lineup_explain::explanation::RegionExplanation;
use lineup_find::{SampledFindings, SampledOptions};
use std::path::{Path, PathBuf};

/// Samples that weigh regions.
#[derive(Args)]
pub(crate) struct WeighingOptions {
    /// Weigh regions by the samples of time in this perf.data, callees included where call chains were sampled,
    /// instead of the weights of `lineup record`: a region counts by its share of the time over the instructions of
    /// its recorded calls
    #[arg(long, value_name = "PERF_DATA")]
    samples: Option<PathBuf>,
    #[command(flatten)]
    symbols: Symbols,
}

/// Parts of the names of events that count time, as perf writes them for any processor.
const EVENTS_OF_TIME: [&str; 2] = ["cycles", "clock"];

impl WeighingOptions {
    /// Weighs the recording's regions. Returns the weights in words; `None` without samples.
    ///
    /// # Errors
    /// When the file has no samples of time, or none in a recorded region.
    pub(crate) fn weigh(&self, recorded: &mut Explained, stages: &Stages) -> Result<Option<String>> {
        let Some(path) = &self.samples else { return Ok(None) };
        let found = read(path, &self.symbols, &SampledOptions::default(), stages)?;
        let calls = calls(&recorded.explanation.regions, &found, path)?;
        let most = calls.iter().copied().fold(0.0, f64::max);
        let mut words = Vec::new();
        for (region, calls) in recorded.explanation.regions.iter_mut().zip(calls) {
            region.weight = calls / most;
            recorded.survey.header.regions.weigh(region.id, region.weight);
            words.push(match calls > 0.0 {
                true => format!("{} {:.3}", region.name, region.weight),
                false => format!("{} 0, as no sample is in it", region.name),
            });
        }
        Ok(Some(format!("from the samples in {}: {}", path.display(), words.join(", "))))
    }
}

/// The calls of each region that the samples stand for, in a relative unit: the time spent in it, over the instructions
/// of one call. This assumes that an instruction takes equally long in every region.
fn calls(regions: &[RegionExplanation], found: &SampledFindings, path: &Path) -> Result<Vec<f64>> {
    let event = event_of_time(found, path)?;
    let functions = || found.functions.iter().filter(|function| function.event == event);
    let share = |region: &RegionExplanation| -> f64 {
        let own = functions().filter(|function| function.name == region.name);
        own.map(|function| function.with_callees.map_or(function.share, |with| with.share)).sum()
    };
    let mut calls = Vec::new();
    for region in regions {
        let instructions = region.instructions.as_ref().map_or(0.0, |instructions| instructions.mean);
        if instructions <= 0.0 {
            bail!("no call of {} was recorded: its samples cannot be converted to calls", region.name);
        }
        calls.push(share(region) / instructions);
    }
    if calls.iter().all(|calls| *calls <= 0.0) {
        let most: Vec<&str> = functions().take(5).map(|function| function.name.as_str()).collect();
        bail!(
            "{}: no sample is in a recorded region; most are in {}. Record those, or sample the program with \
             `perf record -g`, which records their callers",
            path.display(),
            most.join(", ")
        );
    }
    Ok(calls)
}

/// The event whose samples are spread over time; of several the one with most samples.
fn event_of_time(found: &SampledFindings, path: &Path) -> Result<u32> {
    let is_of_time = |name: &str| EVENTS_OF_TIME.iter().any(|known| name.contains(known));
    let events = (0..).zip(&found.events).filter(|(_, event)| is_of_time(&event.name));
    match events.max_by_key(|(_, event)| event.samples) {
        Some((number, _)) => Ok(number),
        None => {
            let names: Vec<&str> = found.events.iter().map(|event| event.name.as_str()).collect();
            bail!(
                "{}: samples of {} do not measure time; sample it with `perf record -g -e cycles`, or \
                 `-e cpu-clock` where there are no hardware counters",
                path.display(),
                if names.is_empty() { "nothing".into() } else { names.join(", ") }
            )
        }
    }
}
