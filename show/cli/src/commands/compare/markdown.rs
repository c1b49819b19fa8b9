//! The result as a Markdown table that fits 72 columns.

use super::report::Report;
use lineup_model::figure;
use lineup_prove::compare::{ComparedMetric, Contrast, Estimated};
use lineup_prove::links::of_links;
use lineup_report::compact::compact;
use std::fmt::Write;

pub(crate) fn render(report: &Report) -> String {
    let mut out = String::new();
    for (index, command) in report.commands.iter().enumerate() {
        let _ = writeln!(out, "- {}: `{command}`", Report::letter(index));
    }
    let _ = writeln!(
        out,
        "\n{} blocks, {} intervals, margin {}, {}:\n",
        report.comparison.blocks,
        figure::level(report.plan.stop.level),
        figure::level(report.plan.margin),
        of_links(report.comparison.links)
    );
    out += &row("metric", "A", "", "change", "verdict");
    out += "|:-----------------|----------:|:--|-------------------:|:------------|\n";
    for metric in &report.comparison.metrics {
        for contrast in &metric.contrasts {
            out += &line(metric, contrast);
        }
    }
    out
}

fn line(metric: &ComparedMetric, contrast: &Contrast) -> String {
    let first = match metric.variants.first() {
        Some(Ok(values)) => compact(values.summary.mean, &metric.unit),
        Some(Err(absence)) => absence.words().to_owned(),
        None => String::new(),
    };
    let span = match &contrast.estimate {
        Estimated::Ratio { judged, .. } => {
            format!("{}..{}", figure::change(judged.interval.low), figure::change(judged.interval.high))
        }
        Estimated::Difference(estimate) => format!(
            "{}..{}",
            compact(estimate.interval.low, &metric.unit),
            compact(estimate.interval.high, &metric.unit)
        ),
    };
    let span = span.replace(" %", "%");
    row(&metric.name, &first, &Report::letter(contrast.variant.0), &span, contrast.verdict.word())
}

fn row(name: &str, first: &str, variant: &str, span: &str, verdict: &str) -> String {
    format!("| {name:<16.16} | {first:>9.9} | {variant:<1} | {span:>18} | {verdict:<12}|\n")
}
