//! Timing calls natively: only their beginnings and ends are observed.

use super::{Task, find, refuse};
use crate::error::{Error, Result};
use crate::process::child::Finished;
use crate::process::interrupt::Interrupts;
use crate::recorder;
use crate::recorder::native::followers::Followers;
use crate::recorder::native::shared_memory::Memory;
use crate::recorder::{Interventions, RecordRequest, Subject, regions};
use lineup_recording::native::timed::{Arm, trial};
use lineup_recording::native::{Refusal, chunk, timed, word};
use lineup_recording::plan::Plan;
use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The times of one region's calls, in cycles of the processor's counter.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TimedRegion {
    /// Its name.
    pub name: String,
    /// Calls by cycles, as a trace's histogram counts them.
    pub buckets: Vec<u64>,
    /// Cycles of all calls.
    pub sum: u64,
    /// Cycles of the longest.
    pub most: u64,
    /// Calls that were left by an exception or a jump, or had not ended when the program did: they have no time.
    pub left: u64,
    /// Calls inside a call of the same region: they are part of its time.
    pub inner: u64,
    /// Calls that ended with a jump to another function: their time is up to there.
    pub jumped: u64,
    /// Calls that took longer than any before them on their thread, in order.
    pub marks: Vec<Mark>,
    /// Sampled calls, before which an intervention may have been made. Only `left` counts them too.
    pub drawn: u64,
    /// Cycles of the interventions before them.
    pub spent: u64,
}

/// A sampled call that returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trial {
    /// The position of its region.
    pub region: usize,
    /// The intervention before it.
    pub arm: Arm,
    /// Its duration in cycles.
    pub cycles: u64,
}

impl Trial {
    /// Decodes the engine's words; `None` when they are not whole.
    pub(super) fn read(tag: u64, cycles: u64) -> Option<Trial> {
        let arm = Arm::of_number(tag & 0xff)?;
        let region = (tag & u64::from(u32::MAX)) >> trial::REGION_AT;
        (tag >> trial::IS_WRITTEN_AT == 1).then_some(Trial { region: region as usize, arm, cycles })
    }
}

/// A call that took longer than any before it on its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// When it began, by the counter.
    pub begun_at: u64,
    /// Its duration in cycles.
    pub cycles: u64,
    /// The processor that it ended on, when that reports its number.
    pub processor: Option<u32>,
}

