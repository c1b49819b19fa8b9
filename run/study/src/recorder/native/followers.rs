//! The logs of all recorded processes: the first one, and those that it and its children start.

use super::follower::Follower;
use super::output::Output;
use super::pace;
use crate::companions;
use crate::error::Result;
use crate::recorder::native::heartbeat;
use crate::recorder::native::requirements::names_musl;
use crate::recorder::native::shared_memory::{Memory, Trial, refused};
use crate::recorder::native::timed_region::{self, TimedRegion};
use crate::recorder::{RecordedCode, rights};
use lineup_model::access::ProcessId;
use lineup_model::executable::{FIRST_LINE_BYTES, Interpreter, names_loader};
use lineup_model::process::Origin;
use lineup_recording::Unfollowed;
use lineup_recording::native::note;
use lineup_recording::plan::Plan;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The pause after a look that found nothing in the logs.
const PAUSE: Duration = Duration::from_micros(300);
/// The interval between looks for ended processes.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// The known state of all processes while they run, for another thread.
#[derive(Default)]
pub(super) struct Lives {
    memories: Vec<Arc<Memory>>,
    /// Calls by region, and threads, of processes that have ended.
    seen: Vec<u64>,
    unwatched: Vec<u64>,
    threads: u64,
    /// Where calls are timed: their times by region.
    times: Option<Vec<TimedRegion>>,
    /// Sampled calls,
    trials: Vec<Trial>,
    /// and notes on all calls.
    said: Vec<String>,
}

impl Lives {
    /// The times of a region's calls until now, of all processes.
    pub(super) fn times(&self, number: usize) -> TimedRegion {
        let ended = self.times.as_ref().and_then(|times| times.get(number)).cloned();
        self.memories
            .iter()
            .fold(ended.unwrap_or_default(), |all, memory| all.and(timed_region::sums(memory, number)))
    }

    /// Calls that were sampled until now, of all processes.
    pub(super) fn trials(&self) -> Vec<Trial> {
        let lives = self.memories.iter().flat_map(|memory| memory.trials());
        self.trials.iter().copied().chain(lives).collect()
    }

    /// Notes on all processes whose calls were timed.
    pub(super) fn said(&self) -> Vec<String> {
        let lives = self.memories.iter().flat_map(|memory| timed_region::said(memory));
        self.said.iter().cloned().chain(lives).collect()
    }

    /// Calls of a region that were made until now.
    pub(super) fn seen(&self, number: usize) -> u64 {
        let lives = self.memories.iter().map(|memory| memory.region(number).calls.load(Acquire));
        lives.sum::<u64>() + self.seen.get(number).copied().unwrap_or_default()
    }

    /// As [`Lives::seen`], with the calls that were not watched.
    pub(super) fn made(&self, number: usize) -> u64 {
        let lives = self.memories.iter().map(|memory| memory.region(number).unwatched.load(Acquire));
        let unwatched = lives.sum::<u64>() + self.unwatched.get(number).copied().unwrap_or_default();
        self.seen(number) + unwatched
    }

    /// Threads that were in calls until now.
    pub(super) fn threads(&self) -> u64 {
        self.memories.iter().map(|memory| memory.control().next_thread.load(Acquire)).sum::<u64>()
            + self.threads
    }

    /// The reason why a region cannot be recorded in a process; `None` when all can.
    pub(super) fn refused(&self, plan: &Plan) -> Option<String> {
        self.memories.iter().find_map(|memory| refused(memory, plan))
    }

    fn forget(&mut self, memory: &Arc<Memory>) {
        let regions = self.seen.len();
        for number in 0..regions {
            self.seen[number] += memory.region(number).calls.load(Acquire);
            self.unwatched[number] += memory.region(number).unwatched.load(Acquire);
        }
        self.threads += memory.control().next_thread.load(Acquire);
        if let Some(all) = &mut self.times {
            for (number, all) in all.iter_mut().enumerate() {
                *all = std::mem::take(all).and(timed_region::sums(memory, number));
            }
            self.said.extend(timed_region::said(memory));
            self.trials.append(&mut memory.trials());
        }
        self.memories.retain(|other| !Arc::ptr_eq(other, memory));
    }
}

/// The logs of all processes.
pub(super) struct Followers<'a> {
    plan: &'a Plan,
    output: Arc<Mutex<Output<'a>>>,
    /// The first process's is the first.
    all: Vec<Follower<'a>>,
    /// Processes that have asked for memory.
    asked: u64,
    pub(super) lives: Arc<Mutex<Lives>>,
    /// Regions that a file had, of processes that have ended.
    found: BTreeSet<u16>,
    /// Programs that processes have become, as they said before, and as they were then.
    told: Vec<String>,
    ran: Vec<PathBuf>,
    looked_at: Instant,
    /// Calls of a region that are recorded in a second at most, in each process.
    calls_per_second: Option<u64>,
    is_timed: bool,
    flushed: Arc<[RecordedCode]>,
}

