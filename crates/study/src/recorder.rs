//! Runs a program under the emulator with the recorder in it.

mod emulator;
mod regions;
mod request;

pub use emulator::{is_native, native_or_emulated, on_path, plugin_argument};
pub use request::{Output, RecordOutcome, RecordRequest, RegionRequest};

use crate::companions;
use crate::interrupt::Interrupts;
use anyhow::{Context, Result, bail};
use emulator::{Emulator, Ran, Run};
use lineup_debuginfo::DebugInfo;
use lineup_recording::plan::{Discovery, Plan, Task};
use lineup_recording::{Encoder, Ending, Event, Header, Mode, ProgramExit, Reader, Summary, Writer};
use std::fs::{self, File};
use std::io::{BufReader, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

/// Accesses kept per call at most: a call with more is cut, which is counted.
const MAX_ACCESSES_PER_CALL: u64 = 4 << 20;

/// Records a program: twice through when the request says so, so that only blocks that run inside regions are
/// instrumented the second time.
pub fn record(request: &RecordRequest, interrupts: &Interrupts) -> Result<RecordOutcome> {
    check(request)?;
    prepare_output(&request.output)?;
    let debug = companions::load(&request.program)?;
    if request.mode != Mode::WholeProgram {
        debug.require_debug_info().with_context(|| request.program.display().to_string())?;
    }
    let emulator = Emulator::find(debug.abi().machine)?;
    let scratch =
        tempfile::Builder::new().prefix("lineup-").tempdir().context("cannot make a scratch folder")?;
    let (header, mut notes) = header(request, &debug, &emulator)?;
    let mut plan = Plan {
        task: Task::Discover,
        header,
        output: text(&scratch.path().join("discovery"))?,
        program: text(&absolute(&request.program)?)?,
        writes_each_call: false,
        discovery: Discovery::default(),
        system: None,
    };
    let plan_file = scratch.path().join("plan");
    if request.mode == Mode::TwoPass {
        let ran = run(request, &emulator, &plan, &plan_file, interrupts)?;
        discover(&mut plan, &ran, &debug, &mut notes)?;
    }
    plan.task = Task::Record;
    plan.output = text(&absolute(&request.output)?)?;
    let begun = Instant::now();
    let ran = run(request, &emulator, &plan, &plan_file, interrupts)?;
    let ending = Ending {
        exit: ran.exit,
        elapsed_ns: u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
        total_instructions: (plan.header.mode == Mode::TwoPass).then_some(plan.discovery.instructions),
    };
    let summary = seal(&request.output, &ending)?;
    Ok(RecordOutcome { ending, summary, notes })
}

/// Finds what cannot work before any long run.
fn check(request: &RecordRequest) -> Result<()> {
    let program = &request.program;
    let metadata =
        fs::metadata(program).with_context(|| format!("cannot read the program {}", program.display()))?;
    if !metadata.is_file() {
        bail!("{} is not a program", program.display());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        bail!("{} is not executable; chmod +x it", program.display());
    }
    Ok(())
}

/// Finds out now whether the recording can be written, and leaves an older one as it is until there is a new one.
pub fn prepare_output(output: &Path) -> Result<()> {
    let is_new = !output.exists();
    File::options()
        .append(true)
        .create(true)
        .open(output)
        .with_context(|| format!("cannot write the recording {}", output.display()))?;
    if is_new {
        fs::remove_file(output).with_context(|| format!("cannot replace {}", output.display()))?;
    }
    Ok(())
}

fn header(request: &RecordRequest, debug: &DebugInfo, emulator: &Emulator) -> Result<(Header, Vec<String>)> {
    let program = request.program.to_string_lossy().into_owned();
    let arguments = request.arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    let mut header = Header::new(debug.abi(), std::iter::once(program).chain(arguments).collect());
    let mut notes = Vec::new();
    header.emulator = emulator.version.clone();
    header.mode = request.mode;
    header.regions = regions::find(&request.regions, debug, &absolute(&request.program)?, &mut notes)?;
    header.warmup_calls = request.warmup_calls;
    header.max_calls = request.max_calls;
    header.max_accesses = MAX_ACCESSES_PER_CALL;
    header.caches = request.caches.iter().map(ToString::to_string).collect();
    Ok((header, notes))
}

fn run(
    request: &RecordRequest,
    emulator: &Emulator,
    plan: &Plan,
    plan_file: &Path,
    interrupts: &Interrupts,
) -> Result<Ran> {
    fs::write(plan_file, plan.to_text()).context("writing the recorder's plan")?;
    let is_recording = plan.task == Task::Record;
    let program = absolute(&request.program)?;
    let run = Run {
        plan: plan_file,
        program: &program,
        arguments: &request.arguments,
        directory: request.directory.as_deref(),
        environment: &request.environment,
        shown: if is_recording { request.shown } else { Output::Hidden },
        reads_input: is_recording,
    };
    emulator.run(&run, interrupts)
}

/// Takes over what the first run found. A program that was killed took that with it: it is recorded in one pass
/// instead, each call written as it ends.
fn discover(plan: &mut Plan, ran: &Ran, debug: &DebugInfo, notes: &mut Vec<String>) -> Result<()> {
    match (fs::read_to_string(&plan.output), ran.exit) {
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

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().with_context(|| format!("the path {} is not UTF-8", path.display()))?;
    Ok(text.to_owned())
}
