//! Comparisons of programs whose behaviour is known.

use lineup_prove::compare::{
    ComparePlan, Comparison, Contrast, Estimated, Stopped, collect, judge_all, replay_false_alarms,
};
use lineup_prove::links::link_of;
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
    // Holm: the least p-value counts as often as there are variants against the first.
    let least = |of: &dyn Fn(&Contrast) -> f64| contrasts.iter().map(of).fold(1.0, f64::min);
    let unadjusted = least(&|contrast| match &contrast.estimate {
        Estimated::Ratio { judged, .. } => judged.p_value,
        Estimated::Difference(difference) => difference.p_value,
    });
    assert_eq!(least(&|contrast| contrast.adjusted_p), (3.0 * unadjusted).min(1.0));
}

#[test]
fn a_change_that_the_correction_takes_back_is_none() {
    // A change so small that it is seen at the 5 % level by itself, and not as one of nineteen.
    let alone = ComparePlan { max_blocks: 12, ..plan() };
    let among = ComparePlan { variants: 20, ..alone.clone() };
    let taken_back = (1..60u32).any(|tenths| {
        let comparison = compare(f64::from(tenths) / 1000.0, Disturbance::Plain, &among);
        comparison.metrics[0].contrasts.iter().any(|contrast| {
            let Estimated::Ratio { judged, .. } = &contrast.estimate else { panic!("a ratio") };
            let is_seen = !judged.interval.contains(1.0);
            assert!(contrast.verdict != Verdict::Changed || contrast.adjusted_p <= 0.05);
            is_seen && contrast.verdict != Verdict::Changed && contrast.adjusted_p > 0.05
        })
    });
    assert!(taken_back);
}

#[test]
fn a_difference_of_counts_is_held_against_the_margin_of_the_usual_count() {
    let counts = |room: f64| {
        let mut runner = move |slot: &Slot| {
            let mut run = RunResult::finished(0, b"", b"", 1_000_000 + slot.number % 7);
            // Zeros make it a difference; the usual count is 500, and the margin 5.
            let usual = if slot.block.is_some_and(|block| block % 2 == 0) { 0.0 } else { 1000.0 };
            let more = if slot.variant.0 > 0 { room } else { 0.0 };
            let observed = Observed::Value(usual + more + (slot.number % 3) as f64 / 10.0);
            run.counters = vec![Reading { name: "faults".into(), unit: Unit::Events, observed }];
            Ok(run)
        };
        let plan = plan();
        let comparison = judge_all(&collect(&mut runner, &plan), &plan).unwrap();
        let faults = comparison.metrics.iter().find(|metric| metric.name == "faults").unwrap();
        assert!(matches!(faults.contrasts[0].estimate, Estimated::Difference(_)));
        (faults.contrasts[0].within_margin, faults.contrasts[0].verdict)
    };
    assert_eq!(counts(0.0), (true, Verdict::Equivalent));
    assert_eq!(counts(2.0), (true, Verdict::Changed));
    assert_eq!(counts(20.0), (false, Verdict::Changed));
}

#[test]
fn a_noisy_program_against_itself_raises_some_alarms() {
    let collected = collect(&mut runner(0.0, Disturbance::Plain), &plan());
    let alarms = replay_false_alarms(&collected, &plan(), 400).unwrap().unwrap();
    assert!(alarms.alarms > 0 && alarms.rate() <= 0.08, "{alarms:?}");
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

#[test]
fn only_a_comparison_that_may_stop_early_pays_for_it() {
    let fixed = plan();
    let collected = collect(&mut runner(0.0, Disturbance::Plain), &fixed);
    // A width that no comparison reaches.
    let early = ComparePlan { stop: WidthStop { target_width: 1e-9, ..fixed.stop }, ..fixed.clone() };
    let width = |plan: &ComparePlan| {
        let comparison = judge_all(&collected, plan).unwrap();
        let Estimated::Ratio { paired, .. } = &comparison.metrics[0].contrasts[0].estimate else {
            panic!("a ratio")
        };
        paired.interval.width()
    };
    assert!(width(&fixed) < width(&early));
}

#[test]
fn each_variant_has_its_own_values() {
    let mut runner = |slot: &Slot| -> Result<RunResult, AnyError> {
        let wall_ns = 1_000 * (slot.variant.0 as u64 + 1) + slot.number % 3;
        Ok(RunResult::finished(0, b"", b"", wall_ns))
    };
    let comparison = judge_all(&collect(&mut runner, &plan()), &plan()).unwrap();
    let means = comparison.metrics[0].variants.iter().map(|variant| variant.as_ref().unwrap().summary.mean);
    let means: Vec<u64> = means.map(|mean| mean as u64 / 1_000).collect();
    assert_eq!(means, [1, 2]);
}

/// The number of 200 comparisons of a program with itself that say "changed". The cost varies between its links by 2 %,
/// and between runs by 1 %.
fn alarms(links: u64, blocks: u64) -> usize {
    let about = |seed: Seed, spread: f64| {
        // The sum of twelve even lots is nearly normal.
        let sum: f64 = (0..12).map(|lot| seed.part(lot).0 as f64 / u64::MAX as f64).sum();
        1.0 + spread * (sum - 6.0)
    };
    let is_changed = |trial: &u64| {
        let seed = Seed(1000 + trial);
        let plan = ComparePlan { max_blocks: blocks, links, seed, ..plan() };
        let mut runner = |slot: &Slot| {
            let link = slot.block.map_or(0, |block| link_of(block, links, seed));
            let of_link = about(seed.part(7 + 1000 * link + slot.variant.0 as u64), 0.02);
            let of_run = about(Seed(!seed.0).part(slot.number), 0.01);
            Ok(RunResult::finished(0, b"", b"", (1e7 * of_link * of_run) as u64))
        };
        let judged = judge_all(&collect(&mut runner, &plan), &plan).expect("a verdict");
        assert_eq!(judged.links, links);
        let elapsed = judged.metrics.iter().find(|metric| metric.name == "elapsed").expect("the metric");
        elapsed.contrasts[0].verdict == Verdict::Changed
    };
    (0..200).filter(is_changed).count()
}

#[test]
fn a_program_beside_itself_is_changed_of_one_link_and_hardly_ever_over_several() {
    assert!(alarms(1, 24) > 100, "links of one program differ by more than runs");
    for (links, blocks) in [(6, 24), (12, 24), (20, 20)] {
        let alarms = alarms(links, blocks);
        assert!(alarms <= 18, "{alarms} of 200 with {links} links");
        println!("{alarms} of 200 with {links} links");
    }
}
