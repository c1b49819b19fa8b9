//! Runs `lineup measure`.

use super::args::Measure;
use super::report::Report;
use super::{csv, derive, emulated, json, markdown, view};
use crate::options::format::Format;
use crate::options::values::given_input;
use crate::terminal::outcome::Outcome;
use crate::terminal::output::write_result;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, anyhow, bail};
use lineup_prove::measure::summarise;
use lineup_prove::metric::{Reading, over_runs};
use lineup_prove::readings::readings;
use lineup_prove::run::{Ending, RunResult, Slot, Variant};
use lineup_stats::random::Seed;
use lineup_study::error::Error;
use lineup_study::interrupt::{Interrupted, Interrupts};
use lineup_study::printed::PrintedMetrics;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::run::Run;
use lineup_study::timing::{ProcessRunner, RunnerOptions};
use lineup_study::{counters, tool};

/// Runs the command.
pub(crate) fn run(measure: Measure) -> Result<Outcome> {
    if let Some(expression) = &measure.derive {
        return derive::run(expression, &measure);
    }
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let run = Run {
        command: measure.command.clone(),
        input: given_input(measure.stdin.as_deref(), &interrupts)?,
        ..Run::default()
    };
    let mut runner = runner(&measure, run.clone(), &interrupts)?;
    let Runs { readings: runs, endings, waited_ns, interrupted } = collect(&measure, &mut runner, &stages)?;
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
        endings,
        waited_ns,
        interrupted,
    };
    let rendered = match measure.format {
        Format { json: true, .. } => json::render(&report)?,
        Format { csv: true, .. } => csv::render(&report.measurement),
        Format { markdown: true, .. } => markdown::render(&report),
        _ => view::render(&report),
    };
    write_result(measure.output.as_deref(), &rendered)?;
    Ok(match (interrupted, report.failed_in_words().filter(|_| report.ends_unlike())) {
        (Some(interrupted), _) => Outcome::CutShort(interrupted.into()),
        (None, Some(failed)) => Outcome::CutShort(anyhow!(failed)),
        (None, None) => Outcome::Done,
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

/// The complete runs.
#[derive(Default)]
struct Runs {
    readings: Vec<Vec<Reading>>,
    endings: Vec<Ending>,
    /// The time that they waited for other programs.
    waited_ns: u64,
    /// The signal that cut them short.
    interrupted: Option<Interrupted>,
}

/// Runs the program.
fn collect(measure: &Measure, runner: &mut ProcessRunner, stages: &Stages) -> Result<Runs> {
    let mut runs = Runs::default();
    let all = u64::from(measure.warm_up) + u64::from(measure.repeat);
    stages.stage("running the program");
    for number in 0..all {
        stages.advance(number, all);
        let timed = number.checked_sub(u64::from(measure.warm_up));
        let slot = Slot { variant: Variant::BEFORE, number, block: timed };
        match one_run(measure, runner, &slot) {
            Ok(result) if timed.is_some() => {
                runs.waited_ns += result.disturbance.map_or(0, |own| own.waited_ns);
                runs.endings.push(result.ending);
                runs.readings.push(readings(&result));
            }
            Ok(_) => {}
            Err(error) => match error.downcast_ref::<Error>().and_then(Error::interrupted) {
                Some(interrupted) => return Ok(Runs { interrupted: Some(interrupted), ..runs }),
                None => return Err(error),
            },
        }
    }
    Ok(runs)
}

fn one_run(measure: &Measure, runner: &mut ProcessRunner, slot: &Slot) -> Result<RunResult> {
    shell(measure.pre.as_deref(), "--pre")?;
    let result = runner.run_slot(slot)?;
    shell(measure.post.as_deref(), "--post")?;
    Ok(result)
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
