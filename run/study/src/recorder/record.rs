//! A recording, made by the engine that fits the request.

use super::emulator::Emulator;
use super::first_plan::{header, plan};
use super::native;
use super::request::{Engine, RecordOutcome, RecordRequest};
use super::runs::{Recorded, Runs, in_words};
use super::subject::Subject;
use super::{recording_file, regions, rights, sealing};
use crate::error::{Doing, Error, Result};
use crate::process::alias::Alias;
use crate::process::child::Streams;
use crate::process::interrupt::Interrupts;
use lineup_recording::plan::{Plan, Task};
use lineup_recording::{Ending, Mode};
use std::fs;
use std::path::{Path, PathBuf};

/// Records a program. Under the emulator it runs twice when the request says so, so that the second run instruments
/// only blocks that run inside regions. It runs again while blocks appear that the runs before had not seen. Programs
/// that it starts are recorded too, unless whole programs are counted.
///
/// The native engine runs it once. With [`Engine::Fitting`], the emulator records a program that the native engine
/// cannot record, or not completely, and a note says why.
///
/// # Errors
/// When it cannot be recorded, and when no region was called.
pub fn record(request: &RecordRequest, subject: &Subject, interrupts: &Interrupts) -> Result<RecordOutcome> {
    recording_file::check(&request.output, subject.files())?;
    // A signal that ends the program must not lose its records: they are sealed first.
    let _keeping = interrupts.keeping();
    let abi = subject.debug().abi();
    let emulated = |request: &RecordRequest| {
        let emulator = Emulator::find(abi.machine)?;
        with(Recorder::Emulator(emulator), request, subject, interrupts)
    };
    let native = || with(Recorder::Native(native::find(request, subject)?), request, subject, interrupts);
    match request.engine {
        Engine::Emulator => emulated(request).map(|made| made.outcome),
        Engine::Native => native().map(|made| made.outcome),
        Engine::Fitting if !native::is_for(abi, request.mode) => emulated(request).map(|made| made.outcome),
        Engine::Fitting => {
            let (why, has_run) = match native() {
                Ok(RecordAttempt { outcome, lacks: None }) => return Ok(outcome),
                Ok(made) => return completed(made, request, emulated, interrupts),
                Err(Error::Unfit { why, has_run }) => (why, has_run),
                Err(other) => return Err(other),
            };
            if Emulator::find(abi.machine).is_err()
                && let Some(unreachable) = regions::unreachable(&request.regions, subject)
            {
                return Err(unreachable);
            }
            let streams = if has_run { Streams::Captured } else { request.streams };
            let mut made = match emulated(&RecordRequest { streams, ..request.clone() }) {
                // It says of the region what the native engine said, and more.
                Err(error @ Error::Region(_)) => return Err(error),
                made => made.doing_with(|| why.clone())?,
            };
            made.outcome.notes.push(format!("recorded under the emulator: {why}"));
            Ok(made.outcome)
        }
    }
}

/// The emulator's recording of a program of which the native one lacks calls. Where the emulator fails or is none, the
/// native one stays, and a note says why.
fn completed(
    native: RecordAttempt,
    request: &RecordRequest,
    emulated: impl Fn(&RecordRequest) -> Result<RecordAttempt>,
    interrupts: &Interrupts,
) -> Result<RecordOutcome> {
    let why = native.lacks.unwrap_or_default();
    let mut beside = request.output.clone().into_os_string();
    beside.push(".emulated");
    let beside = PathBuf::from(beside);
    let output = beside.clone();
    match emulated(&RecordRequest { streams: Streams::Captured, output, ..request.clone() }) {
        Ok(mut made) => {
            fs::rename(&beside, &request.output)
                .doing_with(|| format!("cannot write {}", request.output.display()))?;
            made.outcome.notes.push(format!("recorded under the emulator: {why}"));
            Ok(made.outcome)
        }
        Err(error) => {
            // It may not have been made.
            let _ = fs::remove_file(&beside);
            interrupts.check()?;
            let mut outcome = native.outcome;
            outcome.notes.push(format!("{why}, and neither does the emulator: {error}"));
            Ok(outcome)
        }
    }
}

/// The result of one way to record.
struct RecordAttempt {
    outcome: RecordOutcome,
    /// The records that only the other way would have.
    lacks: Option<String>,
}

