//! The result for a terminal.

use super::report::Report;
use lineup_model::figure;
use lineup_model::figure::{estimated, interval};
use lineup_prove::compare::{ComparedMetric, Contrast, Estimated, VariantValues};
use lineup_prove::links::{links_mean, of_links, share_in_words};
use lineup_prove::metric::Unit;
use lineup_report::text::{Extent, SCREEN_LINES, TextStyle, screen};
use lineup_stats::modes::{self, Group};
use lineup_stats::verdict::Verdict;
use std::fmt::Write;

/// The result. If it does not fit on a first screen, metrics that do not decide show only their verdicts there.
pub(crate) fn render(report: &Report, style: TextStyle, extent: Extent) -> String {
    let all = screen(&whole(report), style, Extent::All, "");
    match extent {
        Extent::FirstScreen if all.lines().count() > SCREEN_LINES => {
            screen(&in_short(report), style, extent, MORE)
        }
        Extent::FirstScreen | Extent::All => all,
    }
}

/// The option that shows the rest.
const MORE: &str = "--full";

fn whole(report: &Report) -> String {
    let mut out = String::new();
    head(&mut out, report);
    for (index, metric) in report.comparison.metrics.iter().enumerate() {
        in_full(&mut out, report, metric, index == 0);
    }
    tail(&mut out, report);
    out
}

/// The deciding metric in full, and for the others a line for each variant that is compared with the first.
fn in_short(report: &Report) -> String {
    let mut out = String::new();
    head(&mut out, report);
    let mut metrics = report.comparison.metrics.iter();
    if let Some(primary) = metrics.next() {
        in_full(&mut out, report, primary, true);
    }
    tail(&mut out, report);
    for metric in metrics {
        for contrast in &metric.contrasts {
            let _ =
                writeln!(out, "  {}{DOES_NOT_DECIDE}  {}", metric.name, sentence(metric, contrast, report));
        }
    }
    let _ = writeln!(out, "  Means, quantiles, groups and what is not supported here: {MORE}");
    out
}

fn in_full(out: &mut String, report: &Report, metric: &ComparedMetric, is_primary: bool) {
    variants(out, metric, is_primary);
    for contrast in &metric.contrasts {
        let _ = writeln!(out, "    {}", sentence(metric, contrast, report));
    }
    out.push('\n');
}

fn head(out: &mut String, report: &Report) {
    let level = figure::level(report.plan.stop.level);
    let _ =
        writeln!(out, "\n {} blocks ({}), {level} intervals", report.comparison.blocks, report.why_stopped());
    for (index, command) in report.commands.iter().enumerate() {
        let _ = writeln!(out, "   {}: {command}", Report::letter(index));
    }
    if let Some(load) = &report.under {
        let _ = writeln!(out, "   under: {load}");
    }
    for failed in report.failed() {
        let _ = writeln!(out, "   {failed}; figures are of failed runs as well");
    }
    if let Some(disturbance) = report.disturbance() {
        let _ = writeln!(out, "   noise of this comparison: {disturbance}");
    }
    out.push('\n');
}

/// Marks a metric that does not show whether the program is better, such as the system's time and context switches.
const DOES_NOT_DECIDE: &str = " (does not decide)";

fn variants(out: &mut String, metric: &ComparedMetric, is_primary: bool) {
    let mark = if is_primary { " (decides)" } else { DOES_NOT_DECIDE };
    let _ = writeln!(out, "  {}{mark}", metric.name);
    for (index, variant) in metric.variants.iter().enumerate() {
        let letter = Report::letter(index);
        match variant {
            Err(absence) => {
                let _ = writeln!(out, "    {letter}  {}", absence.words());
            }
            Ok(values) => {
                let _ = writeln!(out, "    {letter}  {}", described(values, &metric.unit));
                modes(out, values, &metric.unit);
                series(out, values);
            }
        }
    }
}

fn described(values: &VariantValues, unit: &Unit) -> String {
    let summary = &values.summary;
    let deviation = summary.deviation.map(|deviation| format!(" ± {}", figure(deviation, unit)));
    format!(
        "{}{}  median {}  [{} … {}]  n {}",
        figure(summary.mean, unit),
        deviation.unwrap_or_default(),
        figure(summary.median(), unit),
        figure(summary.min(), unit),
        figure(summary.max(), unit),
        summary.n
    )
}

