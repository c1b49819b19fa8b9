//! Running a program with the engine in it, or bringing the engine to one that runs.

use super::attach::Attached;
use super::followers::Followers;
use super::inject::Starting;
use super::requirements::is_static;
use crate::error::{Doing, Error, Result};
use crate::process::child::{Finished, Waiting};
use crate::process::interrupt::Interrupts;
use crate::process::run::{Run, Stopped};
use crate::recorder::native::shared_memory::Memory;
use crate::recorder::request::{BurstCost, BurstCounts, RecordRequest};
use crate::recorder::runs::Recorded;
use crate::recorder::subject::Subject;
use lineup_prove::output::Output;
use lineup_prove::run::{Ending, Usage};
use lineup_recording::native::{ANY_PROGRAM_BUT, VARIABLE, state};
use lineup_recording::plan::Plan;
use rustix::process::Pid;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, mpsc};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// The interval between looks at an attached process: it grows from the first value to the second.
const LOOKS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));
const LATE: u32 = 20;

/// Reads the log until the program has ended, and to its end.
pub(super) type Follow<'a> = dyn FnMut(&AtomicBool) -> Result<()> + Send + 'a;

/// A recording's task.
pub(in crate::recorder) struct Task<'a> {
    pub(in crate::recorder) request: &'a RecordRequest,
    pub(in crate::recorder) subject: &'a Subject,
    /// The engine's file.
    pub(in crate::recorder) engine: &'a Path,
    pub(in crate::recorder) plan: &'a Plan,
    /// The recording's path.
    pub(in crate::recorder) output: &'a Path,
}

/// The recording, and a description of the calls that only the emulator would have recorded.
pub(in crate::recorder) struct NativeRecording {
    pub(in crate::recorder) recorded: Recorded,
    pub(in crate::recorder) lacks: Option<String>,
    pub(in crate::recorder) bursts: Option<(BurstCounts, BurstCost)>,
}

