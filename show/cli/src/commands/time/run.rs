//! Runs `lineup time`.

use super::args::Options;
use super::interventions::Plan;
use super::report::{Bucket, HighWater, RegionTimes, Report};
use super::{interventions, view};
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use crate::timing::clock::{Clock, histogram};
use anyhow::{Result, anyhow, bail};
use lineup_model::region::Regions;
use lineup_prove::run::Ending;
use lineup_recording::{Mode, Selection};
use lineup_study::interrupt::Interrupts;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::recorder::{self, Engine, RecordRequest, Subject, TimedRegion, Times};

/// Runs `lineup time`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let request = request(options, &interrupts, &stages)?;
    let subject = Subject::load(&request.run, None)?;
    stages.stage("timing calls");
    let times = recorder::time(&request, &subject, &interrupts)?;
    // Times until an interruption are shown to their end.
    let _keeping = interrupts.check().is_err().then(|| interrupts.keeping());
    stages.end();
    let report = report(&request, &times);
    output::print(&match options.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => view::text(&report, output::text_style()),
    })?;
    let Some(finished) = &times.finished else {
        let cut = interrupts.check().err().map_or_else(|| anyhow!("interrupted"), anyhow::Error::from);
        return Ok(Outcome::CutShort(cut.context("the times above are of the calls until then")));
    };
    match finished.ending {
        Ending::Killed(signal) if finished.stopped.is_none() => {
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

fn report(request: &RecordRequest, times: &Times) -> Report {
    let (exit_status, signal) = match times.finished.as_ref().map(|finished| finished.ending) {
        Some(Ending::Exited(status)) => (Some(status), None),
        Some(Ending::Killed(signal)) => (None, Some(signal)),
        Some(Ending::Stopped) | None => (None, None),
    };
    let clock = Clock::of(times);
    let elapsed_ns = u64::try_from(times.elapsed.as_nanos()).unwrap_or(u64::MAX);
    let region = |(position, region): (usize, &TimedRegion)| {
        let intervened = request.interventions.as_ref();
        let drawn = |request| interventions::drawn(request, times, (position, region), &clock);
        RegionTimes { interventions: intervened.map(drawn), ..times_of(&clock, region, elapsed_ns) }
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
        interventions: request.interventions.as_ref().map(Plan::of),
        regions: times.regions.iter().enumerate().map(region).collect(),
        notes: times.notes.clone(),
    }
}

fn times_of(clock: &Clock, region: &TimedRegion, elapsed_ns: u64) -> RegionTimes {
    let histogram = histogram(region);
    let calls = histogram.total();
    let total_ns = clock.total_ns(region, calls);
    let quantile = |q| histogram.quantile(q).map(|cycles| clock.ns(cycles.min(region.most)));
    let bucket = |(from, to, calls)| Bucket { from_ns: clock.ns(from), to_ns: clock.ns(to), calls };
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
        max_ns: (calls > 0).then(|| clock.ns(region.most)),
        high_water: high_water(clock, region),
        buckets: histogram.buckets().map(bucket).collect(),
        interventions: None,
    }
}

/// The calls of all threads that were longer than any before.
fn high_water(clock: &Clock, region: &TimedRegion) -> Vec<HighWater> {
    let mut most = 0;
    let longer = region.marks.iter().filter(|mark| {
        let is_longer = mark.cycles > most;
        most = most.max(mark.cycles);
        is_longer
    });
    longer
        .map(|mark| HighWater {
            after_ns: mark.begun_at.saturating_sub(clock.begun_at) as f64 * clock.cycles_ns,
            ns: clock.ns(mark.cycles),
            cpu: mark.processor,
        })
        .collect()
}
