//! Runs a program under the emulator with the recorder in it.

mod emulator;
mod pending;
mod regions;
mod request;
mod sealing;

pub use emulator::{native_or_emulated, on_path, plugin_argument};
pub use request::{Output, RecordOutcome, RecordRequest, RegionRequest};

use crate::companions;
use crate::interrupt::Interrupts;
use anyhow::{Context, Result, bail};
use emulator::{Emulator, Run};
use lineup_debuginfo::DebugInfo;
use lineup_model::access::ProcessId;
use lineup_recording::journal::Journal;
use lineup_recording::plan::{Discovery, Plan, Task};
use lineup_recording::{Ending, Header, Mode, ProgramExit};
use pending::JournalFile;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Accesses kept per call at most: a call with more is cut, which is counted.
const MAX_ACCESSES_PER_CALL: u64 = 4 << 20;

/// Recordings made at most until no block is met that is not watched; then one is made in one pass.
const MOST_RECORDINGS: u32 = 3;

/// Records a program: twice through when the request says so, so that only blocks that run inside regions are
/// instrumented the second time, and again while blocks were met that the runs before had not seen.
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
    let plan = Plan {
        task: Task::Discover,
        header,
        output: text(&scratch.path().join("discovery"))?,
        program: text(&absolute(&request.program)?)?,
        journal: String::new(),
        unwatched_output: String::new(),
        follows_all: false,
        discovery: Discovery::default(),
        system: None,
    };
    let mut runs =
        Runs { request, emulator, interrupts, scratch: scratch.path(), plan, made: 0, shown: false };
    if request.mode == Mode::TwoPass {
        runs.discover(&debug, &mut notes)?;
    }
    let recorded = runs.record(&mut notes)?;
    let ending = Ending {
        exit: recorded.exit,
        elapsed_ns: u64::try_from(recorded.elapsed.as_nanos()).unwrap_or(u64::MAX),
        total_instructions: (runs.plan.header.mode == Mode::TwoPass)
            .then_some(runs.plan.discovery.instructions),
    };
    let sealed = sealing::seal(&request.output, &recorded.journal, &runs.plan, &ending);
    let failure = recorded.journal.failure.map(|error| std::io::Error::from_raw_os_error(error).to_string());
    let summary = match (sealed, &failure) {
        (Ok(summary), _) => summary,
        // The disk is still full; what stands in the file is whole all the same.
        (Err(_), Some(_)) => sealing::read(&request.output, &recorded.journal, &runs.plan)?,
        (Err(error), None) => {
            return Err(error.context(format!("the program {}", in_words(ending.exit))));
        }
    };
    let calls: u64 = summary.regions.iter().map(|region| region.recorded).sum();
    interrupts.check().with_context(|| {
        let file = request.output.display();
        format!("{calls} calls were recorded until then and are kept in {file}")
    })?;
    Ok(RecordOutcome { ending, summary, runs: runs.made, failure, notes })
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
    header.selection = request.selection;
    header.max_accesses = MAX_ACCESSES_PER_CALL;
    header.caches = request.caches.iter().map(ToString::to_string).collect();
    Ok((header, notes))
}

/// The runs that a recording takes.
struct Runs<'a> {
    request: &'a RecordRequest,
    emulator: Emulator,
    interrupts: &'a Interrupts,
    scratch: &'a Path,
    plan: Plan,
    /// Runs made.
    made: u32,
    /// A run's output was shown, and our input given to it.
    shown: bool,
}

/// A recording run that ended.
struct Recorded {
    exit: ProgramExit,
    elapsed: Duration,
    journal: Journal,
}