/// The modes, when there is more than one: a mean over them describes none of them. Then runs far from all modes.
fn modes(out: &mut String, values: &VariantValues, unit: &Unit) {
    let runs = |count: usize| if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
    let group = |group: &Group| format!("{} near {}", runs(group.count), figure(group.mean, unit));
    let groups: Vec<String> = modes::modes(&values.modes).map(group).collect();
    if groups.len() > 1 {
        let _ = writeln!(out, "       {} modes: {}", groups.len(), groups.join(", "));
    }
    let outliers: Vec<String> = modes::outliers(&values.modes).map(group).collect();
    if !outliers.is_empty() {
        let _ = writeln!(out, "       outliers: {}", outliers.join(", "));
    }
}

fn series(out: &mut String, values: &VariantValues) {
    let Some(series) = &values.series else { return };
    if series.drifts() {
        let _ = writeln!(out, "       drifts by {} over the runs", figure::change(1.0 + series.drift));
    }
    if series.remembers() {
        let _ = writeln!(
            out,
            "       neighbouring runs resemble each other (correlation {:.2})",
            series.autocorrelation
        );
    }
}

/// `B: +0.27 % [+0.10 %, +0.44 %] changed, smaller than the margin`.
fn sentence(metric: &ComparedMetric, contrast: &Contrast, report: &Report) -> String {
    let letter = Report::letter(contrast.variant.0);
    let figures = match &contrast.estimate {
        // Within a wide margin, a wide interval is a result.
        Estimated::Ratio { judged, .. } if contrast.verdict != Verdict::Inconclusive => {
            interval(judged.ratio, [judged.interval.low, judged.interval.high])
        }
        Estimated::Ratio { judged, .. } => {
            estimated(judged.ratio, [judged.interval.low, judged.interval.high])
        }
        Estimated::Difference(estimate) => format!(
            "{} [{}, {}]",
            figure(estimate.difference, &metric.unit),
            figure(estimate.interval.low, &metric.unit),
            figure(estimate.interval.high, &metric.unit)
        ),
    };
    format!("{letter}: {figures}  {}", verdict(contrast, report))
}

pub(crate) fn verdict(contrast: &Contrast, report: &Report) -> String {
    let words = match (contrast.verdict, contrast.within_margin) {
        (Verdict::Changed, true) => format!("changed, by less than {}", figure::level(report.plan.margin)),
        (Verdict::Changed, false) => "changed".into(),
        (Verdict::Equivalent, _) => format!("equivalent within {}", figure::level(report.plan.margin)),
        (Verdict::Inconclusive, _) => "inconclusive".into(),
    };
    let words = format!("{words}, {}", of_links(report.comparison.links));
    let words = words + &share_in_words(contrast.link_share);
    let is_known = match &contrast.estimate {
        Estimated::Ratio { judged, .. } => figure::is_estimate(judged.interval.low, judged.interval.high),
        Estimated::Difference(_) => true,
    };
    match contrast.smallest_detectable {
        Some(effect) if effect > 0.0 && is_known => {
            format!("{words} (p {:.3}; could have seen {})", contrast.adjusted_p, figure::share(effect))
        }
        _ => words,
    }
}

pub(crate) fn figure(value: f64, unit: &Unit) -> String {
    match unit {
        Unit::Nanoseconds => figure::time_ns(value),
        Unit::Bytes => format!("{} KiB", figure::grouped(value / 1024.0, 0)),
        Unit::Events => figure::grouped(value, usize::from(value.abs() < 1000.0) * 2),
        Unit::Named(unit) => format!("{} {unit}", figure::grouped(value, 3)).trim_end().to_owned(),
    }
}

fn tail(out: &mut String, report: &Report) {
    let _ = writeln!(out, "  {}", links_mean(report.comparison.links));
    let blocks = if report.comparison.links > 1 { report.comparison.links } else { report.comparison.blocks };
    if blocks < 10 && report.comparison.links > 1 {
        let _ = writeln!(
            out,
            "  Note: fewer than ten links; intervals are those of the paired t test over links."
        );
    } else if blocks < 10 {
        let _ = writeln!(out, "  Note: fewer than ten blocks; intervals are those of the paired t test.");
    }
    if let Some(alarms) = &report.false_alarms {
        let _ = writeln!(
            out,
            "  False alarms: {} of {} replays of this comparison called the program changed ({}).",
            alarms.alarms,
            alarms.replays,
            figure::share(alarms.rate())
        );
    }
}
