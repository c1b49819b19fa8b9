//! The page's sections on a region.

use super::findings::{coefficient, same_caches};
use super::tables::{self, label};
use super::{Calls, high_water_listing};
use crate::distributions::{Series, of_all, overlay, rescaled, scattergram};
use lineup_model::figure::{mean_or_unknown, share, whole};
use lineup_recording::Arm;
use lineup_tail::analysis::{RegionAnalysis, RegionRun};
use lineup_tail::distribution::values;
use lineup_tail::run::of_arm;
use lineup_tail::{Measured, Metric};
use maud::{Markup, html};

/// Calls of a region in a run, of one arm.
fn calls_of<'a>(calls: &Calls<'a>, region: &RegionAnalysis, run: usize, arm: Arm) -> Vec<&'a Measured> {
    let of_run = |run: &'a lineup_tail::Run| Some(of_arm(run, run.region(&region.name)?, arm));
    calls.runs.get(run).and_then(of_run).unwrap_or_default()
}

fn series(
    calls: &Calls<'_>,
    region: &RegionAnalysis,
    run: usize,
    arm: Arm,
    metric: Metric,
    label: String,
) -> Series {
    let found = calls_of(calls, region, run, arm);
    let what = if region.is_span { "spans" } else { "calls" };
    Series::of_each(
        format!("{label}, {} {what}", whole(found.len() as u64)),
        values(metric, found.into_iter()),
    )
}

/// True when something was done to the caches before calls of a run.
fn was_tried(calls: &Calls<'_>, run: usize) -> bool {
    calls.runs.get(run).is_some_and(|run| run.measured.iter().any(|measured| measured.arm != Arm::Untouched))
}

/// Runs that differ only in the guest's work: with the first's caches and no interventions before calls; all runs when
/// each had interventions.
fn loads<'r>(calls: &Calls<'_>, region: &'r RegionAnalysis) -> Vec<&'r RegionRun> {
    let first = calls.runs.first();
    let is_alike = |run: &&RegionRun| {
        first.zip(calls.runs.get(run.run)).is_some_and(|(first, run)| same_caches(first, run))
    };
    let plain: Vec<&RegionRun> =
        region.runs.iter().filter(is_alike).filter(|run| !was_tried(calls, run.run)).collect();
    if plain.is_empty() { region.runs.iter().filter(is_alike).collect() } else { plain }
}

/// One series for each load, of the calls that nothing was done to.
fn per_load(calls: &Calls<'_>, region: &RegionAnalysis, loads: &[&RegionRun], metric: Metric) -> Vec<Series> {
    let of = |run: &&RegionRun| series(calls, region, run.run, Arm::Untouched, metric, label(calls, run.run));
    loads.iter().map(of).collect()
}

