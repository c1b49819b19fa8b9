//! `lineup measure`: one program, several runs, every quantity with its error.

pub(crate) mod csv;
mod emulated;
mod json;
mod markdown;
mod text;

use crate::outcome::Outcome;
use crate::progress::Stages;
use anyhow::{Context, Result, bail};
use lineup_prove::measure::{Measurement, summarise};
use lineup_prove::metric::{Reading, over_runs};
use lineup_prove::readings::readings;
use lineup_prove::run::{Ending, Slot, Variant};
use lineup_stats::random::Seed;
use lineup_study::counters;
use lineup_study::error::Error;
use lineup_study::input::Input;
use lineup_study::interrupt::{Interrupted, Interrupts};
use lineup_study::printed::PrintedMetrics;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::run::Run;
use lineup_study::timing::{Placing, ProcessRunner, RunnerOptions};
use lineup_study::tool;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Runs a program several times and prints every counter with its standard error, ratios with
/// their own intervals, and quantiles: `perf stat -r` with and without hardware counters.
#[derive(clap::Args)]
pub(crate) struct Measure {
    /// How many runs.
    #[arg(short = 'r', long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Untimed runs at the start.
    #[arg(short = 'w', long, default_value_t = 0)]
    warm_up: u32,
    /// Events to count, as for perf stat: cycles,instructions:u,{branches,branch-misses},r01c2.
    #[arg(short = 'e', long = "event", default_value = counters::DEFAULT_EVENTS)]
    events: Vec<String>,
    /// Shell command before every run, untimed.
    #[arg(long)]
    pre: Option<String>,
    /// Shell command after every run, untimed.
    #[arg(long)]
    post: Option<String>,
    /// CPUs to run on: none (anywhere), auto (one per run in turn), apart (each thread on one of its own), together, or
    /// a list such as 0,2.
    #[arg(long, default_value = "none")]
    pin: Placing,
    /// Also count the program's instructions exactly, by running it twice under the emulator.
    #[arg(long)]
    emulate: bool,
    /// File that the program reads as standard input.
    #[arg(long)]
    stdin: Option<PathBuf>,
    /// A number the program prints: a pattern with the number in parentheses. Lines `lineup-metric
    /// NAME VALUE UNIT` are picked up without it.
    #[arg(long = "metric")]
    metrics: Vec<String>,
    /// Show what the program prints, on standard error.
    #[arg(long, conflicts_with = "metrics")]
    show_output: bool,
    #[command(flatten)]
    format: Format,
    /// Write the result to a file instead of standard output.
    #[arg(short = 'o', long)]
    output: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// The form of a result.
#[derive(clap::Args, Clone, Copy)]
#[group(multiple = false)]
pub(crate) struct Format {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print comma-separated values.
    #[arg(long)]
    pub(crate) csv: bool,
    /// Print a Markdown table of at most 72 columns, for a commit message or a mailing list.
    #[arg(long)]
    pub(crate) markdown: bool,
}

/// A measurement and its result.
struct Report {
    command: Vec<String>,
    measurement: Measurement,
    failed_runs: usize,
    interrupted: Option<Interrupted>,
}

/// Runs the command.
pub(crate) fn run(measure: Measure) -> Result<Outcome> {
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let run = Run {
        command: measure.command.clone(),
        input: given_input(measure.stdin.as_deref(), &interrupts)?,
        ..Run::default()
    };
    let mut runner = runner(&measure, run.clone(), &interrupts)?;
    let (runs, failed_runs, interrupted) = collect(&measure, &mut runner, &stages)?;
    // A measurement that a signal cut short is summed up from its runs so far.
    let _keeping = interrupted.map(|_| interrupts.keeping());
    if let (true, Some(interrupted)) = (runs.is_empty(), interrupted) {
        return Err(interrupted.into());
    }
    let mut metrics = over_runs(&runs);
    if measure.emulate && interrupted.is_none() {
        stages.stage("counting instructions under the emulator");
        metrics.push(emulated::instructions(&run, &interrupts)?);
    }
    stages.end();
    let report = Report {
        command: measure.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        measurement: summarise(&metrics, Seed::default()),
        failed_runs,
        interrupted,
    };
    let rendered = match measure.format {
        Format { json: true, .. } => json::render(&report)?,
        Format { csv: true, .. } => csv::render(&report.measurement),
        Format { markdown: true, .. } => markdown::render(&report),
        _ => text::render(&report),
    };
    write_result(measure.output.as_deref(), &rendered)?;
    Ok(match interrupted {
        Some(interrupted) => Outcome::CutShort(interrupted.into()),
        None => Outcome::Done,
    })
}

fn runner(measure: &Measure, run: Run, interrupts: &Interrupts) -> Result<ProcessRunner> {
    let options = RunnerOptions {
        placing: measure.pin.clone(),
        events: counters::parse(&measure.events.join(","))?,
        streams: if measure.show_output { Streams::Shown } else { Streams::Captured },
        printed: PrintedMetrics::new(&measure.metrics)?,
        links: None,
        vary_environment: None,
    };
    Ok(ProcessRunner::new(vec![run], options, interrupts)?)
}

/// The input that a file gives to every run; empty when no file is named.
pub(crate) fn given_input(file: Option<&Path>, interrupts: &Interrupts) -> Result<Input> {
    Ok(match file {
        Some(file) => Input::from_file(file, interrupts)?,
        None => Input::Nothing,
    })
}

/// The readings of every complete run, the number of failed runs, and whether a signal cut them short.
fn collect(
    measure: &Measure,
    runner: &mut ProcessRunner,
    stages: &Stages,
) -> Result<(Vec<Vec<Reading>>, usize, Option<Interrupted>)> {
    let mut runs = Vec::new();
    let mut failed = 0;
    let all = u64::from(measure.warm_up) + u64::from(measure.repeat);
    stages.stage("running the program");
    for number in 0..all {
        stages.advance(number, all);
        let timed = number.checked_sub(u64::from(measure.warm_up));
        let slot = Slot { variant: Variant::BEFORE, number, block: timed };
        match one_run(measure, runner, &slot) {
            Ok((readings, ending)) if timed.is_some() => {
                failed += usize::from(ending != Ending::Exited(0));
                runs.push(readings);
            }
            Ok(_) => {}
            Err(error) => match error.downcast_ref::<Error>().and_then(Error::interrupted) {
                Some(interrupted) => return Ok((runs, failed, Some(interrupted))),
                None => return Err(error),
            },
        }
    }
    Ok((runs, failed, None))
}

fn one_run(measure: &Measure, runner: &mut ProcessRunner, slot: &Slot) -> Result<(Vec<Reading>, Ending)> {
    shell(measure.pre.as_deref(), "--pre")?;
    let result = runner.run_slot(slot)?;
    shell(measure.post.as_deref(), "--post")?;
    Ok((readings(&result), result.ending))
}

/// Runs a preparation or clean-up command.
fn shell(command: Option<&str>, option: &str) -> Result<()> {
    let Some(command) = command else { return Ok(()) };
    let status = tool::shell(command).with_context(|| format!("running {option} {command:?}"))?;
    if !status.success() {
        bail!("{option} {command:?} failed with {status}");
    }
    Ok(())
}

/// Prints a result or writes it to a file.
pub(crate) fn write_result(path: Option<&Path>, rendered: &str) -> Result<()> {
    match path {
        Some(path) => std::fs::write(path, rendered).with_context(|| format!("writing {}", path.display())),
        None => match std::io::stdout().write_all(rendered.as_bytes()) {
            // The reader of the output has seen enough.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            result => result.context("writing the result"),
        },
    }
}
