//! `lineup record --perf`: samples of a program at its own speed, as a perf.data.

use super::args::Options;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Result, bail};
use lineup_model::figure::{time_ns, whole};
use lineup_prove::run::Ending;
use lineup_report::visible::one_line;
use lineup_study::perf::{self, Basis, PerfOutcome, PerfRequest};
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::run::Stopped;
use serde::Serialize;
use std::fmt::Write;

/// The samples, as shown.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    /// The perf.data.
    file: String,
    file_bytes: u64,
    events: Vec<Event>,
    /// Events that would have given more, and the reasons why they were not available.
    not_sampled: Vec<NotSampled>,
    lost_records: u64,
    lost_samples: u64,
    throttled: u64,
    wall_ns: u64,
    /// The program's end.
    exit_status: Option<i32>,
    signal: Option<i32>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Event {
    name: String,
    /// The basis of its samples.
    basis: &'static str,
    samples: u64,
    sees_kernel: bool,
}

#[derive(Serialize)]
struct NotSampled {
    what: String,
    why: String,
}

/// Runs it.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let run = match options.pid {
        Some(process) => options.limits.of_process(process)?,
        None => options.limits.run(&options.command, &options.environment, &interrupts, &stages)?,
    };
    let request = PerfRequest {
        run,
        process: options.pid,
        output: options.output().to_owned(),
        samples_per_second: options.perf.samples_per_second,
        least_cycles: options.perf.least_cycles,
        streams: if options.json { Streams::Shown } else { Streams::Ours },
    };
    let program = request.run.command.first().map_or(String::new(), |program| program.display().to_string());
    stages.stage(&format!("sampling {program}"));
    let outcome = perf::record(&request, &interrupts)?;
    stages.end();
    let report = report(&request, &outcome);
    let out = if options.json { serde_json::to_string_pretty(&report)? + "\n" } else { text(&report) };
    output::print(&out)?;
    match outcome.finished.map(|finished| (finished.ending, finished.stopped)) {
        Some((Ending::Killed(signal), None)) => bail!(
            "the program was ended by {}; the samples until then are kept in {}",
            lineup_model::signal_name(signal),
            request.output.display()
        ),
        _ => Ok(Outcome::Done),
    }
}

fn report(request: &PerfRequest, outcome: &PerfOutcome) -> Report {
    let (exit_status, signal) = match outcome.finished.as_ref().map(|finished| finished.ending) {
        Some(Ending::Exited(status)) => (Some(status), None),
        Some(Ending::Killed(signal)) => (None, Some(signal)),
        Some(Ending::Stopped) | None => (None, None),
    };
    let events = outcome.events.iter().map(|event| Event {
        name: event.name.clone(),
        basis: basis(event.basis),
        samples: event.samples,
        sees_kernel: event.sees_kernel,
    });
    let not_sampled = outcome.tried.iter();
    Report {
        schema: "lineup.record-perf/1",
        file: request.output.display().to_string(),
        file_bytes: outcome.file_bytes,
        events: events.collect(),
        not_sampled: not_sampled
            .map(|tried| NotSampled { what: tried.what.clone(), why: tried.why.clone() })
            .collect(),
        lost_records: outcome.lost_records,
        lost_samples: outcome.lost_samples,
        throttled: outcome.throttled,
        wall_ns: outcome.wall_ns,
        exit_status,
        signal,
        notes: notes(request, outcome),
    }
}

fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Memory => "memory",
        Basis::Cycles => "cycles",
        Basis::Clock => "clock",
    }
}

/// Further notes.
fn notes(request: &PerfRequest, outcome: &PerfOutcome) -> Vec<String> {
    let mut notes = Vec::new();
    if !outcome.events.iter().any(|event| event.basis == Basis::Memory) {
        notes.push(
            "no accesses were sampled: these samples say where time goes, not what loads waited for"
                .to_owned(),
        );
    }
    if outcome.events.iter().any(|event| !event.sees_kernel) {
        notes.push("the kernel may not be sampled, so its share of the time is unknown".to_owned());
    }
    if outcome.has_ended && request.process.is_some() {
        notes.push("the process ended while it was watched".to_owned());
    }
    if outcome.finished.as_ref().and_then(|finished| finished.stopped) == Some(Stopped::Time) {
        notes.push("the program was ended when its time was over".to_owned());
    }
    let counted = [
        (outcome.lost_records, "records were lost: the kernel had no room for them"),
        (outcome.lost_samples, "samples were lost: the processor had no room for them"),
        (outcome.throttled, "times the kernel stopped sampling, since samples came too fast"),
    ];
    let counted = counted.iter().filter(|(count, _)| *count > 0);
    notes.extend(counted.map(|(count, what)| format!("{} {what}", whole(*count))));
    notes
}

fn text(report: &Report) -> String {
    let mut out = String::new();
    for event in &report.events {
        let what = match event.basis {
            "memory" => "accesses to memory",
            "cycles" => "cycles",
            _ => "the clock",
        };
        let _ = writeln!(
            out,
            "{} samples of {what} in {}, by the event {}",
            whole(event.samples),
            time_ns(report.wall_ns as f64),
            one_line(&event.name)
        );
    }
    for one in &report.not_sampled {
        let _ = writeln!(out, "not sampled: {}: {}", one_line(&one.what), one.why);
    }
    for note in &report.notes {
        let _ = writeln!(out, "note: {note}");
    }
    if let Some(status) = report.exit_status.filter(|status| *status != 0) {
        let _ = writeln!(out, "the program exited with status {status}");
    }
    let file = shell_words::quote(&report.file);
    let _ = writeln!(out, "samples: {}; their summary: lineup explain {file}", report.file);
    out
}
