//! The result as a Markdown table that fits 72 columns.

use super::report::Report;
use lineup_model::figure;
use lineup_report::compact::compact;

pub(crate) fn render(report: &Report) -> String {
    let mut lines = vec![
        format!("`{}`, {} runs:", report.command.join(" "), report.measurement.runs),
        String::new(),
        row("metric", "mean", "± error", "median"),
        "|:-------------------------|------------------:|---------:|---------:|".into(),
    ];
    for metric in &report.measurement.metrics {
        let figure = |value: f64| compact(value, &metric.unit);
        lines.push(match &metric.summary {
            Err(absence) => row(&metric.name, absence.words(), "", ""),
            Ok(summary) => row(
                &metric.name,
                &figure(summary.mean),
                &metric.relative_error().map(figure::share).unwrap_or_default(),
                &figure(summary.median()),
            ),
        });
    }
    lines.join("\n") + "\n"
}

fn row(name: &str, mean: &str, error: &str, median: &str) -> String {
    format!("| {name:<24} | {mean:>17} | {error:>8} | {median:>8} |")
}