impl Task<'_> {
    /// Runs the program with the engine, or attaches to the named process. Returns its end, and whether all of the log
    /// was read. `made` returns a region's number of calls until now.
    pub(super) fn conduct(
        &self,
        memory: &Memory,
        followers: &mut Followers<'_>,
        made: &dyn Fn(usize) -> u64,
        interrupts: &Interrupts,
    ) -> Result<(Result<Finished>, Result<()>)> {
        match self.request.process {
            Some(process) => self.attach(process, memory, followers, made, interrupts),
            None => {
                let lives = followers.lives.clone();
                let is_refused =
                    || lives.lock().unwrap_or_else(PoisonError::into_inner).refused(self.plan).is_some();
                self.start(memory, &mut |is_over| followers.follow(is_over), &is_refused, made, interrupts)
            }
        }
    }

    /// As [`Task::conduct`], with the program started: `follow` reads the log until the program has ended.
    pub(super) fn start(
        &self,
        memory: &Memory,
        follow: &mut Follow<'_>,
        is_refused: &dyn Fn() -> bool,
        made: &dyn Fn(usize) -> u64,
        interrupts: &Interrupts,
    ) -> Result<(Result<Finished>, Result<()>)> {
        let waiting = Waiting::start(&self.run(memory)?, self.request.streams, interrupts)?;
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let following = scope.spawn(|| {
                let followed = follow(&is_over);
                // A thread that would write more continues without.
                memory.control().is_gone.store(1, Release);
                followed
            });
            let bringing =
                is_static(self.subject).then(|| bring(scope, (self.engine, memory), waiting.pid()));
            let finished = match self.request.stop_after {
                Some(calls) => waiting.run_until(&|| is_refused() || self.is_enough(calls, made)),
                None => waiting.run_if(&|| match memory.control().state.load(Acquire) {
                    state::REFUSED | state::GAVE_UP => Some(!is_refused()),
                    // A function of a library that was loaded later may be refused: the program runs to its end.
                    state::RUNS => Some(true),
                    // Another program may start the one with the engine at any time.
                    _ => self.subject.is_started_by_another().then_some(true),
                }),
            };
            is_over.store(true, Ordering::Release);
            let failed = |_| Err(Error::Start("reading the engine's log failed".into()));
            let followed = following.join().unwrap_or_else(failed);
            let failed = |_| Err(Error::Start("bringing the engine to the program failed".into()));
            bringing.map_or(Ok(()), |bringing| bringing.join().unwrap_or_else(failed))?;
            Ok((finished, followed))
        })
    }

    /// True when every region was called at least `calls` times.
    fn is_enough(&self, calls: u64, made: &dyn Fn(usize) -> u64) -> bool {
        (0..self.plan.header.regions.len()).all(|number| made(number) >= calls)
    }

    fn attach(
        &self,
        process: u32,
        memory: &Memory,
        followers: &mut Followers<'_>,
        made: &dyn Fn(usize) -> u64,
        interrupts: &Interrupts,
    ) -> Result<(Result<Finished>, Result<()>)> {
        memory.control().is_attached.store(1, Release);
        // A thread of the process waits later: its files are read before.
        if !followers.first().know(process)? {
            memory.control().state.store(state::REFUSED, Release);
            return Ok((Ok(left(Instant::now())), Ok(())));
        }
        let is_over = AtomicBool::new(false);
        let mut notes = Vec::new();
        let done = std::thread::scope(|scope| {
            let following = scope.spawn(|| {
                let followed = followers.follow(&is_over);
                memory.control().is_gone.store(1, Release);
                followed
            });
            let watched = self.watch(process, memory, made, interrupts, &mut notes);
            is_over.store(true, Ordering::Release);
            let failed = |_| Err(Error::Start("reading the engine's log failed".into()));
            (watched, following.join().unwrap_or_else(failed))
        });
        followers.first().notes.extend(notes);
        Ok(done)
    }

    /// Attaches, waits until there was enough, and leaves.
    fn watch(
        &self,
        process: u32,
        memory: &Memory,
        made: &dyn Fn(usize) -> u64,
        interrupts: &Interrupts,
        notes: &mut Vec<String>,
    ) -> Result<Finished> {
        let begun = Instant::now();
        if let Some(attached) = Attached::new(process, self.engine, memory)? {
            let is_late = || self.request.run.max_time.is_some_and(|most| begun.elapsed() >= most);
            let is_enough = || self.request.stop_after.is_some_and(|calls| self.is_enough(calls, made));
            while attached.is_running() && !is_enough() && !is_late() && !interrupts.take() {
                std::thread::sleep((begun.elapsed() / LATE).clamp(LOOKS.0, LOOKS.1));
            }
            match attached.is_running() {
                true => notes.extend(attached.leave()?.notes()),
                false => notes.push("the process ended while it was watched".into()),
            }
        }
        Ok(left(begun))
    }

    /// The run with the engine in the program.
    fn run(&self, memory: &Memory) -> Result<Run> {
        let mut run = self.request.run.clone();
        if is_static(self.subject) && !self.request.children {
            // It loads no library, and its children are not followed.
            return Ok(run);
        }
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
        let program = match self.request.children {
            true => {
                let own = std::env::current_exe().and_then(|own| own.canonicalize());
                let own = own.doing("finding the lineup program itself")?;
                format!("{ANY_PROGRAM_BUT}{}", own.display())
            }
            false => self.subject.mapped_text()?,
        };
        let named = format!("{}:{program}", memory.path());
        run.environment.push((VARIABLE.into(), named.into()));
        Ok(run)
    }
}

/// Has the engine brought to the program by another thread, which holds the process that is to become the program when
/// this returns.
fn bring<'s>(
    scope: &'s Scope<'s, '_>,
    (engine, memory): (&'s Path, &'s Memory),
    process: Pid,
) -> ScopedJoinHandle<'s, Result<()>> {
    let (tell, is_held) = mpsc::channel();
    let bringing = scope.spawn(move || {
        let starting = Starting::hold(process);
        // The thread that waits for it continues when this thread ends as well.
        let _ = tell.send(());
        starting?.bring(engine, memory)
    });
    let _ = is_held.recv();
    bringing
}

/// A process that was attached to at a time, and left running.
pub(super) fn left(begun: Instant) -> Finished {
    Finished {
        ending: Ending::Stopped,
        wall_ns: u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
        usage: Usage::default(),
        stdout: Output::of(b""),
        stderr: Output::of(b""),
        stdout_file: None,
        stopped: Some(Stopped::Left),
        left_running: 0,
        client: None,
    }
}