impl<'a> Followers<'a> {
    /// Gives the engine in the first process its orders.
    pub(super) fn new(memory: &Arc<Memory>, plan: &'a Plan, output: &'a Path) -> Followers<'a> {
        let output = Arc::new(Mutex::new(Output::new(output, &plan.header)));
        let first = (ProcessId(0), Origin::Started);
        let all = vec![Follower::new(memory.clone(), plan, output.clone(), first)];
        let none = vec![0; plan.header.regions.len()];
        let lives = Lives {
            memories: vec![memory.clone()],
            seen: none.clone(),
            unwatched: none,
            threads: 0,
            times: None,
            trials: Vec::new(),
            said: Vec::new(),
        };
        Followers {
            plan,
            output,
            all,
            asked: 0,
            lives: Arc::new(Mutex::new(lives)),
            found: BTreeSet::new(),
            told: Vec::new(),
            ran: Vec::new(),
            looked_at: Instant::now(),
            calls_per_second: None,
            is_timed: false,
            flushed: Arc::default(),
        }
    }

    /// Limits the recorded calls of each region to this many a second.
    pub(super) fn keep_pace(&mut self, calls_per_second: Option<u64>) {
        self.calls_per_second = calls_per_second;
        self.all.iter_mut().for_each(|follower| follower.keep_pace(calls_per_second));
    }

    /// Calls are timed, and there is no log. This code is flushed before sampled calls.
    pub(super) fn are_timed(&mut self, flushed: Arc<[RecordedCode]>) {
        self.is_timed = true;
        self.flushed = flushed.clone();
        self.first().is_timed = true;
        self.first().flushed = flushed;
        let mut lives = self.lives();
        lives.times = Some(vec![TimedRegion::default(); lives.seen.len()]);
    }

    /// The first process's log.
    pub(super) fn first(&mut self) -> &mut Follower<'a> {
        &mut self.all[0]
    }

    fn lives(&self) -> MutexGuard<'_, Lives> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the logs until the program has ended, and to their end.
    pub(super) fn follow(&mut self, is_over: &AtomicBool) -> Result<()> {
        let lives = self.lives.clone();
        let beat = |number| {
            let lives = lives.lock().unwrap_or_else(PoisonError::into_inner);
            lives.memories.iter().for_each(|memory| memory.control().heartbeat.store(number, Release));
        };
        heartbeat::beat_during(beat, || self.read(is_over))
    }

    fn read(&mut self, is_over: &AtomicBool) -> Result<()> {
        loop {
            let was_over = is_over.load(Ordering::Acquire);
            self.welcome()?;
            let mut was_any = false;
            for follower in &mut self.all {
                was_any |= follower.step(was_over)?;
            }
            if was_over {
                return Ok(());
            }
            if self.looked_at.elapsed() >= LOOK {
                self.looked_at = Instant::now();
                self.part_from(|follower| !is_running(follower.process.system_id()))?;
            }
            if !was_any {
                let is_paced = self.calls_per_second.is_some() && self.all.iter().all(Follower::runs);
                std::thread::sleep(if is_paced { pace::STEP } else { PAUSE });
            }
        }
    }

    /// Gives memory to processes that ask for it.
    fn welcome(&mut self) -> Result<()> {
        let first = self.all[0].memory.clone();
        while self.asked < first.control().children.load(Acquire) {
            let Some((system_id, _)) = first.asking(self.asked) else { return Ok(()) };
            // The same process, which has become another program.
            self.part_from(|follower| follower.process.system_id() == system_id)?;
            let parent = self.number_of(parent_of(system_id)).unwrap_or_default();
            self.ran.extend(fs::read_link(format!("/proc/{system_id}/exe")));
            let process = ProcessId(u32::try_from(self.asked + 1).unwrap_or(u32::MAX));
            let memory = Arc::new(Memory::like(&first)?);
            memory.control().process.store(system_id, Release);
            let origin = (process, Origin::Executed(parent));
            let mut follower = Follower::new(memory.clone(), self.plan, self.output.clone(), origin);
            follower.process.began_at = first.control().clock.load(Acquire);
            follower.keep_pace(self.calls_per_second);
            follower.is_timed = self.is_timed;
            follower.flushed = self.flushed.clone();
            self.all.push(follower);
            self.lives().memories.push(memory.clone());
            first.give(self.asked, &memory);
            self.asked += 1;
        }
        Ok(())
    }

    /// The number of a followed process.
    fn number_of(&self, system_id: u64) -> Option<ProcessId> {
        self.all
            .iter()
            .find(|follower| follower.process.system_id() == system_id)
            .map(|follower| follower.process.id)
    }

    /// Removes some processes, which have ended, and reads their logs to the end.
    fn part_from(&mut self, is_gone: impl Fn(&Follower<'_>) -> bool) -> Result<()> {
        let (gone, stay): (Vec<_>, Vec<_>) = std::mem::take(&mut self.all)
            .into_iter()
            .partition(|follower| follower.process.id != ProcessId(0) && is_gone(follower));
        self.all = stay;
        // The first has the counts of all, and is kept.
        if is_gone(&self.all[0]) {
            self.all[0].end()?;
        }
        for mut follower in gone {
            follower.end()?;
            self.found.append(&mut follower.found);
            self.take_told(&follower.memory.clone());
            let memory = follower.memory.clone();
            if !self.is_timed {
                follower.finish(Vec::new())?;
            }
            self.lives().forget(&memory);
        }
        Ok(())
    }

    fn take_told(&mut self, memory: &Memory) {
        let programs = memory.told().into_iter().filter(|(kind, _)| *kind == note::EXEC);
        self.told.extend(programs.map(|(_, program)| program));
    }

    /// Regions that a file of a process had.
    pub(super) fn found(&self) -> BTreeSet<u16> {
        let lives = self.all.iter().flat_map(|follower| follower.found.iter().copied());
        lives.chain(self.found.iter().copied()).collect()
    }

    /// Processes that were followed.
    pub(super) fn processes(&self) -> u64 {
        self.asked + 1
    }

    /// Programs that were started, and whose calls were not timed.
    pub(super) fn unfollowed(&mut self) -> Vec<Unfollowed> {
        let memories: Vec<_> = self.all.iter().map(|follower| follower.memory.clone()).collect();
        memories.iter().for_each(|memory| self.take_told(memory));
        unfollowed(std::mem::take(&mut self.told), std::mem::take(&mut self.ran))
    }

    /// Writes the waiting records, and the counts. `follows` when started programs were to be followed.
    pub(super) fn finish(mut self, follows: bool) -> Result<()> {
        let first = self.all.remove(0);
        for follower in std::mem::take(&mut self.all) {
            self.take_told(&follower.memory.clone());
            follower.finish(Vec::new())?;
        }
        let unfollowed = match follows {
            false => first.process.unfollowed(),
            true => {
                self.take_told(&first.memory.clone());
                unfollowed(self.told, self.ran)
            }
        };
        first.finish(unfollowed)
    }
}

