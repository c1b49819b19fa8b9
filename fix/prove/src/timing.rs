//! Whole-process time of two variants, judged from blocks that hold both.

use crate::disturbance::Disturbance;
use crate::error::ProveError;
use crate::links::LinkPlan;
use crate::run::Variant;
use lineup_stats::paired::{PairedBlocks, RatioEstimate};
use lineup_stats::sequential::WidthStop;
use lineup_stats::summary::Summary;
use lineup_stats::verdict::{Judgement, Verdict, judge};
use std::collections::BTreeMap;

/// One timed run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimedRun {
    /// The variant.
    pub variant: Variant,
    /// The block it belongs to.
    pub block: u64,
    /// Its elapsed time.
    pub wall_ns: u64,
}

/// The change in time between the timed runs of two variants.
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
    /// The number of links of each variant they used.
    pub links: u64,
    /// The share of the spread of blocks that lies between links; `None` with one link, and where it cannot be
    /// estimated.
    pub link_share: Option<f64>,
    /// The time of the processors that other work had meanwhile; `None` where that was not observed.
    pub disturbance: Option<Disturbance>,
}

impl TimeChange {
    /// The time of runs that would show a change above the margin, in nanoseconds; `None` where the runs decided, and
    /// where no time would do as far as they show.
    pub fn needed_ns(&self) -> Option<f64> {
        let spent_ns: f64 = self.runs.iter().map(|run| run.wall_ns as f64).sum();
        let is_open = self.judgement.verdict == Verdict::Inconclusive;
        is_open.then(|| self.judgement.runs_to_show(self.margin)).flatten().map(|times| times * spent_ns)
    }
}

/// Judges timed runs that form complete blocks, over the links that these used.
///
/// # Errors
/// With fewer than two blocks, an incomplete block, or a run that took no time at all.
pub fn judge_runs(
    runs: Vec<TimedRun>,
    stop: &WidthStop,
    margin: f64,
    links: LinkPlan,
) -> Result<TimeChange, ProveError> {
    let estimate = stop.estimate(&paired(&runs, links)?)?;
    let blocks = paired(&runs, LinkPlan::ONE)?;
    let link_share = links.share(&blocks.log_ratios()?);
    let times = |variant| -> Vec<f64> {
        runs.iter().filter(|run| run.variant == variant).map(|run| run.wall_ns as f64).collect()
    };
    Ok(TimeChange {
        before_ns: Summary::of(&times(Variant::BEFORE))?,
        after_ns: Summary::of(&times(Variant::AFTER))?,
        estimate,
        judgement: judge(&estimate, margin).in_order(estimate.ratio, &blocks)?,
        margin,
        runs,
        links: links.links.min(blocks.len() as u64).max(1),
        link_share,
        disturbance: None,
    })
}

/// The runs block by block; where there are several links of each variant, link by link.
pub(crate) fn paired(runs: &[TimedRun], links: LinkPlan) -> Result<PairedBlocks, ProveError> {
    let mut groups: BTreeMap<u64, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for run in runs {
        let (before, after) = groups.entry(links.group(run.block)).or_default();
        let side = if run.variant == Variant::BEFORE { before } else { after };
        side.push(run.wall_ns as f64);
    }
    Ok(PairedBlocks::from_runs(&groups.into_values().collect::<Vec<_>>())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::link_of;
    use lineup_stats::random::Seed;

    const LINKS: LinkPlan = LinkPlan { links: 6, seed: Seed(4) };

    /// Blocks of a program that is compared with itself, where each link of it takes a time of its own.
    fn runs(blocks: u64) -> Vec<TimedRun> {
        let run = |block: u64, variant: Variant| {
            let link = link_of(block, LINKS.links, LINKS.seed);
            // The second variant's links are others: most of the first ones take longer than those.
            let time = [100_000, if link.is_multiple_of(3) { 103_000 } else { 95_000 + 100 * link }];
            TimedRun { variant, block, wall_ns: time[variant.0] }
        };
        let variants = [Variant::BEFORE, Variant::AFTER, Variant::AFTER, Variant::BEFORE];
        (0..blocks).flat_map(|block| variants.map(|variant| run(block, variant))).collect()
    }

    /// Repeated runs of the same links add no links.
    #[test]
    fn blocks_of_one_link_count_as_one() {
        let stop = WidthStop { first_look: 10, target_width: 0.0, level: 0.95 };
        let judged = |links| judge_runs(runs(60), &stop, 0.01, links).expect("a judgement");
        let over_links = judged(LINKS);
        assert_eq!((over_links.links, over_links.link_share), (6, Some(1.0)));
        assert_eq!(over_links.judgement.verdict, Verdict::Inconclusive);
        let as_one = judged(LinkPlan::ONE);
        assert_eq!((as_one.links, as_one.link_share), (1, None));
        assert_eq!(as_one.judgement.verdict, Verdict::Changed);
    }
}
