//! Recordings by the native engine: of regions' calls, and of whole programs.

use super::bursts;
use super::debug_info_loader::DebugInfoLoader;
use super::followers::Followers;
use super::logger::Logger;
use super::requirements::{is_static, refuse, refuse_late};
use super::shared_memory::{Memory, refused};
use super::task::{NativeRecording, Task};
use super::whole_processes::Counters;
use crate::error::{Error, Result, in_full};
use crate::process::interrupt::Interrupts;
use crate::recorder::regions;
use crate::recorder::request::Engine;
use crate::recorder::runs::{Recorded, exit_of};
use lineup_cache::SpecError;
use lineup_model::region::{RegionId, Regions};
use lineup_recording::journal::Journal;
use lineup_recording::native::{note, region, state};
use lineup_recording::plan::Discovery;
use lineup_recording::{CALLS_IN_RUN_SHIFT, Header, Mode, ProgramExit, Selection, spread_position};
use rustix::process::Signal;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// The engine's name in recordings.
pub(in crate::recorder) const NAME: &str = "native engine";

/// Sets a header's fields that the engine determines.
pub(in crate::recorder) fn complete(header: &mut Header) {
    header.emulator = NAME.to_owned();
    if header.mode != Mode::WholeProgram {
        header.mode = Mode::OnePass;
    }
}

/// Runs the program once, and writes its calls to the output.
pub(in crate::recorder) fn record(task: &Task<'_>, interrupts: &Interrupts) -> Result<NativeRecording> {
    let Task { request, plan, .. } = *task;
    if plan.header.mode == Mode::WholeProgram {
        return record_whole(task, interrupts);
    }
    if plan.header.regions.len() > region::MOST {
        return refuse(format!("the native engine records {} regions at most", region::MOST));
    }
    let memory = Arc::new(Memory::new()?);
    let multiplier = match plan.header.selection {
        Selection::First | Selection::Threads => 1,
        Selection::Spread | Selection::Runs => spread_position(0),
    };
    let shift = if plan.header.selection == Selection::Runs { CALLS_IN_RUN_SHIFT } else { 0 };
    memory.control().multiplier.store(multiplier, Release);
    memory.control().run_shift.store(shift.into(), Release);
    if plan.header.selection == Selection::Threads {
        memory.control().calls_per_thread.store(plan.header.max_calls.unwrap_or_default(), Release);
    }
    // The recorder that waits for more calls counts them.
    let is_enough = plan.header.selection == Selection::First
        && plan.header.max_calls.is_some()
        && request.stop_after.is_none();
    memory.control().leaves_after_last.store(u64::from(is_enough), Release);
    // A function that the program does not have may be one of a library, which may be loaded later.
    let is_elsewhere = plan.header.regions.iter().any(|(_, region)| region.entries.is_empty());
    memory.control().looks_for_more.store(u64::from(is_elsewhere), Release);
    let mut followers = Followers::new(&memory, plan, task.output);
    followers.first().needs_all = request.engine == Engine::Fitting;
    followers.keep_pace(request.calls_per_second);
    let lives = followers.lives.clone();
    let lives = || lives.lock().unwrap_or_else(PoisonError::into_inner);
    let made = |number: usize| lives().made(number);
    let begun = Instant::now();
    let (finished, followed) = task.conduct(&memory, &mut followers, &made, interrupts)?;
    if let Some(refused) = lives().refused(plan) {
        let has_run = memory.control().state.load(Acquire) == state::RUNS;
        return if has_run { refuse_late(refused) } else { refuse(refused) };
    }
    let finished = match interrupts.check() {
        Ok(()) => Some(finished?),
        Err(_) => None,
    };
    task.check_loaded(&memory, finished.is_some())?;
    let found = followers.found();
    let missing = plan.header.regions.iter().find(|(id, _)| !found.contains(&id.0));
    if let Some((_, region)) = missing.filter(|_| interrupts.check().is_ok()) {
        regions::check_known(&region.name, task.subject.debug())?;
        if request.children {
            regions::check_all_followed(&region.name, &followers.unfollowed(), task.subject)?;
        }
        // A library may have it without code of its own.
        let images = followers.first().process.images.loaded().map(|image| image.path.clone()).collect();
        let seen = Discovery { images, ..Discovery::default() };
        let mut wanted: Regions = std::iter::once(region.clone()).collect();
        regions::find_elsewhere(&mut wanted, &seen, task.subject)?;
        let why = format!("no file that the program mapped has a function {}", region.name);
        return match regions::unreachable(&plan.header.regions, task.subject) {
            Some(unreachable) if request.children => Err(unreachable),
            _ => refuse_late(why),
        };
    }
    let lacks = task.lacks(&memory);
    let exit = finished.as_ref().map_or(ProgramExit::Signaled(Signal::TERM.as_raw()), exit_of);
    let seen: Vec<u64> = (0..plan.header.regions.len()).map(|number| lives().seen(number)).collect();
    if matches!(exit, ProgramExit::Exited(_)) && seen.iter().all(|calls| *calls == 0) {
        return match lacks {
            Some(lacks) => refuse_late(lacks),
            None => {
                let regions = plan.header.regions.iter().map(|(_, region)| region);
                let stopped = finished.as_ref().and_then(|finished| finished.stopped);
                let elsewhere = followers.first().process.elsewhere(&request.run.command);
                Err(regions::never_called(regions, task.subject, stopped, elsewhere))
            }
        };
    }
    let failure = followed.err();
    let (threads, processes) = (lives().threads(), followers.processes());
    let written = followers.finish(request.children);
    let failure = failure.or(written.err()).map(|error| in_full(&error));
    let journal = Journal { seen, threads, processes, ..Journal::default() };
    Ok(NativeRecording {
        recorded: Recorded { exit, elapsed: begun.elapsed(), journal, failure, finished },
        lacks,
        bursts: None,
    })
}

