//! The report as one offline HTML page: histograms overlaid on linear and logarithmic axes, also rescaled so that
//! their peaks coincide, scattergrams of duration against lock wait and each counter, the high-water listing.

use crate::attribution::{Attribution, Evidence};
use crate::event::{Arm, Kind};
use crate::export::high_water_listing;
use crate::histogram::Histogram;
use crate::layout::COUNTERS;
use crate::reader::{NameKind, Trace, metric_of};
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 220.0;
const COLOURS: [&str; 8] =
    ["#4269d0", "#efb118", "#ff725c", "#3ca951", "#a463f2", "#6cc5b0", "#9c6b4e", "#97bbf5"];
/// More points than this are thinned evenly.
const POINTS_MAX: usize = 4000;

/// One curve of an overlay.
struct Curve {
    label: String,
    histogram: Histogram,
}

/// How an overlay's horizontal axis runs.
#[derive(Clone, Copy, PartialEq)]
enum Axis {
    Linear,
    Logarithmic,
    /// Values divided by the value of the curve's own peak.
    PerPeak,
}

/// The page for one or several runs, each with a label, and what is known of the causes.
pub fn page(runs: &[(String, Trace)], causes: &[Attribution]) -> String {
    let mut body = String::new();
    for (label, trace) in runs {
        push(&mut body, format_args!("<h2>{}</h2>{}", escape(label), losses(trace)));
    }
    for name in region_names(runs) {
        push(&mut body, format_args!("<h2>{}</h2>", escape(&name)));
        causes
            .iter()
            .filter(|found| found.region == name)
            .for_each(|found| body.push_str(&causes_table(found)));
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

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#1b1e23;\
background:#fff}table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.15rem .7rem;border-bottom:1px solid #ddd;\
text-align:right}td:first-child,th:first-child{text-align:left}svg{display:block;max-width:100%;height:auto}\
figcaption{color:#555;font-size:13px}figure{margin:1rem 0}pre{overflow-x:auto;background:#f6f7f8;padding:.7rem}\
.key{font-size:13px;margin-right:1rem}@media(prefers-color-scheme:dark){body{background:#16181c;color:#e3e5e8}\
td,th{border-color:#333}pre{background:#22252a}figcaption{color:#aaa}}";

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

fn losses(trace: &Trace) -> String {
    let lost = trace.losses();
    format!(
        "<p>Process {}, {} threads. Counters: {:?}. Overwritten {}, refused when full {}, in handlers {}, without room {}, \
         unbalanced {}, open at the end {}.</p>",
        trace.pid,
        trace.threads.len(),
        trace.rung,
        lost.overwritten,
        lost.full,
        lost.nested,
        lost.without_area,
        lost.unbalanced,
        lost.in_progress
    )
}

fn causes_table(found: &Attribution) -> String {
    let mut text = format!(
        "<table><caption>{} calls without intervention, median {:.0} ns; those beyond {:.0} ns: mean {:.0} ns, each counted up to \
         {:.0} ns</caption><tr><th>cause</th><th>share of the time beyond</th><th>{} % interval</th><th>ns of the mean</th></tr>",
        found.calls,
        found.median_ns,
        found.window.from_ns,
        found.tail_ns,
        found.window.to_ns,
        found.level.fraction() * 100.0
    );
    for finding in &found.findings {
        let cells = match &finding.evidence {
            Evidence::Intervention { tail_ns, tail_share, .. } => format!(
                "<td>{:.1} %</td><td>{:.1} to {:.1} %</td><td>{:.0}</td>",
                tail_share.value * 100.0,
                tail_share.low * 100.0,
                tail_share.high * 100.0,
                tail_ns.value
            ),
            Evidence::Association { tail_ns, tail_share, .. } => {
                format!("<td>{:.1} %</td><td>by association</td><td>{tail_ns:.0}</td>", tail_share * 100.0)
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
    text.push_str("</table>");
    text
}

/// One curve per run and arm.
fn curves(runs: &[(String, Trace)], name: &str, metric: u64) -> Vec<Curve> {
    let mut curves = Vec::new();
    for (label, trace) in runs {
        for found in trace.names.iter().filter(|found| found.text == name && found.kind != NameKind::Mark) {
            let events: Vec<_> =
                trace.threads.iter().flat_map(|t| &t.events).filter(|e| e.name == found.index).collect();
            let arms: Vec<Arm> =
                Arm::ALL.into_iter().filter(|arm| events.iter().any(|event| event.arm == *arm)).collect();
            if arms.len() <= 1 {
                curves.push(Curve { label: label.clone(), histogram: trace.histogram(found.index, metric) });
                continue;
            }
            curves.extend(arms.iter().map(|arm| Curve {
                label: format!("{label}, {}", arm.name()),
                histogram: events.iter().filter(|e| e.arm == *arm).map(|e| metric_of(e, metric)).collect(),
            }));
        }
    }
    curves.retain(|curve| curve.histogram.total() > 0);
    curves
}

fn metrics(runs: &[(String, Trace)]) -> Vec<(u64, String)> {
    let counters = |index: usize| runs.iter().find_map(|(_, trace)| trace.counters.get(index)?.clone());
    let named = [(0, "duration, ns".to_owned()), (1, "lock wait, ns".to_owned())];
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
            let caption = match axis {
                Axis::Linear => format!("{label}, up to the 99.5th percentile"),
                Axis::Logarithmic => format!("{label}, logarithmic axes"),
                Axis::PerPeak => format!("{label}, rescaled so that the peaks coincide"),
            };
            overlay(body, &curves, axis, &caption);
        }
    }
}

fn overlay(body: &mut String, curves: &[Curve], axis: Axis, caption: &str) {
    let place = |curve: &Curve, value: u64| -> f64 {
        match axis {
            Axis::Linear => value as f64,
            Axis::Logarithmic => (value.max(1) as f64).ln(),
            Axis::PerPeak => value as f64 / curve.histogram.peak().unwrap_or(1).max(1) as f64,
        }
    };
    let last = |curve: &Curve| {
        let q = if axis == Axis::Logarithmic { 1.0 } else { 0.995 };
        place(curve, curve.histogram.quantile(q).unwrap_or(0))
    };
    let right = curves.iter().map(last).fold(f64::MIN_POSITIVE, f64::max);
    push(body, format_args!("<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">"));
    for (index, curve) in curves.iter().enumerate() {
        let total = curve.histogram.total() as f64;
        let greatest = curve.histogram.buckets().map(|(_, _, count)| count).max().unwrap_or(1) as f64;
        let mut path = String::new();
        for (least, most, count) in curve.histogram.buckets() {
            let x = place(curve, least + (most - least) / 2) / right * WIDTH;
            let height = match axis {
                Axis::Logarithmic => (count as f64 + 1.0).ln() / (total + 1.0).ln(),
                Axis::Linear | Axis::PerPeak => count as f64 / greatest,
            };
            if x <= WIDTH {
                let y = HEIGHT - 4.0 - height * (HEIGHT - 10.0);
                let step = if path.is_empty() { "M" } else { "L" };
                push(&mut path, format_args!("{step}{x:.1} {y:.1}"));
            }
        }
        let colour = COLOURS[index % COLOURS.len()];
        push(
            body,
            format_args!("<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"),
        );
    }
    let end = match axis {
        Axis::Logarithmic => right.exp(),
        Axis::Linear | Axis::PerPeak => right,
    };
    push(body, format_args!("</svg><figcaption>{}; right edge {end:.4}. ", escape(caption)));
    for (index, curve) in curves.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let peak = curve.histogram.peak().unwrap_or(0);
        let label = escape(&curve.label);
        push(
            body,
            format_args!("<span class=\"key\" style=\"color:{colour}\">■ {label}, peak {peak}</span>"),
        );
    }
    body.push_str("</figcaption></figure>");
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
        push(body, format_args!("<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">"));
        for (x, y) in points.iter().step_by(points.len().div_ceil(POINTS_MAX)) {
            let (x, y) = (x / right * (WIDTH - 6.0) + 3.0, HEIGHT - 3.0 - y / top * (HEIGHT - 6.0));
            push(
                body,
                format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.4\" fill=\"{}\"/>", COLOURS[0]),
            );
        }
        let caption = format!(
            "duration (up to {top:.0} ns) against {label} (up to {right:.0}), {} calls",
            points.len()
        );
        push(body, format_args!("</svg><figcaption>{}</figcaption></figure>", escape(&caption)));
    }
}
