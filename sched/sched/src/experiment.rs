//! Variants of a scenario, each run with the same seeds.

use crate::error::Error;
use crate::scenario::Scenario;
use crate::sim::{Outcome, Unobserved, simulate};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A named scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variant {
    /// Its name among the others, such as `R = 10`.
    pub name: String,
    /// The scenario to run.
    pub scenario: Scenario,
}

/// Runs every variant with every seed, on up to `threads` threads, and calls `progress` with the number of
/// runs done after each. The result has a row per variant and in it an outcome per seed, in their order; it
/// does not depend on the number of threads.
///
/// # Errors
/// The error of [`Scenario::check`] for a variant, before anything is run.
pub fn run(
    variants: &[Variant],
    seeds: &[u64],
    threads: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Vec<Outcome>>, Error> {
    variants.iter().try_for_each(|variant| variant.scenario.check())?;
    let runs: Vec<(&Scenario, u64)> = variants
        .iter()
        .flat_map(|variant| seeds.iter().map(move |&seed| (&variant.scenario, seed)))
        .collect();
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(runs.len()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((scenario, seed)) = runs.get(at) else { return };
            let result = simulate(scenario, *seed, &mut Unobserved);
            results.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((at, result));
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, runs.len().max(1)) {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    results.sort_by_key(|(at, _)| *at);
    let outcomes = results.into_iter().map(|(_, result)| result).collect::<Result<Vec<_>, _>>()?;
    Ok(outcomes.chunks(seeds.len().max(1)).map(<[Outcome]>::to_vec).collect())
}
