//! Recording with the native engine: the program runs by itself, with the engine loaded into it, and what the engine
//! logs is read beside it.

mod follower;
mod memory;

use super::runs::Recorded;
use super::{RecordRequest, Subject, emulator, regions};
use crate::error::{Error, Result};
use crate::interrupt::Interrupts;
use crate::process::Waiting;
use crate::run::Run;
use follower::Follower;
use lineup_model::abi::{Abi, Machine};
use lineup_recording::journal::Journal;
use lineup_recording::native::{Refusal, VARIABLE, region, state, word};
use lineup_recording::plan::Plan;
use lineup_recording::{Header, Mode, ProgramExit, RecordingError, Selection, spread_position};
use memory::Memory;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The file name of the engine.
const ENGINE: &str = "liblineup_engine.so";

/// What recordings say of what made them.
pub(super) const NAME: &str = "native engine";

/// The engine's file. What cannot work is found out now.
pub(super) fn find(abi: Abi, mode: Mode) -> Result<PathBuf> {
    if !abi.machine.is_host() || abi.machine != Machine::X86_64 {
        return refuse(
            "the native engine records x86-64 programs on x86-64 machines; record this one with --engine qemu",
        );
    }
    if mode == Mode::WholeProgram {
        return refuse("the native engine records calls; count a whole program with --engine qemu");
    }
    emulator::beside_us(ENGINE, "LINEUP_ENGINE_FILE", "lineup-engine")
}

fn refuse<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::Start(why.into()))
}

/// Sets what of a header the engine decides.
pub(super) fn complete(header: &mut Header) {
    header.emulator = NAME.to_owned();
    header.mode = Mode::OnePass;
}

/// What is to be done.
pub(super) struct Task<'a> {
    pub(super) request: &'a RecordRequest,
    pub(super) subject: &'a Subject,
    /// The engine's file.
    pub(super) engine: &'a Path,
    pub(super) plan: &'a Plan,
    /// Where the recording goes.
    pub(super) output: &'a Path,
}

/// Runs the program once, and writes its calls to the output.
pub(super) fn record(task: &Task<'_>, interrupts: &Interrupts) -> Result<Recorded> {
    let Task { request, plan, .. } = *task;
    if plan.header.regions.len() > region::MOST {
        return refuse(format!("the native engine records {} regions at most; name fewer", region::MOST));
    }
    let memory = Memory::new()?;
    let multiplier = match plan.header.selection {
        Selection::First => 1,
        Selection::Spread => spread_position(0),
    };
    memory.set(word::MULTIPLIER, multiplier);
    // Whoever waits for more calls has them counted.
    let is_enough = plan.header.selection == Selection::First
        && plan.header.max_calls.is_some()
        && request.stop_after.is_none();
    memory.set(word::LEAVES_AFTER_LAST, u64::from(is_enough));
    // A function that the program does not have may be one of a library, which may be loaded later.
    let is_elsewhere = plan.header.regions.iter().any(|(_, region)| region.entries.is_empty());
    memory.set(word::LOOKS_FOR_MORE, u64::from(is_elsewhere));
    let mut follower = Follower::new(&memory, plan, task.output)?;
    let waiting = Waiting::start(&task.run(&memory)?, None, request.streams, interrupts)?;
    let begun = Instant::now();
    let is_over = AtomicBool::new(false);
    let (finished, followed) = std::thread::scope(|scope| {
        let following = scope.spawn(|| {
            let followed = follower.follow(&is_over);
            // Whoever would write more goes on without.
            memory.set(word::IS_GONE, 1);
            followed
        });
        let seen = |number| memory.region(number, region::CALLS);
        let is_enough = || {
            let regions = 0..plan.header.regions.len();
            refused(&memory, plan).is_some()
                || request.stop_after.is_some_and(|calls| regions.clone().all(|number| seen(number) >= calls))
        };
        let finished = waiting.run_until(&is_enough);
        is_over.store(true, Ordering::Release);
        (
            finished,
            following.join().unwrap_or_else(|_| Err(Error::Start("reading the engine's log failed".into()))),
        )
    });
    if let Some(refused) = refused(&memory, plan) {
        return refuse(format!("{refused}; record it with --engine qemu"));
    }
    let finished = match interrupts.check() {
        Ok(()) => Some(finished?),
        Err(_) => None,
    };
    if memory.word(word::STATE) == 0 {
        return refuse(format!(
            "{} did not load the native engine: it was not started, is linked statically, or gains rights when it starts; \
             record it with --engine qemu",
            task.subject.program().display()
        ));
    }
    let missing = plan.header.regions.iter().find(|(id, _)| !follower.found.contains(&id.0));
    if let Some((_, region)) = missing.filter(|_| interrupts.check().is_ok()) {
        regions::check_known(&region.name, task.subject.debug())?;
        return refuse(format!("no file that the program mapped has a function {}", region.name));
    }
    let failure = followed.err();
    let written = follower.finish();
    let failure = failure.or(written.err());
    let exit = finished.as_ref().map_or(ProgramExit::Signaled(Signal::TERM.as_raw()), super::runs::exit_of);
    let seen = (0..plan.header.regions.len()).map(|number| memory.region(number, region::CALLS));
    let journal = Journal {
        seen: seen.collect(),
        threads: memory.word(word::NEXT_THREAD),
        processes: 1,
        failure: failure.as_ref().map(error_number),
        ..Journal::default()
    };
    Ok(Recorded { exit, elapsed: begun.elapsed(), journal, finished })
}

/// Why writing failed, as the system numbers it.
fn error_number(error: &Error) -> i32 {
    let number = |cause: &std::io::Error| cause.raw_os_error().unwrap_or(libc::EIO);
    match error {
        Error::System { cause, .. } | Error::Recording(RecordingError::Io(cause)) => number(cause),
        Error::Step { cause, .. } => error_number(cause),
        _ => libc::EIO,
    }
}

impl Task<'_> {
    /// The run with the engine in the program.
    fn run(&self, memory: &Memory) -> Result<Run> {
        let mut run = Run { command: self.subject.command.clone(), ..self.request.run.clone() };
        let preload = std::ffi::OsString::from("LD_PRELOAD");
        let given = run.environment.iter().find(|(name, _)| *name == preload).map(|(_, value)| value.clone());
        let mut libraries = self.engine.as_os_str().to_owned();
        if let Some(others) = given.or_else(|| std::env::var_os(&preload)).filter(|others| !others.is_empty())
        {
            libraries.push(":");
            libraries.push(others);
        }
        run.environment.retain(|(name, _)| *name != preload);
        run.environment.push((preload, libraries));
        let named = format!("{}:{}", memory.path(), self.subject.mapped_text()?);
        run.environment.push((VARIABLE.into(), named.into()));
        Ok(run)
    }
}

/// Why a region cannot be recorded, in words; `None` before the engine has answered, and when all can.
fn refused(memory: &Memory, plan: &Plan) -> Option<String> {
    match memory.word(word::STATE) {
        state::RUNS => {}
        state::GAVE_UP => return Some(memory.notes().join("; ")),
        _ => return None,
    }
    let entries = memory.word(word::ENTRIES) as usize;
    plan.header.regions.iter().find_map(|(id, region)| {
        let own = (0..entries).filter(|number| memory.region_of(*number) == u64::from(id.0));
        let why = own.map(|number| memory.answer(number)).find_map(Refusal::of)?;
        Some(format!("the native engine cannot watch {}: {why}", region.name))
    })
}