/// Runs the program once, and counts all of it.
fn record_whole(task: &Task<'_>, interrupts: &Interrupts) -> Result<NativeRecording> {
    if let Some(process) = task.request.process {
        return bursts::record(task, process, interrupts);
    }
    let specs = task.plan.header.caches.iter().map(|text| {
        text.parse().map_err(|error: SpecError| Error::argument(text.clone(), error.to_string()))
    });
    let specs = specs.collect::<Result<Vec<_>>>()?;
    let memory = Arc::new(match task.request.logs_all {
        true => Memory::of_logged_program()?,
        false => Memory::of_whole_program(&specs, task.plan.window_bytes > 0)?,
    });
    // Files that are mapped later may have allocators, and callers of them.
    memory.control().looks_for_more.store(u64::from(task.plan.window_bytes > 0), Release);
    let mut reader = match task.request.logs_all {
        true => WholeReader::Logger(Box::new(Logger::new(&memory, task.plan, task.output))),
        false => {
            memory.control().follows_forks.store(task.request.children.into(), Release);
            let mut counters = Counters::new(&memory, task.plan, task.output)?;
            counters.first().is_static = is_static(task.subject);
            if task.plan.window_bytes > 0 {
                counters.first().ahead = Some(DebugInfoLoader::new(Path::new(&task.subject.mapped_text()?)));
            }
            WholeReader::Counters(Box::new(counters))
        }
    };
    let begun = Instant::now();
    let is_refused = || refused(&memory, task.plan).is_some();
    let follow = &mut |is_over: &_| reader.follow(is_over);
    let own = task.subject.debug();
    let (finished, followed) = std::thread::scope(|scope| {
        if task.plan.window_bytes > 0 {
            scope.spawn(|| own.read_ahead());
        }
        task.start(&memory, follow, &is_refused, &|_| 0, interrupts)
    })?;
    if let Some(refused) = refused(&memory, task.plan) {
        return refuse(refused);
    }
    let finished = match interrupts.check() {
        Ok(()) => Some(finished?),
        Err(_) => None,
    };
    task.check_loaded(&memory, finished.is_some())?;
    let exit = finished.as_ref().map_or(ProgramExit::Signaled(Signal::TERM.as_raw()), exit_of);
    let failure = followed.err();
    let processes = reader.processes();
    let ahead = reader.take_ahead();
    let failure = failure.or(reader.finish(task.request.children).err()).map(|error| in_full(&error));
    for (file, debug) in ahead.map(DebugInfoLoader::finish).unwrap_or_default() {
        task.subject.others().add(&file, debug);
    }
    let journal =
        Journal { threads: memory.control().next_thread.load(Acquire), processes, ..Journal::default() };
    Ok(NativeRecording {
        recorded: Recorded { exit, elapsed: begun.elapsed(), journal, failure, finished },
        lacks: None,
        bursts: None,
    })
}