/// The result of timing calls.
pub struct Times {
    /// By region.
    pub regions: Vec<TimedRegion>,
    /// Sampled calls.
    pub trials: Vec<Trial>,
    /// Calls of an empty function: the part of each time that the stamps themselves take.
    pub stamps: TimedRegion,
    /// The program's added time for each call, in cycles.
    pub added_cycles: f64,
    /// Cycles in a second.
    pub cycles_per_second: f64,
    /// The counter when the program began.
    pub begun_at: u64,
    /// Processes whose calls were timed.
    pub processes: u64,
    /// The program's running time.
    pub elapsed: Duration,
    /// The program's end.
    pub finished: Finished,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Runs a program and times calls of its functions. Only these parts of the request count: its run, its regions,
/// `stop_after`, whether children are followed, and the streams.
///
/// # Errors
/// When a function cannot be timed, and when none was called.
pub fn time(request: &RecordRequest, subject: &Subject, interrupts: &Interrupts) -> Result<Times> {
    conduct(request, subject, interrupts).map_err(|error| match error {
        // There is no other way to do it.
        Error::Unfit { why, .. } => Error::Start(why),
        other => other,
    })
}

fn conduct(request: &RecordRequest, subject: &Subject, interrupts: &Interrupts) -> Result<Times> {
    let engine = find(request, subject)?;
    if request.regions.len() > timed::STAMPS {
        return Err(Error::Start(format!("{} functions are timed at most", timed::STAMPS)));
    }
    let (header, mut notes) = recorder::header(request, subject)?;
    let plan = recorder::plan(header, subject)?;
    let memory = Arc::new(Memory::new()?);
    memory.set(word::MODE, timed::MODE);
    if let Some(interventions) = &request.interventions {
        intervene(&memory, interventions);
    }
    let is_elsewhere = plan.header.regions.iter().any(|(_, region)| region.entries.is_empty());
    memory.set(word::LOOKS_FOR_MORE, u64::from(is_elsewhere));
    let task = Task { request, subject, engine: &engine, plan: &plan, output: Path::new("") };
    let mut followers = Followers::new(&memory, &plan, task.output);
    let flushed = request.interventions.iter().flat_map(|interventions| interventions.flushed.iter());
    followers.are_timed(flushed.cloned().collect());
    let lives = followers.lives.clone();
    let lives = || lives.lock().unwrap_or_else(PoisonError::into_inner);
    let made = |number: usize| {
        let times = lives().times(number);
        times.buckets.iter().sum::<u64>() + times.drawn
    };
    let begun = Instant::now();
    let (finished, followed) = task.conduct(&memory, &mut followers, &made, interrupts)?;
    let elapsed = begun.elapsed();
    // The reason why the reading of the log ended says more than the engine, which got no answer then.
    if let (Ok(()), Some(refused)) = (&followed, lives().refused(&plan)) {
        return Err(Error::Start(with_next_step(refused, &plan, &request.run.command)));
    }
    interrupts.check()?;
    let finished = finished?;
    followed?;
    if memory.word(word::STATE) == 0 {
        return refuse(format!("{} did not load what times its calls", subject.program().display()));
    }
    let found = followers.found();
    if let Some((_, region)) = plan.header.regions.iter().find(|(id, _)| !found.contains(&id.0)) {
        regions::check_known(&region.name, subject.debug())?;
        if request.children {
            regions::check_all_followed(&region.name, &followers.unfollowed(), subject)?;
        }
        let why = format!("no file that the program mapped has a function {}", region.name);
        return Err(regions::unreachable(&plan.header.regions, subject).unwrap_or(Error::Region(why)));
    }
    let named = |(number, (_, region)): (usize, (_, &lineup_model::region::Region))| TimedRegion {
        name: region.name.clone(),
        ..lives().times(number)
    };
    let regions: Vec<TimedRegion> = plan.header.regions.iter().enumerate().map(named).collect();
    let trials = lives().trials();
    if trials.is_empty() && regions.iter().all(|region| region.buckets.iter().all(|count| *count == 0)) {
        return Err(regions::never_called(plan.header.regions.iter().map(|(_, region)| region)));
    }
    notes.extend(lives().said());
    notes.append(&mut followers.first().notes);
    if request.children {
        notes.extend(
            followers
                .unfollowed()
                .into_iter()
                .map(|program| format!("calls in {} were not timed: it {}", program.program, program.why)),
        );
    }
    Ok(Times {
        regions,
        trials,
        stamps: sums(&memory, timed::STAMPS),
        added_cycles: memory.word(word::CYCLES_ADDED) as f64 / 1000.0,
        cycles_per_second: memory.word(word::CYCLES) as f64 * 1e9
            / memory.word(word::NANOSECONDS).max(1) as f64,
        begun_at: memory.word(word::BEGUN_AT),
        processes: followers.processes(),
        elapsed,
        finished,
        notes,
    })
}

/// The refusal of a function, with the alternative that works for it.
fn with_next_step(refused: String, plan: &Plan, command: &[OsString]) -> String {
    let is_for = |refusal: &Refusal| Refusal::of(refusal.answer()).is_some_and(|why| refused.ends_with(why));
    let has_no_room =
        [Refusal::TooShort, Refusal::Ends, Refusal::JumpedTo, Refusal::CannotMove].iter().any(is_for);
    let regions = plan.header.regions.iter().map(|(_, region)| region.name.as_str());
    let name =
        regions.filter(|name| refused.contains(&format!("watch {name}:"))).max_by_key(|name| name.len());
    let command: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let Some(name) = name.filter(|_| has_no_room || is_for(&Refusal::Unclear)) else { return refused };
    let room = match has_no_room {
        true => "small functions have room when they are compiled with `-O2 -falign-functions=16`, and ",
        false => "",
    };
    format!(
        "{refused}; {room}`lineup record --region {} -- {}` counts the instructions of its calls as they are",
        shell_words::quote(name),
        shell_words::join(command)
    )
}

/// Sends the engine the interventions before calls.
fn intervene(memory: &Memory, interventions: &Interventions) {
    let arms = interventions.arms.iter().fold(0, |arms, arm| arms | 1 << arm.number());
    memory.set(word::ARMS, arms);
    memory.set(word::DRAWN_EVERY, interventions.every);
    memory.set(word::SEED, interventions.seed);
    memory.set(word::SWEPT_BYTES, interventions.swept_bytes);
    memory.set(word::REST, interventions.rest);
}

/// The summary's notes, in words.
pub(super) fn said(memory: &Memory) -> Vec<String> {
    let count = |number, what: &str| {
        Some(memory.word(number)).filter(|count| *count > 0).map(|count| format!("{what}: {count}"))
    };
    let forked = count(word::FORKED, "processes that were forked off, whose calls are not timed");
    let passed =
        count(word::PASSED_OVER, "threads whose calls are not timed, since there were too many at a time");
    forked.into_iter().chain(passed).chain(memory.notes()).collect()
}

impl TimedRegion {
    /// These calls and others of the same region.
    pub(super) fn and(mut self, other: TimedRegion) -> TimedRegion {
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(sum, count)| *sum += count);
        self.sum = self.sum.saturating_add(other.sum);
        self.most = self.most.max(other.most);
        self.left += other.left;
        self.inner += other.inner;
        self.jumped += other.jumped;
        self.marks.extend(other.marks);
        self.marks.sort_by_key(|mark| mark.begun_at);
        self.drawn += other.drawn;
        self.spent = self.spent.saturating_add(other.spent);
        self
    }
}