fn with(
    recorder: Recorder,
    request: &RecordRequest,
    subject: &Subject,
    interrupts: &Interrupts,
) -> Result<RecordAttempt> {
    let (mut header, mut notes) = header(request, subject)?;
    match &recorder {
        Recorder::Emulator(emulator) => {
            header.emulator = emulator.version.clone();
            notes.extend(rights::note(subject.program()));
        }
        Recorder::Native(_) => native::complete(&mut header),
    }
    if request.stop_after.is_some() && header.mode == Mode::TwoPass {
        header.mode = Mode::OnePass;
    }
    let mode = header.mode;
    let follow = recorder.emulator().and_then(Emulator::follow).filter(|_| mode != Mode::WholeProgram);
    let plan = Plan {
        follow,
        window_bytes: request.window_bytes,
        keeps_windows: request.keeps_windows,
        ..plan(header, subject)?
    };
    let (mut lacks, mut bursts) = (None, None);
    let (output, recorded, plan, runs) = match recorder {
        Recorder::Emulator(emulator) => {
            let mut runs = Runs::new(request, subject, emulator, plan, interrupts)?;
            if mode == Mode::TwoPass {
                runs.discover(&mut notes)?;
            }
            let output = recording_file::make(&request.output)?;
            let recorded = runs.record(&Alias::of(&output)?, &mut notes)?;
            (output, recorded, runs.plan, runs.made)
        }
        Recorder::Native(engine) => {
            let output = std::path::absolute(&request.output)
                .doing_with(|| format!("cannot write {}", request.output.display()))?;
            let plan = Plan { task: Task::Record, ..plan };
            let task = native::Task { request, subject, engine: &engine, plan: &plan, output: &output };
            let made = native::record(&task, interrupts)?;
            (lacks, bursts) = (made.lacks, made.bursts);
            (output.clone(), made.recorded, plan, 1)
        }
    };
    let outcome = outcome((&output, plan, recorded), request, interrupts)?;
    notes.extend(outcome.notes);
    Ok(RecordAttempt { outcome: RecordOutcome { runs, notes, bursts, ..outcome }, lacks })
}

/// Ends the recording's file, and sums up.
fn outcome(
    (output, plan, recorded): (&Path, Plan, Recorded),
    request: &RecordRequest,
    interrupts: &Interrupts,
) -> Result<RecordOutcome> {
    let ending = Ending {
        exit: recorded.exit,
        elapsed_ns: u64::try_from(recorded.elapsed.as_nanos()).unwrap_or(u64::MAX),
        total_instructions: (plan.header.mode == Mode::TwoPass).then_some(plan.discovery.instructions),
    };
    let failure = recorded.failure;
    let summary = match (sealing::seal(output, &recorded.journal, &plan, &ending), &failure) {
        // The disk is still full; the content of the file is whole all the same.
        (Err(_), Some(_)) => sealing::read(output, &recorded.journal, &plan)?,
        (sealed, _) => {
            let sealed = sealed.doing_with(|| format!("the program {}", in_words(ending.exit)));
            if sealed.is_err() {
                // Ended before it could write anything: an interrupt is then the reason.
                interrupts.check()?;
            }
            sealed?
        }
    };
    let calls: u64 = summary.regions.iter().map(|region| region.recorded).sum();
    let kept = || {
        let (what, stays) = match plan.header.mode {
            Mode::WholeProgram => ("what ran until then was recorded".to_owned(), "is"),
            _ => (format!("{calls} calls were recorded until then"), "are"),
        };
        match request.output_stays {
            true => format!("{what} and {stays} kept in {}", request.output.display()),
            false => what,
        }
    };
    match plan.header.mode {
        // The caller says what it keeps.
        Mode::WholeProgram if !request.output_stays => interrupts.check()?,
        _ => interrupts.check().doing_with(kept)?,
    }
    let finished = recorded.finished.ok_or_else(|| Error::Start(kept()))?;
    let recorder = plan.header.emulator;
    let engine = if recorder == native::NAME { Engine::Native } else { Engine::Emulator };
    let (notes, bursts) = (Vec::new(), None);
    Ok(RecordOutcome { ending, summary, recorder, engine, runs: 1, failure, finished, notes, bursts })
}

/// The recorder, with its files.
enum Recorder {
    Emulator(Emulator),
    Native(PathBuf),
}

impl Recorder {
    fn emulator(&self) -> Option<&Emulator> {
        match self {
            Recorder::Emulator(emulator) => Some(emulator),
            Recorder::Native(_) => None,
        }
    }
}
