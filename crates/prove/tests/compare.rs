//! What a comparison says of programs whose behaviour is known.

use lineup_prove::compare::{
    ComparePlan, Comparison, Estimated, Stopped, collect, judge_all, replay_false_alarms,
};
use lineup_prove::metric::{Absence, Observed, Reading, Unit};
use lineup_prove::{RunResult, Slot};
use lineup_stats::random::Seed;
use lineup_stats::sequential::WidthStop;
use lineup_stats::synthetic::{Disturbance, SyntheticProgram};
use lineup_stats::verdict::Verdict;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// A runner over synthetic programs: variant 0 without, all others with the effect.
fn runner(effect: f64, disturbance: Disturbance) -> impl FnMut(&Slot) -> Result<RunResult, AnyError> {
    let mut program = SyntheticProgram::new(effect, disturbance, Seed(21));
    move |slot| {
        let seconds = program.run(slot.variant.0 > 0);
        let mut run = RunResult::finished(0, b"", b"", (seconds * 1e9) as u64);
        let reading = |name: &str, observed| Reading { name: name.into(), unit: Unit::Events, observed };
        run.counters = vec![
            reading("cycles", Observed::Absent(Absence::NotSupported)),
            reading("migrations", Observed::Value(0.0)),
            reading("instructions", Observed::Value(1000.0)),
        ];
        Ok(run)
    }
}

fn plan() -> ComparePlan {
    ComparePlan { max_blocks: 40, ..ComparePlan::default() }
}

fn compare(effect: f64, disturbance: Disturbance, plan: &ComparePlan) -> Comparison {
    judge_all(&collect(&mut runner(effect, disturbance), plan), plan).unwrap()
}

#[test]
fn a_change_and_none_are_told_apart() {
    let changed = compare(0.05, Disturbance::Plain, &plan());
    assert_eq!(changed.metrics[0].name, "elapsed");
    assert_eq!(changed.metrics[0].contrasts[0].verdict, Verdict::Changed);
    let same = compare(0.0, Disturbance::Plain, &plan());
    assert_eq!(same.metrics[0].contrasts[0].verdict, Verdict::Equivalent);
}

#[test]
fn absent_counters_stay_absent_and_constant_ones_are_equivalent() {
    let comparison = compare(0.05, Disturbance::Plain, &plan());
    let metric = |name: &str| comparison.metrics.iter().find(|metric| metric.name == name).unwrap();
    assert_eq!(metric("cycles").variants[0], Err(Absence::NotSupported));
    assert!(metric("cycles").contrasts.is_empty());
    assert!(matches!(metric("migrations").contrasts[0].estimate, Estimated::Difference(_)));
    assert_eq!(metric("migrations").contrasts[0].verdict, Verdict::Equivalent);
    assert_eq!(metric("instructions").contrasts[0].verdict, Verdict::Equivalent);
}

#[test]
fn the_stop_by_width_ends_early_and_with_the_width_asked_for() {
    let plan = ComparePlan {
        max_blocks: 200,
        stop: WidthStop { first_look: 10, target_width: 0.015, level: 0.95 },
        ..ComparePlan::default()
    };
    let collected = collect(&mut runner(0.0, Disturbance::Plain), &plan);
    assert!(matches!(collected.stopped, Stopped::Width));
    assert!(collected.blocks < 60);
    let comparison = judge_all(&collected, &plan).unwrap();
    let Estimated::Ratio { paired, .. } = &comparison.metrics[0].contrasts[0].estimate else {
        panic!("a ratio")
    };
    assert!(paired.interval.width() <= 0.015);
}

#[test]
fn several_variants_are_corrected_for() {
    let plan = ComparePlan { variants: 4, ..plan() };
    let comparison = compare(0.05, Disturbance::Plain, &plan);
    let contrasts = &comparison.metrics[0].contrasts;
    assert_eq!(contrasts.len(), 3);
    for contrast in contrasts {
        let Estimated::Ratio { judged, .. } = &contrast.estimate else { panic!("a ratio") };
        assert!(contrast.adjusted_p >= judged.p_value);
        assert_eq!(contrast.verdict, Verdict::Changed);
    }
}

#[test]
fn drift_is_flagged_and_does_not_pass_for_a_change() {
    let comparison = compare(0.0, Disturbance::Drift, &plan());
    let variant = comparison.metrics[0].variants[0].as_ref().unwrap();
    assert!(variant.series.unwrap().drifts());
    assert_ne!(comparison.metrics[0].contrasts[0].verdict, Verdict::Changed);
}

#[test]
fn a_run_that_fails_keeps_the_blocks_before_it() {
    let mut inner = runner(0.0, Disturbance::Plain);
    let mut failing = |slot: &Slot| if slot.number < 20 { inner(slot) } else { Err("cut short".into()) };
    let collected = collect(&mut failing, &plan());
    assert!(matches!(collected.stopped, Stopped::Failed(_)));
    assert_eq!(collected.blocks, 4);
    assert_eq!(collected.runs.len(), 16);
    assert!(judge_all(&collected, &plan()).is_ok());
}

#[test]
fn a_program_against_itself_raises_few_false_alarms_with_the_stop_on() {
    let plan = ComparePlan {
        max_blocks: 60,
        stop: WidthStop { first_look: 10, target_width: 0.015, level: 0.95 },
        ..ComparePlan::default()
    };
    let without_stop = ComparePlan { stop: WidthStop { target_width: 0.0, ..plan.stop }, ..plan.clone() };
    let collected = collect(&mut runner(0.0, Disturbance::TwoModes), &without_stop);
    let alarms = replay_false_alarms(&collected, &plan, 200).unwrap().unwrap();
    assert_eq!(alarms.replays, 200);
    assert!(alarms.rate() <= 0.05, "{}", alarms.rate());
}