/// One region's words, of all threads of a process.
pub(super) fn sums(memory: &Memory, region: usize) -> TimedRegion {
    let mut sum = TimedRegion { buckets: vec![0; timed::BUCKETS], ..TimedRegion::default() };
    let field = |table: &[u64], number: usize| table.get(number).copied().unwrap_or_default();
    for number in 0..chunk::COUNT {
        let table = memory.times(number, region);
        if table.iter().all(|word| *word == 0) {
            continue;
        }
        for (count, bucket) in sum.buckets.iter_mut().zip(timed::FIRST_BUCKET..) {
            *count += field(&table, bucket);
        }
        sum.sum = sum.sum.saturating_add(field(&table, timed::SUM));
        sum.most = sum.most.max(field(&table, timed::MOST));
        sum.left += field(&table, timed::LEFT) + field(&table, timed::OPEN);
        sum.inner += field(&table, timed::INNER);
        sum.jumped += field(&table, timed::JUMPED);
        sum.drawn += field(&table, timed::DRAWN);
        sum.spent = sum.spent.saturating_add(field(&table, timed::SPENT));
        sum.marks.extend(latest(field(&table, timed::MARKS)).map(|mark| {
            let word = |number| field(&table, timed::FIRST_MARK + timed::MARK_WORDS * mark + number);
            // The system keeps the processor's number in the lower twelve bits.
            let processor = Some(word(2)).filter(|word| *word != u64::MAX).map(|word| word as u32 & 0xfff);
            Mark { begun_at: word(0), cycles: word(1), processor }
        }));
        // Marks that turned out to be inside another call were taken out.
        sum.marks.retain(|mark| mark.begun_at != 0);
    }
    sum.marks.sort_by_key(|mark| mark.begun_at);
    sum
}

/// The places of marks that are there.
fn latest(made: u64) -> Range<usize> {
    0..usize::try_from(made).unwrap_or(usize::MAX).min(timed::MOST_MARKS)
}
