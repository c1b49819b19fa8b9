//! The time that calls of the regions take, compared between two variants: a gain of two per cent in a function that is
//! a tenth of the run is two thousandths of the program's time, and seen only there.

use crate::error::ProveError;
use crate::links::LinkPlan;
use crate::proof::ProofPlan;
use crate::proven::{Evidence, Proven};
use crate::run::Slot;
use crate::schedule::{Order, Schedule};
use crate::timing::{TimeChange, TimedRun, judge_runs, paired};
use lineup_model::region::RegionId;
use lineup_stats::sequential::WidthStop;

/// The time of one region's calls in one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionTotal {
    /// The region.
    pub id: RegionId,
    /// Calls that were timed.
    pub calls: u64,
    /// Their total time, in nanoseconds.
    pub total_ns: u64,
}

/// The time of one region's calls in both variants.
#[derive(Clone, PartialEq, Debug)]
pub struct RegionTime {
    /// The region.
    pub id: RegionId,
    /// Calls in each run.
    pub calls: u64,
    /// The comparison; its times are those of all calls of a run. With several regions the intervals are so wide that
    /// all of them hold together at the plan's level.
    pub change: TimeChange,
}

/// A run in which calls were timed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimedCalls {
    /// By region, in the same order in every run.
    pub totals: Vec<RegionTotal>,
    /// All that the run took, its start and end included.
    pub spent_ns: u64,
}

/// Times the calls in one run of one variant, or says why that cannot be.
pub type CallTimer<'t> =
    dyn FnMut(&Slot) -> Result<TimedCalls, Box<dyn std::error::Error + Send + Sync>> + 't;

/// Times the calls of the regions in mirrored blocks of runs, until all intervals are narrow enough or the plan's
/// limits are reached. Every run has to make as many calls of a region as the first.
///
/// # Errors
/// When a run fails, when a region takes no time at all, and when runs make other calls than the first.
pub fn compare_regions(
    timer: &mut CallTimer<'_>,
    plan: &ProofPlan,
) -> Result<Proven<Vec<RegionTime>>, ProveError> {
    let mut schedule = Schedule::new(2, Order::Mirrored, plan.seed);
    let mut session = Session { timer, regions: None, runs: 0, spent_ns: 0 };
    for slot in schedule.warm_up(1) {
        session.run(&slot)?;
    }
    session.spent_ns = 0;
    let mut timed: Vec<Vec<TimedRun>> = vec![Vec::new(); session.regions.iter().flatten().count()];
    let stop = together(plan.stop, timed.len());
    let mut blocks = 0;
    while blocks < plan.max_blocks.max(2) && !(blocks >= 3 && session.spent_ns >= plan.max_time_ns) {
        for slot in schedule.block() {
            for (runs, total) in timed.iter_mut().zip(session.run(&slot)?) {
                runs.push(TimedRun { variant: slot.variant, block: blocks, wall_ns: total.total_ns });
            }
        }
        blocks += 1;
        if timed
            .iter()
            .map(|runs| is_narrow(runs, &stop))
            .collect::<Result<Vec<_>, _>>()?
            .iter()
            .all(|is| *is)
        {
            break;
        }
    }
    let evidence = Evidence { runs: session.runs, blocks };
    let judged = session.regions.into_iter().flatten().zip(timed).map(|(first, runs)| {
        let change = judge_runs(runs, &stop, plan.margin, LinkPlan::ONE)?;
        Ok(RegionTime { id: first.id, calls: first.calls, change })
    });
    Ok(Proven::new(judged.collect::<Result<_, ProveError>>()?, evidence))
}

/// A stop whose intervals hold together at its level (Bonferroni).
fn together(stop: WidthStop, regions: usize) -> WidthStop {
    WidthStop { level: 1.0 - (1.0 - stop.level) / regions.max(1) as f64, ..stop }
}

fn is_narrow(runs: &[TimedRun], stop: &WidthStop) -> Result<bool, ProveError> {
    Ok(stop.is_reached(&paired(runs, LinkPlan::ONE)?)?)
}

/// A comparison under way.
struct Session<'s, 't> {
    timer: &'s mut CallTimer<'t>,
    /// The totals of the first run: every other has to make as many calls.
    regions: Option<Vec<RegionTotal>>,
    runs: u64,
    spent_ns: u64,
}

impl Session<'_, '_> {
    fn run(&mut self, slot: &Slot) -> Result<Vec<RegionTotal>, ProveError> {
        let variant = slot.variant;
        let run = (self.timer)(slot).map_err(|source| ProveError::Run { variant, source })?;
        self.runs += 1;
        self.spent_ns = self.spent_ns.saturating_add(run.spent_ns);
        let calls = |totals: &[RegionTotal]| -> Vec<(RegionId, u64)> {
            totals.iter().map(|total| (total.id, total.calls)).collect()
        };
        let first = self.regions.get_or_insert_with(|| run.totals.clone());
        match calls(first) == calls(&run.totals) {
            true => Ok(run.totals),
            false => Err(ProveError::Differs { difference: "runs make other numbers of calls".into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Variant;
    use lineup_stats::verdict::Verdict;

    /// Runs whose second variant takes this share of the first one's time in the second of two regions.
    fn compare(share: f64, calls: impl Fn(&Slot) -> u64) -> Result<Proven<Vec<RegionTime>>, ProveError> {
        let mut timer = |slot: &Slot| {
            let noise = slot.number % 5;
            let second = if slot.variant == Variant::AFTER { (1e6 * share) as u64 } else { 1_000_000 };
            let total = |id, total_ns| RegionTotal { id: RegionId(id), calls: calls(slot), total_ns };
            Ok(TimedCalls {
                totals: vec![total(0, 2_000_000 + noise), total(1, second + noise)],
                spent_ns: 1,
            })
        };
        compare_regions(&mut timer, &ProofPlan::default())
    }

    #[test]
    fn a_gain_in_one_region_is_told_of_that_region() {
        let proven = compare(0.98, |_| 70).expect("a comparison");
        let [same, less] = proven.value().as_slice() else { panic!("{proven:?}") };
        assert_eq!((same.calls, same.change.judgement.verdict), (70, Verdict::Equivalent));
        assert_eq!(less.change.judgement.verdict, Verdict::Changed);
        assert!((less.change.estimate.ratio - 0.98).abs() < 0.001, "{:?}", less.change.estimate);
        assert!((less.change.estimate.interval.level - 0.975).abs() < 1e-9, "two regions share the level");
    }

    #[test]
    fn runs_with_other_calls_are_not_compared() {
        let error = compare(1.0, |slot| 70 + slot.number / 3).expect_err("other calls");
        assert!(matches!(error, ProveError::Differs { .. }), "{error}");
    }
}
