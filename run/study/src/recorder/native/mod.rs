//! Recording with the native engine: the program runs by itself with the engine loaded into it, and Lineup reads the
//! engine's log meanwhile.

mod attach;
mod bursts;
mod call_times;
mod conduct;
mod debug_info_loader;
mod follower;
mod followers;
mod heap;
mod heartbeat;
mod inject;
mod logger;
mod mapping;
mod output;
mod pace;
mod process_files;
mod shared_memory;
mod tracee;
mod whole_processes;
mod whole_program;

pub use call_times::{Mark, TimedRegion, Times, Trial, time};
pub(super) use conduct::Task;

use super::runs::Recorded;
use super::{BurstCost, BurstCounts, Engine, RecordRequest, Subject, emulator, regions, rights};
use crate::companions;
use crate::error::{Error, Result, in_full};
use crate::process::interrupt::Interrupts;
use debug_info_loader::Ahead;
use followers::Followers;
use lineup_bundle::Library;
use lineup_cache::SpecError;
use lineup_model::abi::{Abi, Machine};
use lineup_model::executable::{names_loader, needs_libraries};
use lineup_model::region::RegionId;
use lineup_recording::journal::Journal;
use lineup_recording::native::{Refusal, note, region, state, word};
use lineup_recording::plan::Plan;
use lineup_recording::{CALLS_IN_RUN_SHIFT, Header, Mode, ProgramExit, Selection, spread_position};
use logger::Logger;
use rustix::process::Signal;
use shared_memory::Memory;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use whole_processes::Counters;

/// A mark that the Go linker writes into each program.
const GO_PROGRAM: &[u8] = b"\xff Go buildinf:";

/// The engine's name in recordings.
pub(super) const NAME: &str = "native engine";

/// True when the native engine is the default for a request: calls of a program of this machine, or all of it. One pass
/// is a mode of the emulator, in which it records all processes.
pub(super) fn is_for(abi: Abi, mode: Mode) -> bool {
    let can = matches!(mode, Mode::TwoPass | Mode::WholeProgram);
    abi.machine.is_host() && abi.machine == Machine::X86_64 && can
}

/// True when the program is linked statically: it loads no library, and the engine must be injected.
fn is_static(subject: &Subject) -> bool {
    companions::read(subject.program()).is_ok_and(|bytes| !names_loader(&bytes))
}

/// The reason why the engine cannot be in a program; `None` when it can.
fn unfit(subject: &Subject) -> Option<String> {
    let program = subject.program();
    if rights::note(program).is_some() {
        return Some(format!(
            "{} gains rights when it starts, and loads no library of ours",
            program.display()
        ));
    }
    let bytes = companions::read(program).ok()?;
    let is_go = || memchr::memmem::find(&bytes, GO_PROGRAM).is_some();
    if names_loader(&bytes) {
        if names_musl(&bytes) {
            return Some(format!(
                "the loader of {} is musl's, which cannot load the engine's library, made for glibc's; a program that is \
                 linked with -static can be recorded and timed",
                program.display()
            ));
        }
        // With cgo the C library makes its threads.
        let sets_bases = !needs_libraries(&bytes) && is_go();
        return sets_bases.then(|| {
            format!(
                "{} is written in Go without cgo: it gives its threads bases of its own, where the engine's words of a \
                 thread would lie",
                program.display()
            )
        });
    }
    let why = if subject.is_started_by_another() {
        "is started by another program, so that the engine cannot be brought to it"
    } else if is_go() {
        "is written in Go, whose threads have no room for the engine's words"
    } else {
        return None;
    };
    Some(format!("{} is linked statically, and {why}", program.display()))
}

/// True when a program names musl's loader; its name stands near the file's beginning.
fn names_musl(bytes: &[u8]) -> bool {
    const HEAD_BYTES: usize = 1 << 12;
    memchr::memmem::find(&bytes[..bytes.len().min(HEAD_BYTES)], b"/ld-musl-").is_some()
}

/// The engine's file. Requests that cannot work are refused here.
pub(super) fn find(request: &RecordRequest, subject: &Subject) -> Result<PathBuf> {
    let abi = subject.debug().abi();
    if let Some(process) = request.process {
        attach::check(process)?;
    }
    if !abi.machine.is_host() || abi.machine != Machine::X86_64 {
        return refuse("the native engine records x86-64 programs on x86-64 machines");
    }
    if let Some(why) = unfit(subject) {
        return refuse(why);
    }
    if request.engine == Engine::Fitting && subject.is_started_by_another() {
        return refuse("the program is started by another, and may be more than once");
    }
    emulator::library(Library::Engine)
}

fn refuse<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::Unfit { why: why.into(), has_run: false })
}

/// As [`refuse`], once the program has ended.
fn refuse_late<T>(why: String) -> Result<T> {
    Err(Error::Unfit { why, has_run: true })
}

/// Sets a header's fields that the engine determines.
pub(super) fn complete(header: &mut Header) {
    header.emulator = NAME.to_owned();
    if header.mode != Mode::WholeProgram {
        header.mode = Mode::OnePass;
    }
}

/// The command line of a running process: to record it, or to time its calls.
///
/// # Errors
/// When it cannot be attached to.
pub fn command_of(process: u32) -> Result<Vec<OsString>> {
    attach::command(process)
}

