//! Interventions that empty the caches of code before calls, and the times of these calls.

use crate::timing::clock::Clock;
use lineup_recording::native::timed::Arm;
use lineup_study::recorder::{self, RecordedCode, Times};
use lineup_trace::tail::Sample;

/// The number of a run's calls that are emptied, where calls are to be alike,
pub(crate) const EMPTIED: u64 = 2000;

/// but at most one in this many on average.
pub(crate) const LEAST_EVERY: u64 = 2;

/// Flushes this code before some calls; `most_calls` is the number of calls of the most called function. The seed alone
/// decides which calls these are: programs that make the same calls get the same ones.
pub(crate) fn emptied(flushed: Vec<RecordedCode>, most_calls: u64, seed: u64) -> recorder::Interventions {
    recorder::Interventions {
        arms: vec![Arm::FlushCode],
        every: (most_calls / EMPTIED).max(LEAST_EVERY),
        rest: 0,
        seed,
        swept_bytes: 0,
        flushed,
    }
}

/// The number of calls of each region with an intervention before them, and the median of their times.
pub(crate) fn typical(times: &Times) -> Vec<(u64, Option<f64>)> {
    let clock = Clock::of(times);
    let one = |position| {
        let own = times.trials.iter().filter(|trial| trial.region == position);
        let sample: Sample = own.map(|trial| clock.ns(trial.cycles)).collect();
        (sample.len() as u64, sample.quantile(0.5))
    };
    (0..times.regions.len()).map(one).collect()
}
