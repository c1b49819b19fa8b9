//! The processor's counts of lines from another core's cache, before and after data of threads were parted.

use super::plan::Plan;
use super::variant::{self, Variant};
use crate::terminal::progress::{Stages, collect_shown};
use anyhow::{Context, Result};
use lineup_model::figure;
use lineup_prove::compare::{ComparePlan, Comparison, Estimated, Stopped, judge_all};
use lineup_report::study::{Fact, NotObserved};
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::timing::ProcessRunner;
use lineup_study::{counters, other_caches};

/// Blocks of four runs: lines that come over are counted and not timed, so that few blocks suffice.
const BLOCKS: u64 = 5;

/// Counts whole runs of both variants, or returns the reason why nothing is counted.
///
/// # Errors
/// When it is interrupted.
pub(crate) fn compare(
    plan: &Plan,
    variants: [&Variant; 2],
    interrupts: &Interrupts,
    stages: &Stages,
) -> Result<Result<Fact, NotObserved>> {
    let Some(event) = other_caches::event() else {
        return Ok(Err(not_observed("no counter of this machine's processor is known that perf c2c needs")));
    };
    if let Err(absence) = counters::works(event) {
        let why = format!("the processor's counter {event}, which perf c2c needs, says {}", absence.words());
        return Ok(Err(not_observed(&why)));
    }
    stages.stage("counting lines that come from other caches");
    let mut runner = variant::counting(plan, variants, event, interrupts)?;
    let limits = ComparePlan {
        max_blocks: BLOCKS,
        max_time_ns: plan.proof.max_time_ns / 4,
        primary: event.into(),
        seed: plan.proof.seed,
        ..ComparePlan::default()
    };
    let counted = count(&mut runner, &limits, stages);
    interrupts.check()?;
    Ok(counted.map_err(|error| not_observed(&format!("{error:#}"))))
}

fn not_observed(why: &str) -> NotObserved {
    NotObserved { what: "lines that the hardware took from other caches".into(), consequence: why.into() }
}

/// Runs both variants in turn, and returns the counts.
fn count(runner: &mut ProcessRunner, plan: &ComparePlan, stages: &Stages) -> Result<Fact> {
    let collected = collect_shown(runner, plan, stages);
    if let Stopped::Failed(error) = collected.stopped {
        return Err(anyhow::Error::from_boxed(error));
    }
    in_words(&judge_all(&collected, plan)?).context("the processor did not count every run")
}

/// `None` when some run was not counted.
fn in_words(comparison: &Comparison) -> Option<Fact> {
    let metric = comparison.metrics.first()?;
    let means: Vec<f64> = metric.variants.iter().flatten().map(|values| values.summary.mean).collect();
    let [before, after] = means.as_slice() else { return None };
    let contrast = metric.contrasts.first()?;
    let difference = match &contrast.estimate {
        Estimated::Ratio { judged, .. } => {
            let (low, high) = (judged.interval.low, judged.interval.high);
            format!("{} [{}, {}]", figure::change(judged.ratio), figure::change(low), figure::change(high))
        }
        Estimated::Difference(difference) => {
            let (low, high) = (difference.interval.low, difference.interval.high);
            format!(
                "{} [{}, {}] in all",
                figure::grouped(difference.difference, 0),
                figure::grouped(low, 0),
                figure::grouped(high, 0)
            )
        }
    };
    let value = format!(
        "{} a run before, {} after, {difference}, over {} blocks: {} (event {}, whole runs, threads apart)",
        figure::grouped(*before, 0),
        figure::grouped(*after, 0),
        comparison.blocks,
        contrast.verdict,
        metric.name
    );
    Some(Fact { name: "lines from other caches, counted by the processor".into(), value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_prove::compare::collect;
    use lineup_prove::metric::{Absence, Observed, Reading, Unit};
    use lineup_prove::{RunResult, Slot, Variant};

    /// The message about runs with these counts.
    fn told(counted: impl Fn(&Slot) -> Observed) -> Option<String> {
        let mut runner = |slot: &Slot| {
            let reading = Reading { name: "r4d2".into(), unit: Unit::Events, observed: counted(slot) };
            Ok(RunResult { counters: vec![reading], ..RunResult::finished(0, b"", b"", 1_000_000) })
        };
        let plan = ComparePlan { max_blocks: 3, primary: "r4d2".into(), ..ComparePlan::default() };
        let comparison = judge_all(&collect(&mut runner, &plan), &plan).expect("a comparison");
        in_words(&comparison).map(|fact| fact.value)
    }

    #[test]
    fn both_variants_are_held_against_each_other() {
        // Its runs have the numbers 2 to 13 without the second's, 7.5 in the mean.
        let lines = |slot: &Slot| match slot.variant {
            Variant::BEFORE => Observed::Value(40_000.0 + slot.number as f64),
            _ => Observed::Value(400.0),
        };
        let told = told(lines).expect("counted");
        assert!(told.starts_with("40,008 a run before, 400 after, −99.00 % [−99.00 %, −99.00 %]"), "{told}");
        assert!(told.ends_with("over 3 blocks: changed (event r4d2, whole runs, threads apart)"), "{told}");
    }

    #[test]
    fn a_variant_from_which_no_line_comes_any_more_is_told_by_the_difference() {
        let lines = |slot: &Slot| match slot.variant {
            Variant::BEFORE => Observed::Value(1_000.0 + slot.number as f64),
            _ => Observed::Value(0.0),
        };
        let told = told(lines).expect("counted");
        assert!(
            told.contains("1,008 a run before, 0 after, −1,008 [") && told.contains("] in all"),
            "{told}"
        );
    }

    #[test]
    fn runs_that_were_not_counted_give_no_figure() {
        assert_eq!(told(|_| Observed::Absent(Absence::NotSupported)), None);
        let second = |slot: &Slot| match slot.variant {
            Variant::BEFORE => Observed::Value(1.0),
            _ => Observed::Absent(Absence::NotCounted),
        };
        assert_eq!(told(second), None);
    }
}
