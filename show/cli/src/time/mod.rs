//! `lineup time`: how long calls of functions take, with the program at its own speed.

pub(crate) mod interventions;
mod text;

use crate::files;
use crate::outcome::Outcome;
use crate::progress::Stages;
use crate::surroundings::Surroundings;
use anyhow::{Result, bail};
use clap::Args;
use lineup_model::region::{Region, Regions};
use lineup_prove::run::Ending;
use lineup_recording::{Mode, Selection};
use lineup_study::interrupt::Interrupts;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::recorder::{self, Engine, RecordRequest, Subject, TimedRegion, Times};
use lineup_trace::Histogram;
use lineup_trace::layout::bucket_range;
use serde::Serialize;
use std::ffi::OsString;

/// Arguments of `lineup time`.
#[derive(Args)]
pub(crate) struct Options {
    /// Function whose calls are timed, callees included; up to seven
    #[arg(long = "region", value_name = "F", required = true)]
    regions: Vec<Region>,
    /// Running process to attach to; Lineup detaches when enough calls were made (--stop-after), after
    /// --max-seconds, or with Ctrl-C
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=0x7fff_ffff), conflicts_with_all = ["command", "environment", "drive", "stdin"])]
    pid: Option<u32>,
    /// Time calls in the programs that the program starts, too: all calls of a function are added up
    #[arg(long, conflicts_with = "pid")]
    children: bool,
    /// Add a variable to the program's environment
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = crate::record::variable)]
    environment: Vec<(OsString, OsString)>,
    /// Print JSON (schema lineup.time/1); the program's output then goes to standard error
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    interventions: interventions::InterventionOptions,
    #[command(flatten)]
    limits: Surroundings,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "pid", value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// The timing, as shown.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    command: Vec<String>,
    exit_status: Option<i32>,
    signal: Option<i32>,
    elapsed_ns: u64,
    /// The number of processes whose calls were timed.
    processes: u64,
    cycles_per_second: f64,
    /// The stamps' own part of each time: it is subtracted.
    stamp_ns: f64,
    /// The program's added time for each call.
    added_ns: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    interventions: Option<interventions::Plan>,
    regions: Vec<RegionTimes>,
    notes: Vec<String>,
}

/// The times of a region's calls.
#[derive(Serialize)]
struct RegionTimes {
    name: String,
    calls: u64,
    left: u64,
    inner: u64,
    jumped: u64,
    total_ns: f64,
    share: f64,
    mean_ns: Option<f64>,
    min_ns: Option<f64>,
    p50_ns: Option<f64>,
    p90_ns: Option<f64>,
    p99_ns: Option<f64>,
    p999_ns: Option<f64>,
    max_ns: Option<f64>,
    high_water: Vec<HighWater>,
    buckets: Vec<Bucket>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interventions: Option<interventions::SampledCallTimes>,
}

/// A call that took longer than any before.
#[derive(Serialize)]
struct HighWater {
    after_ns: f64,
    ns: f64,
    cpu: Option<u32>,
}

/// Calls by time.
#[derive(Serialize)]
struct Bucket {
    from_ns: f64,
    to_ns: f64,
    calls: u64,
}

/// Runs `lineup time`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let request = request(options, &interrupts, &stages)?;
    let subject = Subject::load(&request.run, None)?;
    stages.stage("timing calls");
    let times = recorder::time(&request, &subject, &interrupts)?;
    stages.end();
    let report = report(&request, &times);
    files::print(&match options.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => text::text(&report, files::text_style()),
    })?;
    match times.finished.ending {
        Ending::Killed(signal) if times.finished.stopped.is_none() => {
            bail!(
                "the program was ended by {}; times until then are above",
                lineup_model::signal_name(signal)
            )
        }
        _ => Ok(Outcome::Done),
    }
}

fn request(options: &Options, interrupts: &Interrupts, stages: &Stages) -> Result<RecordRequest> {
    let run = match options.pid {
        Some(process) => options.limits.of_process(process)?,
        None => options.limits.run(&options.command, &options.environment, interrupts, stages)?,
    };
    let regions: Regions = options.regions.iter().cloned().collect();
    Ok(RecordRequest {
        process: options.pid,
        selection: Selection::First,
        calls_per_second: None,
        children: options.children,
        interventions: options.interventions.request(&regions)?,
        regions,
        stop_after: options.limits.stop_after(),
        streams: if options.json { Streams::Shown } else { Streams::Ours },
        ..RecordRequest::new(run, Engine::Native, Mode::TwoPass)
    })
}

/// The calls of each region, and their total time in nanoseconds, without the stamps.
pub(crate) fn totals(times: &Times) -> Vec<(u64, u64)> {
    let clock = Clock::of(times);
    let total = |region: &TimedRegion| {
        let calls = histogram(region).total();
        (calls, clock.total_ns(region, calls) as u64)
    };
    times.regions.iter().map(total).collect()
}

