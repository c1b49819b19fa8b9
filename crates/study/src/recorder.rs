//! Runs a program under the emulator with the recorder in it, or with the native engine in the program.

mod audit;
mod emulator;
mod native;
mod pending;
mod regions;
mod request;
mod rights;
mod runs;
mod sanitizer;
mod sealing;
mod subject;

pub use audit::{AuditRequest, audit};
pub use emulator::{PluginArgument, executable, native_or_emulated, on_path, plugin_argument};
pub use request::{Engine, RecordOutcome, RecordRequest};
pub use sealing::thin_to_spread;
pub use subject::Subject;

use crate::alias::Alias;
use crate::error::{Doing, Error, Result};
use crate::interrupt::Interrupts;
use crate::recording_file;
use emulator::Emulator;
use lineup_recording::plan::{Discovery, Plan, Task};
use lineup_recording::{Ending, Header, Mode, ProgramExit, Selection};
use runs::Runs;
use std::path::PathBuf;

/// Accesses kept per call at most: a call with more is cut, which is counted.
const MAX_ACCESSES_PER_CALL: u64 = 4 << 20;

/// Records a program: twice through when the request says so, so that only blocks that run inside regions are
/// instrumented the second time, and again while blocks were met that the runs before had not seen.
///
/// Programs that it starts are recorded with it under the emulator, unless whole programs are counted.
///
/// # Errors
/// When it cannot be recorded, and when no region was called.
pub fn record(request: &RecordRequest, subject: &Subject, interrupts: &Interrupts) -> Result<RecordOutcome> {
    recording_file::check(&request.output, subject.files())?;
    let recorder = Recorder::find(request, subject)?;
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
    let plan = Plan {
        task: Task::Discover,
        header,
        output: String::new(),
        program: subject.started_text()?,
        follow: recorder.emulator().and_then(Emulator::follow).filter(|_| mode != Mode::WholeProgram),
        journal: String::new(),
        unwatched_output: String::new(),
        follows_all: false,
        discovery: Discovery::default(),
        system: None,
    };
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
            let output = recording_file::make(&request.output)?;
            let plan = Plan { task: Task::Record, ..plan };
            let task = native::Task { request, subject, engine: &engine, plan: &plan, output: &output };
            (output.clone(), native::record(&task, interrupts)?, plan, 1)
        }
    };
    let ending = Ending {
        exit: recorded.exit,
        elapsed_ns: u64::try_from(recorded.elapsed.as_nanos()).unwrap_or(u64::MAX),
        total_instructions: (plan.header.mode == Mode::TwoPass).then_some(plan.discovery.instructions),
    };
    let failure = recorded.journal.failure.map(|error| std::io::Error::from_raw_os_error(error).to_string());
    let summary = match (sealing::seal(&output, &recorded.journal, &plan, &ending), &failure) {
        // The disk is still full; what stands in the file is whole all the same.
        (Err(_), Some(_)) => sealing::read(&output, &recorded.journal, &plan)?,
        (sealed, _) => {
            let sealed = sealed.doing_with(|| format!("the program {}", in_words(ending.exit)));
            if sealed.is_err() {
                // Ended before it could write anything: that it was told to end is the reason.
                interrupts.check()?;
            }
            sealed?
        }
    };
    let calls: u64 = summary.regions.iter().map(|region| region.recorded).sum();
    let kept =
        || format!("{calls} calls were recorded until then and are kept in {}", request.output.display());
    interrupts.check().doing_with(kept)?;
    let finished = recorded.finished.ok_or_else(|| Error::Start(kept()))?;
    let recorder = plan.header.emulator;
    Ok(RecordOutcome { ending, summary, recorder, runs, failure, finished, notes })
}

/// What records, with its files.
enum Recorder {
    Emulator(Emulator),
    Native(PathBuf),
}

impl Recorder {
    fn find(request: &RecordRequest, subject: &Subject) -> Result<Recorder> {
        let abi = subject.debug().abi();
        Ok(match request.engine {
            Engine::Emulator => Recorder::Emulator(Emulator::find(abi.machine)?),
            Engine::Native => Recorder::Native(native::find(abi, request.mode)?),
        })
    }

    fn emulator(&self) -> Option<&Emulator> {
        match self {
            Recorder::Emulator(emulator) => Some(emulator),
            Recorder::Native(_) => None,
        }
    }
}

fn header(request: &RecordRequest, subject: &Subject) -> Result<(Header, Vec<String>)> {
    // Only shown: what is run is the run's own.
    let command = request.run.command.iter().map(|word| word.to_string_lossy().into_owned());
    let mut header = Header::new(subject.debug().abi(), command.collect());
    let mut notes = Vec::new();
    header.mode = request.mode;
    header.regions = regions::find(&request.regions, subject, &mut notes)?;
    header.warmup_calls = request.warmup_calls;
    (header.max_calls, header.selection) = match request.stop_after {
        Some(calls) => (Some(first_calls(calls, request)), Selection::First),
        None => (request.max_calls, request.selection),
    };
    header.max_accesses = MAX_ACCESSES_PER_CALL;
    header.caches = request.caches.iter().map(ToString::to_string).collect();
    Ok((header, notes))
}

/// How many of the first calls are kept when the program is ended after `stop_after` calls. The program makes some more
/// until it is gone, another number each time: they are none of those that were asked for.
fn first_calls(stop_after: u64, request: &RecordRequest) -> u64 {
    let measured = stop_after.saturating_sub(request.warmup_calls).max(1);
    request.max_calls.map_or(measured, |most| most.min(measured))
}

/// How a program ended, as in "the program …".
pub fn in_words(exit: ProgramExit) -> String {
    match exit {
        ProgramExit::Exited(status) => format!("exited with status {status}"),
        ProgramExit::Signaled(signal) => format!("was ended by signal {signal}"),
    }
}