pub(super) fn distributions(calls: &Calls<'_>, region: &RegionAnalysis) -> Markup {
    let loads = loads(calls, region);
    let metrics = [Metric::Instructions, Metric::CodeMissesL1, Metric::CodeStallCycles, Metric::Cycles];
    html! {
        @for metric in metrics { (overlay(&capital(metric.name()), &format!("{} per call", metric.name()), &per_load(calls, region, &loads, metric))) }
        (tables::distributions(calls, &loads))
        @for run in loads.iter().filter(|run| run.modes.len() > 1) {
            h4 { (label(calls, run.run)) ": the cycles fall into " (run.modes.len()) " groups" }
            (tables::modes(run))
        }
    }
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

pub(super) fn scattergrams(calls: &Calls<'_>, region: &RegionAnalysis) -> Markup {
    let plain = || region.runs.iter().filter(|run| !was_tried(calls, run.run) || region.runs.len() == 1);
    let pairs = [
        (Metric::Cycles, Metric::CodeStallCycles),
        (Metric::Cycles, Metric::Instructions),
        (Metric::Instructions, Metric::CodeStallCycles),
    ];
    let one = |run: &RegionRun, across: Metric, up: Metric| {
        let found = calls_of(calls, region, run.run, Arm::Untouched);
        let (x, y) = (values(across, found.iter().copied()), values(up, found.iter().copied()));
        let with =
            run.correlations.iter().find(|correlation| across == Metric::Cycles && correlation.with == up);
        let said = match with {
            Some(found) => format!(
                "Pearson {}, Spearman {}; {} calls",
                coefficient(&found.pearson),
                coefficient(&found.spearman),
                found.calls
            ),
            None => format!("{} calls", found.len()),
        };
        let what = format!("{}: {} against {}", label(calls, run.run), up.name(), across.name());
        scattergram(&what, across.name(), up.name(), &said, &x.into_iter().zip(y).collect::<Vec<_>>())
    };
    html! {
        @for (across, up) in pairs { div.pair { @for run in plain() { (one(run, across, up)) } } }
        (tables::correlations(calls, region))
    }
}

/// Calls by the intervention before them; `None` when no run had any.
pub(super) fn interventions(calls: &Calls<'_>, region: &RegionAnalysis) -> Option<Markup> {
    let tried: Vec<&RegionRun> = region.runs.iter().filter(|run| run.arms.len() > 1).collect();
    let of = |run: &RegionRun, metric: Metric| -> Vec<(Series, f64)> {
        let arm = |arm: &lineup_tail::analysis::ArmCalls| {
            let found = arm.distributions.iter().find(|distribution| distribution.metric == metric);
            let peak = found.map_or(0.0, |found| if found.peak > 0.0 { found.peak } else { found.median });
            (series(calls, region, run.run, arm.arm, metric, arm.arm.name().to_owned()), peak)
        };
        run.arms.iter().map(arm).collect()
    };
    let plain = |all: Vec<(Series, f64)>| all.into_iter().map(|(series, _)| series).collect::<Vec<_>>();
    (!tried.is_empty()).then(|| html! { @for run in tried {
        h4 { (label(calls, run.run)) }
        @for metric in [Metric::Cycles, Metric::CodeStallCycles, Metric::CodeMissesL1] {
            (overlay(&capital(metric.name()), &format!("{} per call", metric.name()), &plain(of(run, metric))))
        }
        @for metric in [Metric::Cycles, Metric::CodeStallCycles] {
            (rescaled(&format!("{}, rescaled so that the peaks coincide", capital(metric.name())), &of(run, metric)))
        }
        (tables::distributions(calls, &[run]))
        @for arms in &run.between_arms {
            h4 { (capital(arms.to.name())) " against " (arms.from.name()) }
            (tables::differences(&format!("{} less {}", arms.to.name(), arms.from.name()), arms.from.name(), &arms.differences))
        }
    } })
}

/// Runs with other caches than the one they are compared with; `None` when there are no such runs.
pub(super) fn levels(calls: &Calls<'_>, region: &RegionAnalysis) -> Option<Markup> {
    let runs = |from: usize, to: usize| calls.runs.get(from).zip(calls.runs.get(to));
    let other: Vec<_> = region
        .between_runs
        .iter()
        .filter(|pair| runs(pair.from, pair.to).is_some_and(|(from, to)| !same_caches(from, to)))
        .collect();
    let of = |pair: &lineup_tail::analysis::RunDifference, metric: Metric| -> Vec<Series> {
        let caches =
            |run: usize| calls.runs.get(run).map_or_else(String::new, |run| run.facts.caches.join(" "));
        let named =
            |run: usize| crate::visible::shortened(&format!("{} ({})", label(calls, run), caches(run)), 120);
        [pair.from, pair.to].map(|run| series(calls, region, run, Arm::Untouched, metric, named(run))).into()
    };
    (!other.is_empty()).then(|| html! { @for pair in other {
        h4 { (label(calls, pair.to)) " against " (label(calls, pair.from)) }
        @for metric in [Metric::Cycles, Metric::CodeStallCycles, Metric::Instructions] {
            (overlay(&capital(metric.name()), &format!("{} per call", metric.name()), &of(pair, metric)))
        }
        (tables::differences(&format!("{} less {}", label(calls, pair.to), label(calls, pair.from)), &label(calls, pair.from), &pair.differences))
    } })
}

pub(super) fn second_tail(calls: &Calls<'_>, region: &RegionAnalysis) -> Markup {
    html! { @for run in loads(calls, region) {
        h4 { (label(calls, run.run)) }
        @match &run.second_tail {
            None => p { "Too few calls." },
            Some(tail) if tail.tail_calls == 0 => p { "No call executes more than " (lineup_model::figure::mean(tail.above_instructions)) " instructions: there is no second tail." },
            Some(tail) => {
                p { (of_all(tail.tail_calls, tail.tail_calls + tail.usual_calls)) " calls execute more than "
                    (lineup_model::figure::mean(tail.above_instructions)) " instructions. They execute " (share(tail.share_of_instructions))
                    " of all instructions and take " (share(tail.share_of_cycles)) " of all cycles. The most instructions are "
                    (mean_or_unknown(tail.instructions_per_peak)) " times the peak, the most I-stall cycles in these calls "
                    (mean_or_unknown(tail.code_stall_per_peak)) " times." }
                (together(calls, region, run))
                (tables::second_tail(tail))
            }
        }
    } }
}

/// Instructions, I-stall cycles and cycles over each other, each by its own peak.
fn together(calls: &Calls<'_>, region: &RegionAnalysis, run: &RegionRun) -> Markup {
    let one = |metric: Metric| {
        let found = run.distribution(metric);
        let peak = found.map_or(0.0, |found| if found.peak > 0.0 { found.peak } else { found.median });
        (series(calls, region, run.run, Arm::Untouched, metric, metric.name().to_owned()), peak)
    };
    let all = [Metric::Instructions, Metric::CodeStallCycles, Metric::Cycles].map(one);
    rescaled("Tails compared, rescaled so that the peaks coincide", &all)
}

pub(super) fn high_water(calls: &Calls<'_>, region: &RegionAnalysis) -> Markup {
    html! { @for run in loads(calls, region) {
        h4 { (label(calls, run.run)) }
        pre tabindex="0" role="region" aria-label="New maxima" { @for line in high_water_listing(run).lines() { span { (line) } } }
    } }
}

/// Spans that hold a call of a region, by the intervention before that call.
fn spans_by_arm(calls: &Calls<'_>, region: &RegionAnalysis, run: usize) -> Vec<Series> {
    let Some(run) = calls.runs.get(run) else { return Vec::new() };
    let Some(position) = run.region(&region.name) else { return Vec::new() };
    let arm_inside = |position: usize| {
        let (inner, _) = run.inside(position).into_iter().next()?;
        run.measured.get(inner).map(|inner| inner.arm)
    };
    let spans: Vec<(Arm, &Measured)> =
        run.calls(position).filter_map(|(position, span)| Some((arm_inside(position)?, span))).collect();
    let of = |arm: Arm| {
        let found = spans.iter().filter(|(of, _)| *of == arm).map(|(_, span)| *span);
        let values = values(Metric::Cycles, found);
        Series::of_each(format!("{}, {} spans", arm.name(), whole(values.len() as u64)), values)
    };
    Arm::ALL.into_iter().map(of).filter(|series| !series.values.is_empty()).collect()
}

pub(super) fn spans(calls: &Calls<'_>, region: &RegionAnalysis) -> Markup {
    let loads = loads(calls, region);
    html! {
        @for metric in [Metric::Cycles, Metric::Instructions] {
            (overlay(&capital(metric.name()), &format!("{} per span", metric.name()), &per_load(calls, region, &loads, metric)))
        }
        @for run in region.runs.iter().filter(|run| was_tried(calls, run.run)) {
            h4 { (label(calls, run.run)) ": spans that hold a recorded call, by what was done before the call" }
            (overlay("Cycles", "cycles per span", &spans_by_arm(calls, region, run.run)))
        }
        (tables::distributions(calls, &loads))
        @for run in &loads {
            h4 { (label(calls, run.run)) }
            @if let Some(spans) = &run.spans { (tables::spans(spans)) }
            h4 { "New maxima" }
            pre tabindex="0" role="region" aria-label="New maxima" { @for line in high_water_listing(run).lines() { span { (line) } } }
        }
    }
}
