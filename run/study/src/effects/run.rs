//! An observed run, from its start to the files it left.

use super::error::EffectsError;
use super::observation::Observation;
use super::scene::Scene;
use super::snapshot::Snapshot;
use crate::error::{Doing, Error, Result};
use crate::process::child::{Finished, Streams, Waiting};
use crate::process::interrupt::Interrupts;
use crate::process::run::Run;
use lineup_prove::effects::{Content, ContentCollector, Effects, RepeatedEffects, Target};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

/// A run and its effects.
pub struct Observed {
    /// The run's end, and its output.
    pub finished: Finished,
    /// The run's effects.
    pub effects: Effects,
}

/// The kernel's list of actions for a system call that a filter selects.
const FILTER_ACTIONS: &str = "/proc/sys/kernel/seccomp/actions_avail";

/// Runs a program and observes its effects. With `is_folder_hidden` the path of its folder does not count where the
/// program writes it: the variant that this one is compared with runs in another folder.
///
/// The inner error says why this system cannot observe a run; the program did then not run.
///
/// # Errors
/// When the program cannot be run.
pub fn observe(
    run: &Run,
    is_folder_hidden: bool,
    interrupts: &Interrupts,
) -> Result<Result<Observed, EffectsError>> {
    let actions = std::fs::read_to_string(FILTER_ACTIONS).unwrap_or_default();
    if !actions.split_whitespace().any(|action| action == "trace") {
        return Ok(Err(EffectsError::Filter("filters that trace are not among its actions".into())));
    }
    let mut waiting = Waiting::start(run, Streams::Captured, interrupts)?;
    let [mut output, mut errors] = waiting
        .captured()
        .doing("opening the run's output")?
        .ok_or_else(|| Error::Start("the run's output is not kept".into()))?;
    let folder = match &run.directory {
        Some(folder) => folder.canonicalize().doing_with(|| folder.display().to_string())?,
        None => std::env::current_dir().doing("asking for the current folder")?,
    };
    let place = |file: &File| file.metadata().map(|about| (about.dev(), about.ino()));
    let places = place(&output).and_then(|output| Ok((output, place(&errors)?)));
    let (standard_output, standard_error) = places.doing("looking at the run's output")?;
    let scene = Scene { folder, is_folder_hidden, standard_output, standard_error };
    let hidden = scene.hidden().to_vec();
    let observation = match Observation::attach(waiting.pid(), scene) {
        Ok(observation) => observation,
        Err(error) => return Ok(Err(error)),
    };
    let started = Instant::now();
    waiting.release_observed()?;
    let finished = waiting.finish(started)?;
    let mut observer = match observation.finish() {
        Ok(observer) => observer,
        Err(error) => return Ok(Err(error)),
    };
    if finished.left_running > 0 {
        observer.note("what processes did that still ran when the first had ended, and were ended");
    }
    let read = |file: &mut File| content(file, &hidden).doing("reading the run's output");
    let outputs = [(Target::StandardOutput, read(&mut output)?), (Target::StandardError, read(&mut errors)?)];
    let effects = observer.finish(finished.ending, outputs);
    Ok(Ok(Observed { finished, effects }))
}

/// Observes two runs that start with the same files in the run's folder, and restores the folder afterwards. The
/// folder's path does not count where the program writes it.
///
/// # Errors
/// As [`observe`], and when the folder cannot be put back.
fn observe_twice(run: &Run, interrupts: &Interrupts) -> Result<Result<RepeatedEffects, EffectsError>> {
    let folder = run
        .directory
        .as_deref()
        .ok_or_else(|| Error::Start("a run that is repeated needs a folder of its own".into()))?;
    let cannot = || format!("cannot put {} back to what it was before a run", folder.display());
    let snapshot = Snapshot::take(folder).doing_with(cannot)?;
    let once = || -> Result<Result<Effects, EffectsError>> {
        let observed = observe(run, true, interrupts)?;
        snapshot.restore().doing_with(cannot)?;
        Ok(observed.map(|observed| observed.effects))
    };
    let first = match once()? {
        Ok(first) => first,
        Err(error) => return Ok(Err(error)),
    };
    Ok(once()?.map(|second| RepeatedEffects { first, others: vec![second] }))
}

/// Runs of each variant at most. Of 10,000 parts that take one of two values by chance, one is the same in so many runs
/// of one variant and the other one in all runs of the other variant in one comparison of 800.
const MOST_RUNS: usize = 12;

/// Observes two variants, each in two runs. If they differ, each runs twice more: effects that seemed constant from run
/// to run may have been so by chance. Both run more often while they differ in an effect of which other parts vary.
///
/// # Errors
/// When a program cannot be run, and when a folder cannot be put back.
pub fn observe_variants(
    before: &Run,
    after: &Run,
    interrupts: &Interrupts,
) -> Result<Result<[RepeatedEffects; 2], EffectsError>> {
    let (mut before_effects, mut after_effects) =
        match (observe_twice(before, interrupts)?, observe_twice(after, interrupts)?) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(error), _) | (_, Err(error)) => return Ok(Err(error)),
        };
    for runs in (2..MOST_RUNS).step_by(2) {
        match before_effects.agreement(&after_effects) {
            Ok(_) => break,
            Err(difference) if runs > 2 && !difference.varies => break,
            Err(_) => {}
        }
        for (run, effects) in [(before, &mut before_effects), (after, &mut after_effects)] {
            if let Ok(RepeatedEffects { first, others }) = observe_twice(run, interrupts)? {
                effects.others.extend(others.into_iter().chain([first]));
            }
        }
    }
    Ok(Ok([before_effects, after_effects]))
}

fn content(file: &mut File, hidden: &[u8]) -> io::Result<Content> {
    let mut collector = ContentCollector::new(hidden);
    let mut buffer = vec![0; 1 << 16];
    file.rewind()?;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(collector.finish()),
            count => collector.add(&buffer[..count]),
        }
    }
}
