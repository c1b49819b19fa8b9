//! Runs a program under the emulator with the recorder in it.

mod emulator;
mod regions;
mod request;
mod sanitizer;

pub use emulator::{PluginArgument, executable, native_or_emulated, on_path, plugin_argument};
pub use request::{RecordOutcome, RecordRequest};

use crate::alias::Alias;
use crate::companions;
use crate::folder::TempFolder;
use crate::interrupt::Interrupts;
use crate::process::{Finished, Streams, Waiting};
use crate::recording_file;
use anyhow::{Context, Result, bail};
use emulator::Emulator;
use lineup_debuginfo::DebugInfo;
use lineup_prove::run;
use lineup_recording::plan::{Discovery, Plan, Task};
use lineup_recording::{Encoder, Ending, Event, Header, Mode, ProgramExit, Reader, Summary, Writer};
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::{BufReader, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

/// Accesses kept per call at most: a call with more is cut, which is counted.
const MAX_ACCESSES_PER_CALL: u64 = 4 << 20;

/// Records a program: twice through when the request says so, so that only blocks that run inside regions are
/// instrumented the second time.
pub fn record(request: &RecordRequest, debug: &DebugInfo, interrupts: &Interrupts) -> Result<RecordOutcome> {
    recording_file::check(&request.output, Some(request.program()))?;
    if request.mode != Mode::WholeProgram {
        debug.require_debug_info().with_context(|| request.program().display().to_string())?;
    }
    let emulator = Emulator::find(debug.abi().machine)?;
    let scratch = Scratch::new(interrupts)?;
    let (header, mut notes) = header(request, debug, &emulator)?;
    let mut plan = Plan {
        task: Task::Discover,
        header,
        output: scratch.discovery(),
        program: text(&absolute(request.program())?)?,
        writes_each_call: false,
        discovery: Discovery::default(),
        system: None,
    };
    if request.mode == Mode::TwoPass {
        let ran = run(request, &emulator, &plan, &scratch, interrupts)?;
        discover(&mut plan, &ran, debug, &mut notes)?;
    }
    plan.task = Task::Record;
    let output = Alias::of(&recording_file::make(&request.output)?)?;
    plan.output = output.text().to_owned();
    let begun = Instant::now();
    let finished = run(request, &emulator, &plan, &scratch, interrupts)?;
    let ending = Ending {
        exit: exit_of(&finished),
        elapsed_ns: u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
        total_instructions: (plan.header.mode == Mode::TwoPass).then_some(plan.discovery.instructions),
    };
    let summary = seal(&request.output, &ending)?;
    Ok(RecordOutcome { ending, summary, finished, notes })
}

/// The debug info of a program that is to be recorded. What cannot work is found out now, before any long run.
///
/// # Errors
/// When there is no such program, or it cannot run under the emulator.
pub fn load(program: &Path) -> Result<DebugInfo> {
    check(program)?;
    companions::load(program)
}

fn check(program: &Path) -> Result<()> {
    let metadata =
        fs::metadata(program).with_context(|| format!("cannot read the program {}", program.display()))?;
    if !metadata.is_file() {
        bail!("{} is not a program", program.display());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        bail!("{} is not executable; chmod +x it", program.display());
    }
    sanitizer::refuse(program)
}

fn header(request: &RecordRequest, debug: &DebugInfo, emulator: &Emulator) -> Result<(Header, Vec<String>)> {
    // Only shown: what is run is the run's own.
    let command = request.run.command.iter().map(|word| word.to_string_lossy().into_owned());
    let mut header = Header::new(debug.abi(), command.collect());
    let mut notes = Vec::new();
    header.emulator = emulator.version.clone();
    header.mode = request.mode;
    header.regions = regions::find(&request.regions, debug, &real(request.program())?, &mut notes)?;
    header.warmup_calls = request.warmup_calls;
    header.max_calls = request.max_calls;
    header.max_accesses = MAX_ACCESSES_PER_CALL;
    header.caches = request.caches.iter().map(ToString::to_string).collect();
    Ok((header, notes))
}

/// Where the recorder's plan and its discovery are kept.
struct Scratch {
    folder: TempFolder,
    /// The folder's name as the emulator takes it.
    name: Alias,
}

impl Scratch {
    fn new(interrupts: &Interrupts) -> Result<Scratch> {
        let folder = interrupts.temporary_folder().context("cannot make a temporary folder")?;
        let name = Alias::of(folder.path())?;
        Ok(Scratch { folder, name })
    }

    fn discovery(&self) -> String {
        format!("{}/discovery", self.name.text())
    }

    /// Writes the plan, and gives its name.
    fn put(&self, plan: &Plan) -> Result<String> {
        fs::write(self.folder.path().join("plan"), plan.to_text()).context("writing the recorder's plan")?;
        Ok(format!("{}/plan", self.name.text()))
    }
}

fn run(
    request: &RecordRequest,
    emulator: &Emulator,
    plan: &Plan,
    scratch: &Scratch,
    interrupts: &Interrupts,
) -> Result<Finished> {
    let mut run = request.run.clone();
    if let Some(program) = run.command.first_mut() {
        *program = absolute(Path::new(program))?.into();
    }
    let recorded = emulator.with_recorder(&run, &scratch.put(plan)?)?;
    let streams = if plan.task == Task::Record { request.streams } else { Streams::Captured };
    Waiting::start(&recorded.run, None, streams, interrupts)?.run()
}

/// How a run ended, as recordings say it.
fn exit_of(finished: &Finished) -> ProgramExit {
    match finished.ending {
        run::Ending::Exited(status) => ProgramExit::Exited(status),
        run::Ending::Killed(signal) => ProgramExit::Signaled(signal),
        run::Ending::Stopped => ProgramExit::Signaled(Signal::TERM.as_raw()),
    }
}

/// Takes over what the first run found. A program that was killed took that with it: it is recorded in one pass
/// instead, each call written as it ends.
fn discover(plan: &mut Plan, ran: &Finished, debug: &DebugInfo, notes: &mut Vec<String>) -> Result<()> {
    match (fs::read_to_string(&plan.output), exit_of(ran)) {
        (Ok(text), _) => {
            plan.discovery = Discovery::parse(&text)?;
            notes.extend(plan.discovery.notes.iter().cloned());
            regions::check_called(&plan.header, &plan.discovery, debug)
        }
        (Err(_), exit @ ProgramExit::Signaled(_)) => {
            plan.header.mode = Mode::OnePass;
            plan.writes_each_call = true;
            notes.push(format!(
                "the program {} in the first run, so it was recorded in one pass",
                in_words(exit)
            ));
            Ok(())
        }
        (Err(_), ProgramExit::Exited(status)) => bail!(
            "the emulator could not run {} (status {status}); try `{} {0}`, which shows its message",
            plan.program,
            plan.header.emulator.split(' ').next().unwrap_or_default()
        ),
    }
}

/// Reads the recording through and adds how the program ended.
fn seal(path: &Path, ending: &Ending) -> Result<Option<Summary>> {
    let cannot = || format!("cannot read back the recording {}", path.display());
    let file = File::options().read(true).write(true).open(path).with_context(cannot)?;
    let mut reader = Reader::new(BufReader::new(&file)).map_err(|error| {
        let exit = in_words(ending.exit);
        anyhow::Error::new(error).context(format!("nothing was recorded; the program {exit}"))
    })?;
    let mut summary = None;
    for event in reader.by_ref() {
        if let Event::Summary(found) = event {
            summary = Some(found);
        }
    }
    let good_bytes = reader.good_bytes();
    let mut end = &file;
    end.set_len(good_bytes).with_context(cannot)?;
    end.seek(SeekFrom::Start(good_bytes)).with_context(cannot)?;
    let mut encoder = Encoder::new();
    encoder.ending(ending);
    Writer::resume(end).append(&encoder.seal()?)?;
    Ok(summary)
}

/// How a program ended, as in "the program …".
pub fn in_words(exit: ProgramExit) -> String {
    match exit {
        ProgramExit::Exited(status) => format!("exited with status {status}"),
        ProgramExit::Signaled(signal) => format!("was ended by signal {signal}"),
    }
}

fn absolute(path: &Path) -> Result<std::path::PathBuf> {
    std::path::absolute(path).with_context(|| path.display().to_string())
}

/// A program's path as the kernel names it where it is mapped.
fn real(path: &Path) -> Result<std::path::PathBuf> {
    path.canonicalize().with_context(|| format!("cannot read the program {}", path.display()))
}

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().with_context(|| format!("the path {} is not UTF-8", path.display()))?;
    Ok(text.to_owned())
}
