//! The report as one offline HTML page: histograms overlaid on linear and logarithmic axes, also rescaled so that
//! their peaks coincide, scattergrams of duration against lock wait and each counter, the high-water listing.

use crate::attribution::{Attribution, Evidence};
use crate::event::{Arm, Kind};
use crate::export::high_water_listing;
use crate::histogram::Histogram;
use crate::layout::COUNTERS;
use crate::modes::modes;
use crate::plot::{self, Axis, Curve, quantity};
use crate::reader::{NameKind, Trace, metric_of};
use std::fmt::Write;

/// More points than this are thinned evenly.
const POINTS_MAX: usize = 4000;

/// The page for one or several runs, each with a label, and what is known of the causes.
pub fn page(runs: &[(String, Trace)], causes: &[Attribution]) -> String {
    let mut body = String::new();
    body.push_str(&runs_table(runs));
    for name in region_names(runs) {
        push(&mut body, format_args!("<h2>{}</h2>", escape(&name)));
        causes
            .iter()
            .filter(|found| found.region == name)
            .for_each(|found| body.push_str(&causes_table(found)));
        body.push_str(&modes_table(runs, &name));
        overlays(&mut body, runs, &name);
        scattergrams(&mut body, runs, &name);
    }
    for (label, trace) in runs {
        let listing = high_water_listing(trace);
        if !listing.is_empty() {
            push(
                &mut body,
                format_args!("<h2>New maxima, {}</h2><pre>{}</pre>", escape(label), escape(&listing)),
            );
        }
    }
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Lineup trace</title><style>{STYLE}</style>\
         </head><body><h1>Lineup trace</h1>{body}</body></html>\n"
    )
}

const STYLE: &str = ":root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--muted:#5b6470;--rule:#d5dae0;--soft:#f4f6f8;\
--c0:#2f5fc4;--c1:#b26205;--c2:#c8352b;--c3:#24813a;--c4:#8447d6;--c5:#12807a;--c6:#80563a;--c7:#b0308b}\
@media(prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e4e8ec;--muted:#a0a9b4;--rule:#343b44;--soft:#1c2127;\
--c0:#7ea6f8;--c1:#efb553;--c2:#ff8a7d;--c3:#6fcf83;--c4:#c39bff;--c5:#5fd0c8;--c6:#cfa283;--c7:#f08fd3}}\
body{font:15px/1.5 system-ui,sans-serif;max-width:54rem;margin:2rem auto;padding:0 1rem;color:var(--ink);background:var(--paper)}\
h2{margin-top:2.2rem;padding-top:.6rem;border-top:1px solid var(--rule)}h2{overflow-wrap:anywhere}\
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:.6rem 0;font-variant-numeric:tabular-nums}\
caption{text-align:left;color:var(--muted);padding-bottom:.3rem}td,th{padding:.2rem 1rem .2rem 0;border-bottom:1px solid var(--rule);text-align:right}\
th{font-weight:600;color:var(--muted)}td:first-child,th:first-child,td[colspan]{text-align:left}\
svg{display:block;width:100%;height:auto}svg text{font-size:11px;fill:var(--muted)}path{fill:none;stroke-width:1.4}\
.axis{stroke:var(--muted);stroke-width:1}.grid{stroke:var(--rule);stroke-width:.6}circle{fill:var(--c0);fill-opacity:.55}\
figure{margin:1.2rem 0}figcaption{font-size:13px;color:var(--muted)}.keys{display:flex;flex-wrap:wrap;gap:.1rem 1.2rem;font-size:13px}\
.keys span{display:flex;align-items:center;gap:.4rem}.sample{width:28px}pre{overflow-x:auto;background:var(--soft);padding:.7rem}\
.c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.c4{stroke:var(--c4)}.c5{stroke:var(--c5)}\
.c6{stroke:var(--c6)}.c7{stroke:var(--c7)}";

