//! The page's sections on a region or lock.

use super::TracedRun;
use crate::distributions::{Counted, Series, overlay, rescaled, scattergram};
use crate::html::scroll;
use lineup_model::figure::{mean, share, time_ns, whole};
use lineup_trace::attribution::{Attribution, Evidence};
use lineup_trace::layout::{COUNTERS, mode};
use lineup_trace::reader::metric_of;
use lineup_trace::{Arm, Event, Histogram, Kind, NameKind};
use maud::{Markup, html};

/// The numbers of the counted quantities in the tracer's files.
const DURATION: u64 = 0;
const LOCK_WAIT: u64 = 1;
const FIRST_COUNTER: u64 = 2;

/// A quantity counted per call: its number, its name, its axis.
struct Metric {
    number: u64,
    what: String,
    axis: String,
}

fn metrics(runs: &[TracedRun]) -> Vec<Metric> {
    let time = |number, what: &str| Metric { number, what: what.into(), axis: format!("{what}, ns") };
    let counter = |at: usize| {
        let name = runs.iter().find_map(|run| run.trace.counters.get(at)?.clone())?.replace('_', " ");
        Some(Metric { number: at as u64 + FIRST_COUNTER, axis: format!("{name} per call"), what: name })
    };
    let times = [time(DURATION, "duration"), time(LOCK_WAIT, "lock wait")];
    times.into_iter().chain((0..COUNTERS).filter_map(counter)).collect()
}

/// The region's share of the time beyond a threshold that each cause has.
pub(super) fn causes(found: &Attribution) -> Markup {
    let interval = |low: f64, high: f64| format!("{} to {}", share(low), share(high));
    let table = html! { table {
        thead { tr {
            th scope="col" { "cause" } th.n scope="col" { "share of the time beyond" }
            th.n scope="col" { (mean(found.level.fraction() * 100.0)) " % interval" } th.n scope="col" { "of the mean" }
        } }
        tbody {
            @for finding in &found.findings { tr {
                td.name { (finding.cause.name()) }
                @match &finding.evidence {
                    Evidence::Intervention { tail_ns, tail_share, .. } => {
                        td.n { (share(tail_share.value)) } td.n { (interval(tail_share.low, tail_share.high)) }
                        td.n { (signed_time(tail_ns.value)) }
                    }
                    Evidence::Association { tail_ns, tail_share, .. } => {
                        td.n { (share(*tail_share)) } td.n { "by association" } td.n { (signed_time(*tail_ns)) }
                    }
                    Evidence::Unobserved { why } => { td colspan="3" { "not observed: " (why) } }
                }
            } }
            @if let Some(left) = &found.unexplained_tail_share { tr {
                td.name { "unexplained" } td.n { (share(left.value)) } td.n { (interval(left.low, left.high)) } td.n { "–" }
            } }
        }
    } };
    html! {
        p { (whole(found.calls as u64)) " calls without intervention, median " (time_ns(found.median_ns.round()))
            ". Those beyond " (time_ns(found.window.from_ns)) " have a mean of " (time_ns(found.tail_ns.round()))
            ", each counted up to " (time_ns(found.window.to_ns)) "." }
        (scroll("Causes of the tail", &table))
    }
}

fn signed_time(ns: f64) -> String {
    format!("{}{}", if ns <= -0.5 { "−" } else { "" }, time_ns(ns.abs().round()))
}

/// The durations around which the calls of each run gather; `None` for too few calls.
pub(super) fn modes(runs: &[TracedRun], name: &str) -> Option<Markup> {
    let found: Vec<_> = runs
        .iter()
        .flat_map(|run| indices(run, name).map(move |index| (run, index)))
        .filter_map(|(run, index)| Some((run.shown(), lineup_trace::modes::modes(&run.trace, index)?)))
        .filter(|(_, modes)| !modes.is_empty())
        .collect();
    let time = |ns: f64| time_ns(ns.round());
    (!found.is_empty()).then(|| {
        html! {
            p.muted { "The durations around which calls without intervention gather." }
            (scroll("Modes", &html! { table {
                thead { tr { th scope="col" { "run" } th.n scope="col" { "share of the calls" } th.n scope="col" { "around" }
                    th.n scope="col" { "from" } th.n scope="col" { "to" } } }
                tbody { @for (label, modes) in &found { @for mode in modes { tr {
                    td.name { (label) } td.n { (share(mode.share)) } td.n { (time(mode.centre_ns)) }
                    td.n { (time(mode.low_ns)) } td.n { (time(mode.high_ns)) }
                } } } }
            } }))
        }
    })
}

/// The entries of a region or lock in a run's table of names.
fn indices<'a>(run: &'a TracedRun, name: &'a str) -> impl Iterator<Item = u16> + 'a {
    let named =
        run.trace.names.iter().filter(move |found| found.text == name && found.kind != NameKind::Mark);
    named.map(|found| found.index)
}

