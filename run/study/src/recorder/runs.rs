//! The runs that a recording takes: one to find the blocks that are executed inside regions, one that records, and more
//! while blocks were met that the runs before had not seen.

use super::emulator::Emulator;
use super::journal_file::JournalFile;
use super::regions;
use super::request::RecordRequest;
use super::subject::Subject;
use crate::error::{Doing, Error, Result};
use crate::process::alias::Alias;
use crate::process::child::{Finished, Streams, Waiting};
use crate::process::folder::TempFolder;
use crate::process::interrupt::Interrupts;
use crate::process::run::Stopped;
use lineup_model::access::ProcessId;
use lineup_prove::run;
use lineup_recording::journal::Journal;
use lineup_recording::plan::{Discovery, Plan, Task};
use lineup_recording::{Mode, ProgramExit};
use rustix::process::Signal;
use std::fs;
use std::time::{Duration, Instant};

/// Recordings made at most until no block is met that is not watched; then one is made in one pass.
const MOST_RECORDINGS: u32 = 3;

/// The folder of the recorder's plan and its discoveries.
struct Scratch {
    folder: TempFolder,
    /// The folder's name as the emulator takes it.
    name: Alias,
}

/// The runs that a recording takes.
pub(super) struct Runs<'a> {
    request: &'a RecordRequest,
    subject: &'a Subject,
    emulator: Emulator,
    interrupts: &'a Interrupts,
    scratch: Scratch,
    /// The next run's plan.
    pub(super) plan: Plan,
    /// Runs made.
    pub(super) made: u32,
    /// True once a run has shown the program's output.
    shown: bool,
}

/// A run that ended.
pub(super) struct Recorded {
    pub(super) exit: ProgramExit,
    pub(super) elapsed: Duration,
    pub(super) journal: Journal,
    /// The reason why not everything could be written.
    pub(super) failure: Option<String>,
    /// The program's end, as the launcher saw it; `None` when it was interrupted.
    pub(super) finished: Option<Finished>,
}

impl<'a> Runs<'a> {
    /// No run yet.
    pub(super) fn new(
        request: &'a RecordRequest,
        subject: &'a Subject,
        emulator: Emulator,
        plan: Plan,
        interrupts: &'a Interrupts,
    ) -> Result<Self> {
        let folder = interrupts.temporary_folder().doing("cannot make a temporary folder")?;
        let name = Alias::of(folder.path())?;
        let scratch = Scratch { folder, name };
        Ok(Runs { request, subject, emulator, interrupts, scratch, plan, made: 0, shown: false })
    }

    fn run(&mut self, notes: &mut Vec<String>) -> Result<Recorded> {
        let journal = JournalFile::new()?;
        self.plan.journal = journal.path();
        fs::write(self.scratch.folder.path().join("plan"), self.plan.to_text())
            .doing("writing the recorder's plan")?;
        // Only the first of several recordings shows the output: the program does the same in all.
        let is_shown = self.plan.task == Task::Record
            && !std::mem::replace(&mut self.shown, self.plan.task == Task::Record);
        let streams = if is_shown { self.request.streams } else { Streams::Captured };
        let plan = format!("{}/plan", self.scratch.name.text());
        let run = self.emulator.with_recorder(&self.request.run, &self.subject.command, &plan);
        self.made += 1;
        let begun = Instant::now();
        let waiting = Waiting::start(&run, streams, self.interrupts)?;
        let finished = match self.request.stop_after {
            Some(calls) => waiting.run_until(&|| journal.has_seen(calls, self.plan.header.regions.len())),
            None => waiting.run(),
        };
        // The calls recorded before an interrupt are kept.
        let finished = match self.interrupts.check() {
            Ok(()) => Some(finished?),
            Err(_) => None,
        };
        let elapsed = begun.elapsed();
        let journal = journal.read().unwrap_or_default();
        let exit = finished.as_ref().map_or(ProgramExit::Signaled(Signal::TERM.as_raw()), exit_of);
        if let Some(left) = finished.as_ref().map(|finished| finished.left_running).filter(|left| *left > 0) {
            let processes = if left == 1 { "1 process" } else { &format!("{left} processes") };
            notes.push(format!(
                "{processes} still ran when the first had ended, and had to be ended: see --leftovers; calls until then \
                 are recorded"
            ));
        }
        let failure = journal.failure.map(|error| std::io::Error::from_raw_os_error(error).to_string());
        Ok(Recorded { exit, elapsed, journal, failure, finished })
    }

