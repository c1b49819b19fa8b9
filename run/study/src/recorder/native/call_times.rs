//! Timing calls natively: only their beginnings and ends are observed.

use super::requirements::{find, refuse};
use super::task::Task;
use crate::error::{Error, Result};
use crate::process::child::Finished;
use crate::process::interrupt::Interrupts;
use crate::recorder::first_plan;
use crate::recorder::native::followers::Followers;
use crate::recorder::native::shared_memory::{Memory, Trial};
use crate::recorder::native::timed_region::{TimedRegion, sums};
use crate::recorder::regions;
use crate::recorder::request::{Interventions, RecordRequest};
use crate::recorder::subject::Subject;
use lineup_recording::native::{Refusal, timed};
use lineup_recording::plan::Plan;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

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
    /// The program's end; `None` when a signal cut the timing short.
    pub finished: Option<Finished>,
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
    let (header, mut notes) = first_plan::header(request, subject)?;
    let plan = first_plan::plan(header, subject)?;
    let memory = Arc::new(Memory::new()?);
    memory.control().mode.store(timed::MODE, Release);
    if let Some(interventions) = &request.interventions {
        intervene(&memory, interventions);
    }
    let is_elsewhere = plan.header.regions.iter().any(|(_, region)| region.entries.is_empty());
    memory.control().looks_for_more.store(u64::from(is_elsewhere), Release);
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
    // Calls until an interruption have their times.
    let finished = match interrupts.check() {
        Ok(()) => Some(finished?),
        Err(_) => None,
    };
    followed?;
    if memory.control().state.load(Acquire) == 0 {
        interrupts.check()?;
        return refuse(format!("{} did not load what times its calls", subject.program().display()));
    }
    let found = followers.found();
    if let Some((_, region)) = plan.header.regions.iter().find(|(id, _)| !found.contains(&id.0)) {
        interrupts.check()?;
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
        interrupts.check()?;
        let regions = plan.header.regions.iter().map(|(_, region)| region);
        let elsewhere = followers.first().process.elsewhere(&request.run.command);
        return Err(regions::never_called(
            regions,
            subject,
            finished.and_then(|finished| finished.stopped),
            elsewhere,
        ));
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
        added_cycles: memory.control().cycles_added.load(Acquire) as f64 / 1000.0,
        cycles_per_second: memory.control().cycles.load(Acquire) as f64 * 1e9
            / memory.control().nanoseconds.load(Acquire).max(1) as f64,
        begun_at: memory.control().begun_at.load(Acquire),
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
    memory.control().arms.store(arms, Release);
    memory.control().drawn_every.store(interventions.every, Release);
    memory.control().seed.store(interventions.seed, Release);
    memory.control().swept_bytes.store(interventions.swept_bytes, Release);
    memory.control().rest.store(interventions.rest, Release);
}
