//! Whole programs: the first process, and those that it and its children fork and start.

use super::followers::{LOOK, is_running, parent_of, unfollowed};
use super::output::Output;
use super::whole_program::Counter;
use crate::error::Result;
use crate::recorder::native::heartbeat;
use crate::recorder::native::shared_memory::Memory;
use lineup_model::access::ProcessId;
use lineup_model::process::Origin;
use lineup_recording::native::note;
use lineup_recording::plan::Plan;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The pause after a look that found nothing in the logs. Meanwhile the engine fills some parts of 64 KB, out of more
/// than a hundred.
const PAUSE: Duration = Duration::from_millis(1);

/// The memories of processes that are counted.
type Memories = Arc<Mutex<Vec<Arc<Memory>>>>;

/// The counters of all processes.
pub(super) struct Counters<'a> {
    plan: &'a Plan,
    output: Arc<Mutex<Output<'a>>>,
    /// The first process's is the first.
    all: Vec<Counter<'a>>,
    memories: Memories,
    /// Processes that have asked for memory.
    asked: u64,
    /// Programs that processes have become, as they said before, and as they were then.
    told: Vec<String>,
    ran: Vec<PathBuf>,
    looked_at: Instant,
}

impl<'a> Counters<'a> {
    /// Counters that have counted nothing yet.
    pub(super) fn new(memory: &Arc<Memory>, plan: &'a Plan, output: &'a Path) -> Result<Self> {
        let output = Arc::new(Mutex::new(Output::new(output, &plan.header)));
        let origin = (ProcessId(0), Origin::Started);
        Ok(Counters {
            plan,
            all: vec![Counter::new(memory.clone(), plan, output.clone(), origin)?],
            output,
            memories: Arc::new(Mutex::new(vec![memory.clone()])),
            asked: 0,
            told: Vec::new(),
            ran: Vec::new(),
            looked_at: Instant::now(),
        })
    }

    /// The first process's counter.
    pub(super) fn first(&mut self) -> &mut Counter<'a> {
        &mut self.all[0]
    }

    /// Processes that were counted.
    pub(super) fn processes(&self) -> u64 {
        self.asked + 1
    }

    /// Reads the logs until the program has ended, and to their end.
    pub(super) fn follow(&mut self, is_over: &AtomicBool) -> Result<()> {
        let memories = self.memories.clone();
        let beat = |number| {
            let memories = memories.lock().unwrap_or_else(PoisonError::into_inner);
            memories.iter().for_each(|memory| memory.control().heartbeat.store(number, Release));
        };
        heartbeat::beat_during(beat, || self.read(is_over))
    }

    fn read(&mut self, is_over: &AtomicBool) -> Result<()> {
        loop {
            let was_over = is_over.load(Ordering::Acquire);
            self.welcome()?;
            let mut was_any = false;
            for counter in &mut self.all {
                was_any |= counter.step(was_over)?;
            }
            if was_over {
                return Ok(());
            }
            if self.all.len() > 1 && self.looked_at.elapsed() >= LOOK {
                self.looked_at = Instant::now();
                self.part_from(|counter| !is_running(counter.process.system_id()))?;
            }
            if !was_any {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Gives memory to processes that ask for it.
    fn welcome(&mut self) -> Result<()> {
        let first = self.all[0].memory.clone();
        while self.asked < first.control().children.load(Acquire) {
            let Some((system_id, forked_by)) = first.asking(self.asked) else { return Ok(()) };
            let origin = match forked_by {
                Some(parent) => Origin::Forked(parent),
                None => {
                    self.ran.extend(fs::read_link(format!("/proc/{system_id}/exe")));
                    // A forked process becomes the program, or one that has borrowed its parent's memory.
                    let was = self.number_of(system_id).or_else(|| self.number_of(parent_of(system_id)));
                    Origin::Executed(was.unwrap_or_default())
                }
            };
            // The same process, which has become another program, or one that has ended.
            let is_first = self.all[0].process.system_id() == system_id;
            self.all[0].process.has_ended |= is_first;
            self.part_from(|counter| counter.process.system_id() == system_id)?;
            let number = ProcessId(u32::try_from(self.asked + 1).unwrap_or(u32::MAX));
            let memory = Arc::new(Memory::like(&first)?);
            memory.control().process.store(system_id, Release);
            memory.control().number.store(number.0.into(), Release);
            let mut counter = Counter::new(memory.clone(), self.plan, self.output.clone(), (number, origin))?;
            counter.process.began_at = first.control().clock.load(Acquire);
            self.all.push(counter);
            self.memories.lock().unwrap_or_else(PoisonError::into_inner).push(memory.clone());
            first.give(self.asked, &memory);
            self.asked += 1;
        }
        Ok(())
    }

    /// The number of a process that is counted.
    fn number_of(&self, system_id: u64) -> Option<ProcessId> {
        let counter = self.all.iter().rfind(|counter| counter.process.system_id() == system_id);
        counter.map(|counter| counter.process.id)
    }

    /// Removes some processes, which have ended, and reads their logs to the end.
    fn part_from(&mut self, is_gone: impl Fn(&Counter<'_>) -> bool) -> Result<()> {
        // The first has the questions of all, and is kept.
        let is_gone = |counter: &Counter<'_>| counter.process.id != ProcessId(0) && is_gone(counter);
        let (gone, stay): (Vec<_>, Vec<_>) = std::mem::take(&mut self.all).into_iter().partition(is_gone);
        self.all = stay;
        for mut counter in gone {
            counter.process.has_ended = true;
            while counter.step(true)? {}
            let memory = counter.memory.clone();
            self.take_told(&memory);
            counter.finish(Vec::new())?;
            let mut memories = self.memories.lock().unwrap_or_else(PoisonError::into_inner);
            memories.retain(|other| !Arc::ptr_eq(other, &memory));
        }
        Ok(())
    }

    fn take_told(&mut self, memory: &Memory) {
        let programs = memory.told().into_iter().filter(|(kind, _)| *kind == note::EXEC);
        self.told.extend(programs.map(|(_, program)| program));
    }

    /// Writes the counts. `follows` when started programs were to be counted, too.
    pub(super) fn finish(mut self, follows: bool) -> Result<()> {
        let first = self.all.remove(0);
        for mut counter in std::mem::take(&mut self.all) {
            self.take_told(&counter.memory.clone());
            while counter.step(true)? {}
            counter.finish(Vec::new())?;
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
