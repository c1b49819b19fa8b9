//! The figures' main results, in sentences.

use super::Calls;
use lineup_model::figure::{mean, share, whole};
use lineup_recording::Arm;
use lineup_stats::interval::IntervalEstimate;
use lineup_tail::analysis::{RegionAnalysis, RegionRun};
use lineup_tail::distribution::{Difference, Statistic};
use lineup_tail::{Metric, Run};

/// An estimate with its interval.
pub(super) fn estimate(found: &IntervalEstimate) -> String {
    format!("{} [{}, {}]", mean(found.value), mean(found.low), mean(found.high))
}

/// A coefficient with its interval.
pub(super) fn coefficient(found: &IntervalEstimate) -> String {
    let two = |value: f64| format!("{value:.2}").replace('-', "−");
    format!("{} [{}, {}]", two(found.value), two(found.low), two(found.high))
}

/// True when two runs were recorded with the same caches.
pub(super) fn same_caches(a: &Run, b: &Run) -> bool {
    a.facts.caches == b.facts.caches
}

/// The findings on one region, a sentence each, the run first.
pub fn findings(calls: &Calls<'_>, region: &RegionAnalysis) -> Vec<String> {
    let mut all = Vec::new();
    for run in &region.runs {
        let label = crate::visible::one_line(calls.label(run.run)).into_owned();
        let said = [spread(run, region.is_span), correlated(run), tail(run)].into_iter().flatten();
        all.extend(said.chain(arms(run)).map(|sentence| format!("{label}: {sentence}")));
    }
    all.extend(levels(calls, region));
    all
}

fn spread(run: &RegionRun, is_span: bool) -> Option<String> {
    let instructions = run.distribution(Metric::Instructions)?;
    let misses = run.distribution(Metric::CodeMissesL1)?;
    let cycles = run.distribution(Metric::Cycles)?;
    let of = |spread: Option<f64>| spread.map_or_else(|| "–".to_owned(), share);
    Some(format!(
        "instructions vary by {} (deviation ÷ mean), L1I misses by {}, cycles by {}: {} in the median, {} at most, over {} {}.",
        of(instructions.spread()),
        of(misses.spread()),
        of(cycles.spread()),
        mean(cycles.median),
        mean(cycles.max),
        whole(cycles.calls as u64),
        if is_span { "spans" } else { "calls" }
    ))
}

fn correlated(run: &RegionRun) -> Option<String> {
    let with = |metric| run.correlations.iter().find(|correlation| correlation.with == metric);
    let said = |metric: Metric| {
        with(metric).map_or_else(
            || format!("{} do not vary", metric.name()),
            |found| format!("{} {}", metric.name(), coefficient(&found.pearson)),
        )
    };
    with(Metric::CodeStallCycles)?;
    Some(format!(
        "cycles correlate with {}, {} and {} (Pearson, 95 % intervals).",
        said(Metric::CodeStallCycles),
        said(Metric::DataStallCycles),
        said(Metric::Instructions)
    ))
}

fn tail(run: &RegionRun) -> Option<String> {
    let tail = run.second_tail.as_ref()?;
    if tail.tail_calls == 0 {
        return Some(format!(
            "no call executes more than {} instructions: there is no second tail.",
            mean(tail.above_instructions)
        ));
    }
    let classes: Vec<String> = tail
        .classes
        .iter()
        .map(|class| {
            format!("{} in {} of {}", class.class.name(), class.tail_calls, of_calls(tail, class.class))
        })
        .collect();
    let ran = match (tail.kept_tail_calls, classes.is_empty()) {
        (0, true) => "what ran there was not kept".to_owned(),
        (_, true) => "what ran there belongs to no kind of work known by name".to_owned(),
        _ => format!("there ran {}", classes.join(", ")),
    };
    Some(format!(
        "a second tail: {} of {} calls execute more than {} instructions; {ran}.",
        tail.tail_calls,
        tail.tail_calls + tail.usual_calls,
        mean(tail.above_instructions)
    ))
}

/// Calls of the tail among which a kind of work was counted.
pub(super) fn of_calls(tail: &lineup_tail::second::SecondTail, class: lineup_tail::second::Class) -> usize {
    if class == lineup_tail::second::Class::Contention { tail.tail_calls } else { tail.kept_tail_calls }
}

fn found(differences: &[Difference], metric: Metric, statistic: Statistic) -> Option<&Difference> {
    differences.iter().find(|difference| difference.metric == metric && difference.statistic == statistic)
}

fn arms(run: &RegionRun) -> Vec<String> {
    let said = |arm: Arm| match arm {
        Arm::Untouched => "nothing before the call",
        Arm::InvalidatedCode => "emptying the L1I before the call",
        Arm::PrefetchedCode => "fetching its code before the call",
    };
    let sentence = |arms: &lineup_tail::analysis::ArmDifference| {
        let cycles = found(&arms.differences, Metric::Cycles, Statistic::Median)?;
        let mean_cycles = found(&arms.differences, Metric::Cycles, Statistic::Mean)?;
        Some(format!(
            "{} changes the median by {} cycles and the mean by {}, from {} and {}.",
            said(arms.to),
            estimate(&cycles.difference),
            estimate(&mean_cycles.difference),
            mean(cycles.first),
            mean(mean_cycles.first)
        ))
    };
    run.between_arms.iter().filter_map(sentence).collect()
}

/// Runs that differ in their caches from the first.
fn levels(calls: &Calls<'_>, region: &RegionAnalysis) -> Vec<String> {
    let sentence = |runs: &lineup_tail::analysis::RunDifference| {
        let (from, to) = (calls.runs.get(runs.from)?, calls.runs.get(runs.to)?);
        if same_caches(from, to) {
            return None;
        }
        let median = found(&runs.differences, Metric::Cycles, Statistic::Median)?;
        Some(format!(
            "{} ({}) against {} ({}): the median changes by {} cycles, from {}.",
            crate::visible::one_line(&to.facts.label),
            crate::visible::one_line(&to.facts.caches.join(" ")),
            crate::visible::one_line(&from.facts.label),
            crate::visible::one_line(&from.facts.caches.join(" ")),
            estimate(&median.difference),
            mean(median.first)
        ))
    };
    region.between_runs.iter().filter_map(sentence).collect()
}
