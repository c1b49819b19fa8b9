//! Whole-process time of two variants, judged from blocks that hold both.

use crate::error::ProveError;
use crate::run::Variant;
use lineup_stats::paired::{PairedBlocks, RatioEstimate};
use lineup_stats::sequential::WidthStop;
use lineup_stats::summary::Summary;
use lineup_stats::verdict::{Judgement, judge};

/// One timed run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimedRun {
    /// Which variant.
    pub variant: Variant,
    /// The block it belongs to.
    pub block: u64,
    /// Its elapsed time.
    pub wall_ns: u64,
}

/// What the timed runs of two variants say.
#[derive(Clone, PartialEq, Debug)]
pub struct TimeChange {
    /// Elapsed time of the first variant's runs, in nanoseconds.
    pub before_ns: Summary,
    /// Elapsed time of the second variant's runs, in nanoseconds.
    pub after_ns: Summary,
    /// after ÷ before with its interval, valid under the stop that was used.
    pub estimate: RatioEstimate,
    /// The verdict.
    pub judgement: Judgement,
    /// The margin it was judged against, a share of the time.
    pub margin: f64,
    /// Every timed run in order.
    pub runs: Vec<TimedRun>,
}

/// Judges timed runs that form complete blocks.
///
/// # Errors
/// With fewer than two blocks, an incomplete block, or a run that took no time at all.
pub fn judge_runs(runs: Vec<TimedRun>, stop: &WidthStop, margin: f64) -> Result<TimeChange, ProveError> {
    let estimate = stop.estimate(&paired(&runs)?)?;
    let times = |variant| -> Vec<f64> {
        runs.iter().filter(|run| run.variant == variant).map(|run| run.wall_ns as f64).collect()
    };
    Ok(TimeChange {
        before_ns: Summary::of(&times(Variant::BEFORE))?,
        after_ns: Summary::of(&times(Variant::AFTER))?,
        estimate,
        judgement: judge(&estimate, margin),
        margin,
        runs,
    })
}

/// The runs block by block.
pub(crate) fn paired(runs: &[TimedRun]) -> Result<PairedBlocks, ProveError> {
    let mut blocks: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    let mut current = None;
    for run in runs {
        if current != Some(run.block) {
            current = Some(run.block);
            blocks.push((Vec::new(), Vec::new()));
        }
        if let Some((before, after)) = blocks.last_mut() {
            let side = if run.variant == Variant::BEFORE { before } else { after };
            side.push(run.wall_ns as f64);
        }
    }
    Ok(PairedBlocks::from_runs(&blocks)?)
}