/// The destination of a whole program's log.
enum WholeReader<'a> {
    /// It is counted.
    Counters(Box<Counters<'a>>),
    /// The log is kept.
    Logger(Box<Logger<'a>>),
}

impl WholeReader<'_> {
    fn follow(&mut self, is_over: &AtomicBool) -> Result<()> {
        match self {
            WholeReader::Counters(counters) => counters.follow(is_over),
            WholeReader::Logger(logger) => logger.follow(is_over),
        }
    }

    /// The reader that reads debug information meanwhile.
    fn take_ahead(&mut self) -> Option<DebugInfoLoader> {
        match self {
            WholeReader::Counters(counters) => counters.first().ahead.take(),
            WholeReader::Logger(_) => None,
        }
    }

    /// Processes whose logs were read.
    fn processes(&self) -> u64 {
        match self {
            WholeReader::Counters(counters) => counters.processes(),
            WholeReader::Logger(_) => 1,
        }
    }

    fn finish(self, follows: bool) -> Result<()> {
        match self {
            WholeReader::Counters(counters) => counters.finish(follows),
            WholeReader::Logger(logger) => logger.finish(),
        }
    }
}

impl Task<'_> {
    /// The engine has started in the program, which has ended.
    fn check_loaded(&self, memory: &Memory, has_ended: bool) -> Result<()> {
        if memory.control().state.load(Acquire) != 0 || !has_ended {
            return Ok(());
        }
        refuse(format!(
            "{} did not load the native engine: it was not started, gains rights when it starts, or the engine's \
             library next to lineup was built from other sources than lineup",
            self.subject.program().display()
        ))
    }

    /// The calls that only the emulator would have recorded: in forked processes, and in started programs that may have
    /// the functions.
    fn lacks(&self, memory: &Memory) -> Option<String> {
        let regions = || self.plan.header.regions.iter();
        let is_in_forks = memory.control().forked.load(Acquire) > 0;
        let unwatched = |id: RegionId| memory.region(usize::from(id.0)).unwatched.load(Acquire);
        if let Some((id, region)) = regions().find(|(id, _)| is_in_forks && unwatched(*id) > 0) {
            let name = &region.name;
            return Some(format!(
                "calls of {name} in processes that were forked off: {}; the native engine does not record them",
                unwatched(id)
            ));
        }
        let own = self.subject.mapped_text().ok()?;
        let is_librarys = regions().any(|(_, region)| region.image != own);
        let may_have_them = |kind: u64, program: &String| match kind {
            note::SECOND => true,
            note::EXEC => {
                is_librarys
                    || program == "/proc/self/exe"
                    || Path::new(program).canonicalize().is_ok_and(|path| path == Path::new(&own))
            }
            _ => false,
        };
        let (_, program) = memory.told().into_iter().find(|(kind, program)| may_have_them(*kind, program))?;
        Some(format!("the program started {program}, which the native engine does not follow"))
    }
}