fn report(request: &RecordRequest, times: &Times) -> Report {
    let (exit_status, signal) = match times.finished.ending {
        Ending::Exited(status) => (Some(status), None),
        Ending::Killed(signal) => (None, Some(signal)),
        Ending::Stopped => (None, None),
    };
    let clock = Clock::of(times);
    let elapsed_ns = u64::try_from(times.elapsed.as_nanos()).unwrap_or(u64::MAX);
    let region = |(position, region): (usize, &TimedRegion)| {
        let intervened = request.interventions.as_ref();
        let drawn = |request| interventions::drawn(request, times, (position, region), &clock);
        RegionTimes { interventions: intervened.map(drawn), ..clock.region(region, elapsed_ns) }
    };
    Report {
        schema: "lineup.time/1",
        command: request.run.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        exit_status,
        signal,
        elapsed_ns,
        processes: times.processes,
        cycles_per_second: times.cycles_per_second,
        stamp_ns: clock.stamp_cycles * clock.cycles_ns,
        added_ns: times.added_cycles * clock.cycles_ns,
        interventions: request.interventions.as_ref().map(interventions::Plan::of),
        regions: times.regions.iter().enumerate().map(region).collect(),
        notes: times.notes.clone(),
    }
}

/// Counts of calls, as a trace has them.
fn histogram(region: &TimedRegion) -> Histogram {
    let mut histogram = Histogram::default();
    for (count, bucket) in region.buckets.iter().zip(0..).filter(|(count, _)| **count > 0) {
        histogram.add(bucket_range(bucket).0, *count);
    }
    histogram
}

/// The mean of all but the longest hundredth, which something else has interrupted.
fn usual_mean(histogram: &Histogram) -> f64 {
    let longest = histogram.quantile(0.99).unwrap_or_default();
    let usual = || histogram.buckets().filter(|(from, _, _)| *from <= longest);
    let sum: f64 = usual().map(|(from, to, calls)| (from + (to - from) / 2) as f64 * calls as f64).sum();
    sum / usual().map(|(_, _, calls)| calls).sum::<u64>().max(1) as f64
}

/// The conversion of cycles to time.
struct Clock {
    cycles_ns: f64,
    stamp_cycles: f64,
    begun_at: u64,
}

impl Clock {
    fn of(times: &Times) -> Clock {
        Clock {
            cycles_ns: 1e9 / times.cycles_per_second.max(1.0),
            stamp_cycles: usual_mean(&histogram(&times.stamps)),
            begun_at: times.begun_at,
        }
    }

    /// The time of all these calls of a region, without that of the stamps.
    fn total_ns(&self, region: &TimedRegion, calls: u64) -> f64 {
        (region.sum as f64 - calls as f64 * self.stamp_cycles).max(0.0) * self.cycles_ns
    }

    /// A span of the counter.
    fn span_ns(&self, cycles: u64) -> f64 {
        cycles as f64 * self.cycles_ns
    }

    /// A call's time without that of the stamps.
    fn ns(&self, cycles: u64) -> f64 {
        (cycles as f64 - self.stamp_cycles).max(0.0) * self.cycles_ns
    }

    fn region(&self, region: &TimedRegion, elapsed_ns: u64) -> RegionTimes {
        let histogram = histogram(region);
        let calls = histogram.total();
        let total_ns = self.total_ns(region, calls);
        let quantile = |q| histogram.quantile(q).map(|cycles| self.ns(cycles.min(region.most)));
        let bucket = |(from, to, calls)| Bucket { from_ns: self.ns(from), to_ns: self.ns(to), calls };
        RegionTimes {
            name: region.name.clone(),
            calls,
            left: region.left,
            inner: region.inner,
            jumped: region.jumped,
            total_ns,
            share: total_ns / elapsed_ns.max(1) as f64,
            mean_ns: (calls > 0).then(|| total_ns / calls as f64),
            min_ns: quantile(0.0),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns: (calls > 0).then(|| self.ns(region.most)),
            high_water: self.high_water(region),
            buckets: histogram.buckets().map(bucket).collect(),
            interventions: None,
        }
    }

    /// The calls of all threads that were longer than any before.
    fn high_water(&self, region: &TimedRegion) -> Vec<HighWater> {
        let mut most = 0;
        let longer = region.marks.iter().filter(|mark| {
            let is_longer = mark.cycles > most;
            most = most.max(mark.cycles);
            is_longer
        });
        longer
            .map(|mark| HighWater {
                after_ns: mark.begun_at.saturating_sub(self.begun_at) as f64 * self.cycles_ns,
                ns: self.ns(mark.cycles),
                cpu: mark.processor,
            })
            .collect()
    }
}