impl Runs<'_> {
    fn run(&mut self, notes: &mut Vec<String>) -> Result<Recorded> {
        let journal = JournalFile::new()?;
        self.plan.journal = journal.path();
        let plan = self.scratch.join("plan");
        fs::write(&plan, self.plan.to_text()).context("writing the recorder's plan")?;
        // Of several recordings the first is shown: the program does the same in all.
        let is_shown = self.plan.task == Task::Record && !self.shown;
        let program = absolute(&self.request.program)?;
        let run = Run {
            plan: &plan,
            program: &program,
            arguments: &self.request.arguments,
            directory: self.request.directory.as_deref(),
            environment: &self.request.environment,
            shown: if is_shown { self.request.shown } else { Output::Hidden },
            reads_input: is_shown,
        };
        self.shown |= is_shown;
        self.made += 1;
        let begun = Instant::now();
        let ran = self.emulator.run(&run, self.interrupts)?;
        let left = journal.wait_for_children(ran.group)?;
        if left > 0 {
            notes.push(format!(
                "{left} forked processes still ran long after the program had ended, and were ended"
            ));
        }
        Ok(Recorded { exit: ran.exit, elapsed: begun.elapsed(), journal: journal.read().unwrap_or_default() })
    }

    /// Runs the program for what it executes inside regions. A program that was killed took that with it: it is
    /// recorded in one pass instead.
    fn discover(&mut self, debug: &DebugInfo, notes: &mut Vec<String>) -> Result<()> {
        let ran = self.run(notes)?;
        self.interrupts.check()?;
        match (discovered(&self.plan.output, &ran.journal)?, ran.exit) {
            (Some(discovery), _) => {
                self.plan.discovery = discovery;
                notes.extend(self.plan.discovery.notes.iter().cloned());
                regions::check_called(&self.plan.header, &self.plan.discovery, debug)
            }
            (None, exit @ ProgramExit::Signaled(_)) => {
                self.plan.header.mode = Mode::OnePass;
                let how = in_words(exit);
                notes.push(format!("the program {how} in the first run, so it was recorded in one pass"));
                Ok(())
            }
            (None, ProgramExit::Exited(status)) => bail!(
                "the emulator could not run {} (status {status}); try `{} {0}`, which shows its message",
                self.plan.program,
                self.plan.header.emulator.split(' ').next().unwrap_or_default()
            ),
        }
    }

    /// Records until every block that is met inside a region is watched.
    fn record(&mut self, notes: &mut Vec<String>) -> Result<Recorded> {
        self.plan.task = Task::Record;
        self.plan.output = text(&absolute(&self.request.output)?)?;
        // Blocks that one thread meets, or one process, another may not: no run is like the other.
        self.plan.follows_all = self.plan.discovery.threads > 1;
        let mut unmet = 0;
        for made in 1.. {
            self.plan.unwatched_output = text(&self.scratch.join(format!("unwatched-{made}")))?;
            let recorded = self.run(notes)?;
            let found = match self.plan.header.mode {
                Mode::TwoPass => discovered(&self.plan.unwatched_output, &recorded.journal)?,
                Mode::OnePass | Mode::WholeProgram | Mode::System => None,
            };
            let found = found.filter(|found| found.gaps > 0);
            let is_over = self.interrupts.check().is_err() || recorded.journal.failure.is_some();
            let Some(found) = found.filter(|_| !is_over) else {
                notes.extend((made > 1).then(|| self.why_again(unmet)));
                return Ok(recorded);
            };
            unmet += self.plan.discovery.add_blocks(&found);
            // A run that did not follow control through every block knows that it missed some, but not which.
            if !self.plan.follows_all || made == MOST_RECORDINGS {
                self.plan.header.mode = Mode::OnePass;
            }
        }
        unreachable!("the loop ends by returning")
    }

    fn why_again(&self, unmet: u64) -> String {
        let times = match self.made {
            3 => "three times".to_owned(),
            made => format!("{made} times"),
        };
        let why = match unmet {
            0 => "the program went ways that it had not gone in the first run".to_owned(),
            unmet => format!("{unmet} blocks of code were not met by the first run"),
        };
        let last = if self.plan.header.mode == Mode::OnePass { ", the last in one pass" } else { "" };
        format!("the program ran {times}{last}: {why}")
    }
}

/// What the processes of a run wrote to this path; `None` when the first did not get to.
fn discovered(path: &str, journal: &Journal) -> Result<Option<Discovery>> {
    let Ok(text) = fs::read_to_string(path) else { return Ok(None) };
    let mut all = Discovery::parse(&text)?;
    for process in (1..journal.processes).filter_map(|number| u32::try_from(number).ok()) {
        // One that was killed wrote nothing.
        if let Ok(text) = fs::read_to_string(Discovery::path_of(path, ProcessId(process))) {
            all.add_process(&Discovery::parse(&text)?);
        }
    }
    Ok(Some(all))
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