fn calls<'a>(run: &'a TracedRun, name: &'a str) -> impl Iterator<Item = &'a Event> + 'a {
    let events = |index: u16| {
        let all = run.trace.threads.iter().flat_map(|thread| &thread.events);
        all.filter(move |event| event.name == index && matches!(event.kind, Kind::Region | Kind::Lock))
    };
    indices(run, name).flat_map(events)
}

/// The interventions before calls of this name, as far as events name them.
fn arms(run: &TracedRun, name: &str) -> Vec<Arm> {
    Arm::ALL.into_iter().filter(|arm| calls(run, name).any(|event| event.arm == *arm)).collect()
}

/// The values of a run under the arms given. A trace of histograms alone has no arms, and its values are those of
/// buckets, exact to one part in 32.
fn series(run: &TracedRun, name: &str, metric: &Metric, arm: Option<Arm>, label: String) -> Series {
    let has_value = |value: u64| metric.number != LOCK_WAIT || value > 0;
    if arm.is_none() && run.trace.modes & mode::HISTOGRAMS != 0 {
        let mut merged = Histogram::default();
        indices(run, name).for_each(|index| merged.merge(&run.trace.histogram(index, metric.number)));
        let filled = merged.buckets().filter(|(least, _, _)| has_value(*least));
        return Series { label, values: filled.flat_map(spread).collect() };
    }
    let wanted = calls(run, name).filter(|event| arm.is_none_or(|arm| event.arm == arm));
    let values = wanted.map(|event| metric_of(event, metric.number)).filter(|value| has_value(*value));
    Series::of_each(label, values.map(|value| value as f64))
}

/// The calls of a bucket, evenly over it.
fn spread((least, greatest, count): (u64, u64, u64)) -> impl Iterator<Item = Counted> {
    let parts = count.min(8).min(greatest - least + 1).max(1);
    let width = (greatest - least) as f64 / parts as f64;
    (0..parts).map(move |part| Counted {
        value: least as f64 + width * part as f64,
        times: count / parts + u64::from(part < count % parts),
    })
}

/// Each metric's histograms: all runs over each other, and where there were interventions before calls, one for each.
pub(super) fn distributions(runs: &[TracedRun], name: &str) -> Option<Markup> {
    let mut figures = Vec::new();
    for metric in metrics(runs) {
        let counted = |series: &Series| whole(series.values.iter().map(|one| one.times).sum());
        let titled = |mut series: Series| {
            series.label = format!("{}, {} calls", series.label, counted(&series));
            series
        };
        let whole_runs = runs.iter().map(|run| {
            let untouched = (arms(run, name).len() > 1).then_some(Arm::None);
            titled(series(run, name, &metric, untouched, run.shown()))
        });
        draw(&mut figures, &metric, String::new(), whole_runs.collect());
        for run in runs {
            let arms = arms(run, name);
            let by_arm =
                arms.iter().map(|arm| titled(series(run, name, &metric, Some(*arm), arm_text(*arm))));
            if arms.len() > 1 {
                draw(&mut figures, &metric, format!(", by intervention, {}", run.shown()), by_arm.collect());
            }
        }
    }
    (!figures.is_empty()).then(|| html! { @for figure in &figures { (figure) } })
}

fn draw(figures: &mut Vec<Markup>, metric: &Metric, of_what: String, mut series: Vec<Series>) {
    series.retain(|one| one.values.iter().any(|of| of.value > 0.0));
    if series.is_empty() {
        return;
    }
    let what = format!("{}{of_what}", capital(&metric.what));
    figures.push(overlay(&what, &metric.axis, &series));
    if series.len() > 1 {
        let with_peaks: Vec<(Series, f64)> =
            series.into_iter().map(|one| (peak(&one), one)).map(|(peak, one)| (one, peak)).collect();
        figures.push(rescaled(&format!("{what}, peaks laid over each other"), &with_peaks));
    }
}

/// The value around which most values lie, by their logarithms.
fn peak(series: &Series) -> f64 {
    let histogram = series.values.iter().fold(Histogram::default(), |mut histogram, one| {
        histogram.add(one.value as u64, one.times);
        histogram
    });
    histogram.peak().unwrap_or(0) as f64
}

/// Duration against lock wait and each counter, a point for each call.
pub(super) fn scattergrams(runs: &[TracedRun], name: &str) -> Option<Markup> {
    let mut figures = Vec::new();
    for metric in metrics(runs).into_iter().filter(|metric| metric.number != DURATION) {
        let events = runs.iter().flat_map(|run| calls(run, name)).filter(|event| event.kind == Kind::Region);
        let points: Vec<(f64, f64)> =
            events.map(|event| (metric_of(event, metric.number) as f64, event.duration_ns as f64)).collect();
        if points.iter().all(|point| point.0 == 0.0) {
            continue;
        }
        let what = format!("Duration against {}", metric.what);
        let said = format!("{} calls", whole(points.len() as u64));
        figures.push(scattergram(&what, &metric.axis, "duration, ns", &said, &points));
    }
    (!figures.is_empty()).then(|| html! { @for figure in &figures { (figure) } })
}

fn arm_text(arm: Arm) -> String {
    if arm == Arm::None { "no intervention".to_owned() } else { arm.name().replace('_', " ") }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