/// The programs that processes were about to become and that never loaded the engine.
pub(super) fn unfollowed(told: Vec<String>, mut ran: Vec<PathBuf>) -> Vec<Unfollowed> {
    let mut left = Vec::new();
    for program in told {
        let Some(file) = file_of(Path::new(&program)) else { continue };
        match ran.iter().position(|other| *other == file) {
            Some(place) => {
                ran.swap_remove(place);
            }
            None => left.push(Unfollowed { program, why: why_not(&file).into() }),
        }
    }
    left
}

/// The file that a process becomes: for a script, its interpreter. `None` for a file that cannot be started.
fn file_of(program: &Path) -> Option<PathBuf> {
    let file = program.canonicalize().ok()?;
    let bytes = companions::read(&file).ok()?;
    let begin = &bytes[..bytes.len().min(FIRST_LINE_BYTES)];
    match Interpreter::of(begin) {
        Some(interpreter) => {
            let words = interpreter.arguments(program.as_os_str(), &[program.into()]);
            file_of(Path::new(words.first()?))
        }
        None => begin.starts_with(b"\x7fELF").then_some(file),
    }
}

fn why_not(file: &Path) -> &'static str {
    let bytes = companions::read(file).ok();
    let is_static = bytes.as_ref().is_some_and(|bytes| !names_loader(bytes));
    match (is_static, rights::note(file)) {
        _ if bytes.is_some_and(|bytes| names_musl(&bytes)) => {
            "is loaded by musl's loader, which cannot load the engine's library, made for glibc's"
        }
        (true, _) => "is linked statically, and loads no library of ours",
        (_, Some(_)) => "gains rights when it starts, and loads no library of ours",
        _ => {
            "did not load the engine: what started it set LD_PRELOAD anew, or cleared the environment; have it keep \
             LINEUP_ENGINE and what LD_PRELOAD begins with, as by LD_PRELOAD=$LD_PRELOAD:OTHER, or name the program itself"
        }
    }
}

/// True when a process runs, or is not known yet: one that waits to be reaped does not run.
pub(super) fn is_running(system_id: u64) -> bool {
    if system_id == 0 {
        return true;
    }
    let stat = fs::read_to_string(format!("/proc/{system_id}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

pub(super) fn parent_of(system_id: u64) -> u64 {
    let status = fs::read_to_string(format!("/proc/{system_id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}