    /// Runs the program to discover the code that it executes inside regions. A program that was killed lost its
    /// discoveries: it is recorded in one pass instead.
    pub(super) fn discover(&mut self, notes: &mut Vec<String>) -> Result<()> {
        self.plan.output = format!("{}/discovery", self.scratch.name.text());
        let mut ran = self.run(notes)?;
        self.interrupts.check()?;
        let mut found = discovered(&self.plan.output, &ran.journal)?;
        if let Some(discovery) = &found
            && regions::find_elsewhere(&mut self.plan.header.regions, discovery, self.subject)?
        {
            ran = self.run(notes)?;
            self.interrupts.check()?;
            found = discovered(&self.plan.output, &ran.journal)?;
        }
        match (found, ran.exit) {
            (Some(discovery), _) if has_all_calls(&discovery, &ran.journal) => {
                self.plan.discovery = discovery;
                notes.extend(self.plan.discovery.notes.iter().cloned());
                regions::check_called(&self.plan.header, &self.plan.discovery, self.subject)
            }
            (Some(_), _) => {
                self.plan.header.mode = Mode::OnePass;
                notes.push(
                    "a process with calls was killed in the first run, so it was recorded in one pass".into(),
                );
                Ok(())
            }
            (None, exit @ (ProgramExit::Signaled(_) | ProgramExit::Left)) => {
                self.plan.header.mode = Mode::OnePass;
                let how = in_words(exit);
                notes.push(format!("the program {how} in the first run, so it was recorded in one pass"));
                Ok(())
            }
            (None, ProgramExit::Exited(status)) => Err(Error::Start(format!(
                "the emulator could not run {} (status {status}); try `{} {0}`, which shows its message",
                self.plan.program,
                self.plan.header.emulator.split(' ').next().unwrap_or_default()
            ))),
        }
    }

    /// Records until every block that is met inside a region is watched.
    pub(super) fn record(&mut self, output: &Alias, notes: &mut Vec<String>) -> Result<Recorded> {
        self.plan.task = Task::Record;
        self.plan.output = output.text().to_owned();
        // Blocks that one thread meets, or one process, another may not: no run is like the other.
        self.plan.follows_all = self.plan.discovery.threads > 1;
        let mut unmet = 0;
        for made in 1.. {
            self.plan.unwatched_output = format!("{}/unwatched-{made}", self.scratch.name.text());
            let recorded = self.run(notes)?;
            let found = match self.plan.header.mode {
                Mode::TwoPass => discovered(&self.plan.unwatched_output, &recorded.journal)?,
                Mode::OnePass | Mode::WholeProgram | Mode::System => None,
            };
            let found = found.filter(|found| found.gaps > 0);
            let is_over = self.interrupts.check().is_err() || recorded.failure.is_some();
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

/// A program's end, as in "the program …".
pub fn in_words(exit: ProgramExit) -> String {
    match exit {
        ProgramExit::Exited(status) => format!("exited with status {status}"),
        ProgramExit::Signaled(signal) => format!("was ended by {}", lineup_model::signal_name(signal)),
        ProgramExit::Left => "was left running".to_owned(),
    }
}

/// A run's end, in the recording's form.
pub(super) fn exit_of(finished: &Finished) -> ProgramExit {
    match finished.ending {
        _ if finished.stopped == Some(Stopped::Left) => ProgramExit::Left,
        run::Ending::Exited(status) => ProgramExit::Exited(status),
        run::Ending::Killed(signal) => ProgramExit::Signaled(signal),
        run::Ending::Stopped => ProgramExit::Signaled(Signal::TERM.as_raw()),
    }
}

/// True when the processes that called regions have written all their calls.
fn has_all_calls(discovery: &Discovery, journal: &Journal) -> bool {
    discovery.calls.iter().zip(&journal.seen).all(|(told, seen)| told >= seen)
}

/// The discoveries that the processes of a run wrote to this path; `None` when the first process wrote none.
fn discovered(path: &str, journal: &Journal) -> Result<Option<Discovery>> {
    let Ok(text) = fs::read_to_string(path) else { return Ok(None) };
    let mut all = Discovery::parse(&text)?;
    for process in (1..journal.processes).filter_map(|number| u32::try_from(number).ok()) {
        // A killed process wrote nothing.
        if let Ok(text) = fs::read_to_string(Discovery::path_of(path, ProcessId(process))) {
            all.add_process(&Discovery::parse(&text)?);
        }
    }
    Ok(Some(all))
}