fn push(text: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(piece);
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn region_names(runs: &[(String, Trace)]) -> Vec<String> {
    let mut names: Vec<String> = runs
        .iter()
        .flat_map(|(_, trace)| &trace.names)
        .filter(|name| name.kind != NameKind::Mark)
        .map(|name| name.text.clone())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// What was recorded, a row per run.
fn runs_table(runs: &[(String, Trace)]) -> String {
    let mut text = String::from(
        "<div class=\"scroll\"><table><tr><th>run</th><th>process</th><th>threads</th><th>counters</th><th>overwritten</th>\
         <th>refused, full</th><th>in handlers</th><th>without room</th><th>unbalanced</th><th>open at the end</th></tr>",
    );
    for (label, trace) in runs {
        let lost = trace.losses();
        push(
            &mut text,
            format_args!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
                escape(label),
                trace.pid,
                trace.threads.len(),
                trace.rung.describe()
            ),
        );
        let counts =
            [lost.overwritten, lost.full, lost.nested, lost.without_area, lost.unbalanced, lost.in_progress];
        counts.iter().for_each(|count| push(&mut text, format_args!("<td>{count}</td>")));
        text.push_str("</tr>");
    }
    text + "</table></div>"
}

/// The durations around which the calls of each run gather.
fn modes_table(runs: &[(String, Trace)], name: &str) -> String {
    let mut rows = String::new();
    for (label, trace) in runs {
        let found = trace.names.iter().filter(|found| found.text == name && found.kind != NameKind::Mark);
        for mode in found.filter_map(|found| modes(trace, found.index)).flatten() {
            let time = |ns: f64| quantity(ns.round(), true);
            push(
                &mut rows,
                format_args!(
                    "<tr><td>{}</td><td>{:.1} %</td><td>{}</td><td>{} to {}</td></tr>",
                    escape(label),
                    mode.share * 100.0,
                    time(mode.centre_ns),
                    time(mode.low_ns),
                    time(mode.high_ns)
                ),
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "<table><caption>Modes: the durations around which calls without intervention gather</caption><tr><th>run</th>\
         <th>share of the calls</th><th>around</th><th>from, to</th></tr>{rows}</table>"
    )
}

fn causes_table(found: &Attribution) -> String {
    let mut text = format!(
        "<div class=\"scroll\"><table><caption>Causes of the tail: {} calls without intervention, median {}; those beyond {}: mean {}, \
         each counted up to {}</caption><tr><th>cause</th><th>share of the time beyond</th><th>{} % interval</th><th>of the mean</th></tr>",
        found.calls,
        quantity(found.median_ns.round(), true),
        quantity(found.window.from_ns, true),
        quantity(found.tail_ns.round(), true),
        quantity(found.window.to_ns, true),
        found.level.fraction() * 100.0
    );
    for finding in &found.findings {
        let cells = match &finding.evidence {
            Evidence::Intervention { tail_ns, tail_share, .. } => format!(
                "<td>{:.1} %</td><td>{:.1} to {:.1} %</td><td>{}</td>",
                tail_share.value * 100.0,
                tail_share.low * 100.0,
                tail_share.high * 100.0,
                signed_time(tail_ns.value)
            ),
            Evidence::Association { tail_ns, tail_share, .. } => {
                let time = signed_time(*tail_ns);
                format!("<td>{:.1} %</td><td>by association</td><td>{time}</td>", tail_share * 100.0)
            }
            Evidence::Unobserved { why } => format!("<td colspan=\"3\">not observed: {}</td>", escape(why)),
        };
        push(&mut text, format_args!("<tr><td>{}</td>{cells}</tr>", finding.cause.name()));
    }
    if let Some(left) = &found.unexplained_tail_share {
        push(
            &mut text,
            format_args!(
                "<tr><td>unexplained</td><td>{:.1} %</td><td>{:.1} to {:.1} %</td><td></td></tr>",
                left.value * 100.0,
                left.low * 100.0,
                left.high * 100.0
            ),
        );
    }
    text.push_str("</table></div>");
    text
}

fn signed_time(ns: f64) -> String {
    format!("{}{}", if ns <= -0.5 { "−" } else { "" }, quantity(ns.abs().round(), true))
}

/// One curve per run and arm: arms differ in colour, runs in the kind of line; without arms runs differ in both. Waits
/// of nothing are left out: most calls do not wait.
fn curves(runs: &[(String, Trace)], name: &str, metric: u64) -> Vec<Curve> {
    let mut curves = Vec::new();
    for (run, (label, trace)) in runs.iter().enumerate() {
        for found in trace.names.iter().filter(|found| found.text == name && found.kind != NameKind::Mark) {
            let events: Vec<_> =
                trace.threads.iter().flat_map(|t| &t.events).filter(|e| e.name == found.index).collect();
            let arms: Vec<Arm> =
                Arm::ALL.into_iter().filter(|arm| events.iter().any(|event| event.arm == *arm)).collect();
            let values = |arm| events.iter().filter(move |e| e.arm == arm).map(|e| metric_of(e, metric));
            if arms.len() <= 1 {
                let histogram = without_zeros(trace.histogram(found.index, metric), metric);
                curves.push(Curve { label: label.clone(), histogram, colour: run, dash: run });
                continue;
            }
            curves.extend(arms.iter().map(|arm| Curve {
                label: format!("{label}, {}", arm_text(*arm)),
                histogram: without_zeros(values(*arm).collect(), metric),
                colour: usize::from(arm.number()),
                dash: run,
            }));
        }
    }
    curves.retain(|curve| curve.histogram.total() > 0);
    curves
}

fn arm_text(arm: Arm) -> String {
    if arm == Arm::None { "no intervention".to_owned() } else { arm.name().replace('_', " ") }
}

fn without_zeros(histogram: Histogram, metric: u64) -> Histogram {
    if metric != 1 {
        return histogram;
    }
    let mut waits = Histogram::default();
    let kept = histogram.buckets().filter(|(least, _, _)| *least > 0);
    kept.for_each(|(least, _, count)| waits.add(least, count));
    waits
}

fn metrics(runs: &[(String, Trace)]) -> Vec<(u64, String)> {
    let counters = |index: usize| runs.iter().find_map(|(_, trace)| trace.counters.get(index)?.clone());
    let named = [(0, "duration".to_owned()), (1, "lock wait, where there was one".to_owned())];
    named.into_iter().chain((0..COUNTERS).filter_map(|at| Some((at as u64 + 2, counters(at)?)))).collect()
}

fn overlays(body: &mut String, runs: &[(String, Trace)], name: &str) {
    for (metric, label) in metrics(runs) {
        let curves = curves(runs, name, metric);
        let is_flat = curves.iter().all(|curve| curve.histogram.buckets().all(|(least, _, _)| least == 0));
        if curves.is_empty() || is_flat {
            continue;
        }
        for axis in [Axis::Linear, Axis::Logarithmic, Axis::PerPeak] {
            let how = match axis {
                Axis::Linear => "each curve as high as its peak; the slowest calls lie beyond the right edge",
                Axis::Logarithmic => "logarithmic axes; numbers on the left are calls",
                Axis::PerPeak => "rescaled so that the peaks coincide",
            };
            let says = format!("{}: {how}", escape(&label));
            let image = plot::svg(&curves, axis, metric < 2, &says);
            push(body, format_args!("<figure>{image}<figcaption>{says}.</figcaption>"));
            keys(body, &curves, metric < 2);
            body.push_str("</figure>");
        }
    }
}

fn keys(body: &mut String, curves: &[Curve], is_time: bool) {
    body.push_str("<div class=\"keys\">");
    for curve in curves {
        let (sample, label) = (plot::sample(curve), escape(&curve.label));
        let peak = quantity(curve.histogram.peak().unwrap_or(0) as f64, is_time);
        push(body, format_args!("<span>{sample}{label}, peak {peak}</span>"));
    }
    body.push_str("</div>");
}

/// Duration against lock wait and each counter, a point per call.
fn scattergrams(body: &mut String, runs: &[(String, Trace)], name: &str) {
    for (metric, label) in metrics(runs).into_iter().filter(|(metric, _)| *metric > 0) {
        let points: Vec<(f64, f64)> = runs
            .iter()
            .flat_map(|(_, trace)| {
                let index = trace.region(name).map(|region| region.index).ok();
                index.into_iter().flat_map(|index| trace.events_of(index, Kind::Region))
            })
            .map(|event| (metric_of(event, metric) as f64, event.duration_ns as f64))
            .collect();
        let right = points.iter().map(|point| point.0).fold(0.0, f64::max);
        let top = points.iter().map(|point| point.1).fold(0.0, f64::max);
        if right == 0.0 || top == 0.0 {
            continue;
        }
        let says = format!("duration against {}, {} calls", escape(&label), points.len());
        let shown = points.iter().step_by(points.len().div_ceil(POINTS_MAX));
        let image = plot::scatter(shown, (right, top), metric < 2, &says);
        push(body, format_args!("<figure>{image}<figcaption>{says}.</figcaption></figure>"));
    }
}