/// The recording, and a description of the calls that only the emulator would have recorded.
pub(super) struct NativeRecording {
    pub(super) recorded: Recorded,
    pub(super) lacks: Option<String>,
    pub(super) bursts: Option<(BurstCounts, BurstCost)>,
}

/// Runs the program once, and writes its calls to the output.
pub(super) fn record(task: &Task<'_>, interrupts: &Interrupts) -> Result<NativeRecording> {
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
    memory.set(word::MULTIPLIER, multiplier);
    memory.set(word::RUN_SHIFT, shift.into());
    if plan.header.selection == Selection::Threads {
        memory.set(word::CALLS_PER_THREAD, plan.header.max_calls.unwrap_or_default());
    }
    // The recorder that waits for more calls counts them.
    let is_enough = plan.header.selection == Selection::First
        && plan.header.max_calls.is_some()
        && request.stop_after.is_none();
    memory.set(word::LEAVES_AFTER_LAST, u64::from(is_enough));
    // A function that the program does not have may be one of a library, which may be loaded later.
    let is_elsewhere = plan.header.regions.iter().any(|(_, region)| region.entries.is_empty());
    memory.set(word::LOOKS_FOR_MORE, u64::from(is_elsewhere));
    let mut followers = Followers::new(&memory, plan, task.output);
    followers.first().needs_all = request.engine == Engine::Fitting;
    followers.keep_pace(request.calls_per_second);
    let lives = followers.lives.clone();
    let lives = || lives.lock().unwrap_or_else(PoisonError::into_inner);
    let made = |number: usize| lives().made(number);
    let begun = Instant::now();
    let (finished, followed) = task.conduct(&memory, &mut followers, &made, interrupts)?;
    if let Some(refused) = lives().refused(plan) {
        return refuse(refused);
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
        let why = format!("no file that the program mapped has a function {}", region.name);
        return match regions::unreachable(&plan.header.regions, task.subject) {
            Some(unreachable) if request.children => Err(unreachable),
            _ => refuse_late(why),
        };
    }
    let lacks = task.lacks(&memory);
    let exit = finished.as_ref().map_or(ProgramExit::Signaled(Signal::TERM.as_raw()), super::runs::exit_of);
    let seen: Vec<u64> = (0..plan.header.regions.len()).map(|number| lives().seen(number)).collect();
    if matches!(exit, ProgramExit::Exited(_)) && seen.iter().all(|calls| *calls == 0) {
        return match lacks {
            Some(lacks) => refuse_late(lacks),
            None => Err(regions::never_called(plan.header.regions.iter().map(|(_, region)| region))),
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
    memory.set(word::LOOKS_FOR_MORE, u64::from(task.plan.window_bytes > 0));
    let mut reader = match task.request.logs_all {
        true => WholeReader::Logger(Box::new(Logger::new(&memory, task.plan, task.output))),
        false => {
            memory.set(word::FOLLOWS_FORKS, task.request.children.into());
            let mut counters = Counters::new(&memory, task.plan, task.output)?;
            counters.first().is_static = is_static(task.subject);
            if task.plan.window_bytes > 0 {
                counters.first().ahead = Some(Ahead::new(Path::new(&task.subject.mapped_text()?)));
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
    let exit = finished.as_ref().map_or(ProgramExit::Signaled(Signal::TERM.as_raw()), super::runs::exit_of);
    let failure = followed.err();
    let processes = reader.processes();
    let ahead = reader.take_ahead();
    let failure = failure.or(reader.finish(task.request.children).err()).map(|error| in_full(&error));
    for (file, debug) in ahead.map(Ahead::finish).unwrap_or_default() {
        task.subject.others().add(&file, debug);
    }
    let journal = Journal { threads: memory.word(word::NEXT_THREAD), processes, ..Journal::default() };
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
    fn take_ahead(&mut self) -> Option<Ahead> {
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
        if memory.word(word::STATE) != 0 || !has_ended {
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
        let is_in_forks = memory.word(word::FORKED) > 0;
        let unwatched = |id: RegionId| memory.region(usize::from(id.0), region::UNWATCHED);
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

/// The reason why a region cannot be recorded, in words; `None` before the engine has answered, and when all can.
fn refused(memory: &Memory, plan: &Plan) -> Option<String> {
    match memory.word(word::STATE) {
        state::RUNS | state::REFUSED => {}
        state::GAVE_UP => return Some(memory.notes().join("; ")),
        _ => return None,
    }
    let entries = memory.word(word::ENTRIES) as usize;
    let own = |id: RegionId| (0..entries).filter(move |number| memory.region_of(*number) == u64::from(id.0));
    let watched = plan.header.regions.iter().find_map(|(id, region)| {
        let why = own(id).map(|number| memory.answer(number)).find_map(Refusal::of)?;
        Some(format!("the native engine cannot watch {}: {why}", region.name))
    });
    let is_refused = memory.word(word::STATE) == state::REFUSED;
    watched.or_else(|| {
        let missing = |(id, _): &(RegionId, _)| is_refused && own(*id).next().is_none();
        let (_, region) = plan.header.regions.iter().find(missing)?;
        Some(format!("neither the program nor a library that it has mapped has a function {}", region.name))
    })
}
