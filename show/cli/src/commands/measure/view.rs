//! The result for a terminal, laid out as `perf stat -r` does.

use super::report::Report;
use lineup_model::figure;
use lineup_prove::disturbance::waited_in_words;
use lineup_prove::measure::{DerivedRatio, MeasuredMetric, Measurement, plain_name};
use lineup_prove::metric::{ELAPSED, Unit};
use std::fmt::Write;

/// Metrics that have a section of their own below the counters.
const BELOW: &[&str] = &[ELAPSED, "user", "sys"];

pub(crate) fn render(report: &Report) -> String {
    let mut out = String::new();
    let measurement = &report.measurement;
    let runs = measurement.runs;
    let noun = if runs == 1 { "run" } else { "runs" };
    let _ =
        writeln!(out, "\n Performance counter stats for '{}' ({runs} {noun}):\n", report.command.join(" "));
    if let Some(failed) = report.failed_in_words() {
        let _ = writeln!(out, " {failed}; figures are of failed runs as well\n");
    }
    if let Some(waited) = waited_in_words(report.waited_ns) {
        let _ = writeln!(out, " {waited}\n");
    }
    for metric in measurement.metrics.iter().filter(|metric| !BELOW.contains(&metric.name.as_str())) {
        counter(&mut out, metric, measurement);
    }
    out.push('\n');
    for (name, words) in [(ELAPSED, "time elapsed"), ("user", "user"), ("sys", "sys")] {
        if let Some(metric) = measurement.metrics.iter().find(|metric| metric.name == name) {
            time(&mut out, metric, words);
        }
    }
    quantiles(&mut out, measurement);
    notes(&mut out, report);
    out
}

fn counter(out: &mut String, metric: &MeasuredMetric, measurement: &Measurement) {
    let summary = match &metric.summary {
        Err(absence) => {
            let _ = writeln!(out, "{:>20}      {}", absence.words(), metric.name);
            return;
        }
        Ok(summary) => summary,
    };
    let (figure, unit) = match &metric.unit {
        Unit::Nanoseconds => (format!("{:.2}", summary.mean / 1e6), "msec"),
        Unit::Bytes => (figure::grouped(summary.mean / 1024.0, 0), "KiB"),
        Unit::Events => (figure::grouped(summary.mean, usize::from(summary.mean < 100.0)), ""),
        Unit::Named(unit) => (figure::grouped(summary.mean, 3), unit.as_str()),
    };
    let mut ratios = measurement.ratios.iter().filter(|ratio| ratio.beside == plain_name(&metric.name));
    let mut line = format!("{figure:>20} {unit:4} {:<26}", metric.name);
    if let Some(ratio) = ratios.next() {
        let _ = write!(line, "# {:<36}", derived(ratio));
    } else {
        let _ = write!(line, "  {:<36}", "");
    }
    if let Some(error) = metric.relative_error() {
        let _ = write!(line, " ( +- {:>6} )", figure::share(error));
    }
    if let Some(share) = metric.smallest_share {
        let _ = write!(line, "  ({})", figure::share(share));
    }
    let _ = writeln!(out, "{}", line.trim_end());
    for ratio in ratios {
        let _ = writeln!(out, "{:>52}# {}", "", derived(ratio));
    }
}

/// A ratio with its interval: `0.82 [0.81, 0.83] insn per cycle`.
fn derived(ratio: &DerivedRatio) -> String {
    let is_share = ratio.name.starts_with("of all") || ratio.name.ends_with("idle");
    let figure = |value: f64| if is_share { figure::share(value) } else { format!("{value:.3}") };
    match &ratio.interval {
        Some(interval) => format!(
            "{} [{}, {}] {}",
            figure(ratio.ratio),
            figure(interval.low),
            figure(interval.high),
            ratio.name
        ),
        None => format!("{} {}", figure(ratio.ratio), ratio.name),
    }
}

fn time(out: &mut String, metric: &MeasuredMetric, words: &str) {
    let Ok(summary) = &metric.summary else { return };
    let line = match (summary.standard_error(), metric.relative_error()) {
        (Some(error), Some(relative)) => format!(
            "{:>20} +- {} seconds {words}  ( +- {:>6} )",
            figure::seconds(summary.mean),
            figure::seconds(error),
            figure::share(relative)
        ),
        _ => format!("{:>20} seconds {words}", figure::seconds(summary.mean)),
    };
    let _ = writeln!(out, "{line}");
}

fn quantiles(out: &mut String, measurement: &Measurement) {
    let Some(metric) = measurement.metrics.iter().find(|metric| metric.name == ELAPSED) else { return };
    let Ok(summary) = &metric.summary else { return };
    let Some(deviation) = summary.deviation else { return };
    let figures: Vec<String> = summary.quartiles.iter().map(|value| figure::seconds(*value)).collect();
    let _ = writeln!(out, "\n Elapsed, quantiles   0% 25% 50% 75% 100%");
    let _ = writeln!(out, "   {} seconds", figures.join("  "));
    let _ = writeln!(out, "   standard deviation {} seconds\n", figure::seconds(deviation));
}

fn notes(out: &mut String, report: &Report) {
    if let Some(interrupted) = &report.interrupted {
        let _ = writeln!(out, " Note: {interrupted}; only complete runs are counted.");
    }
    let scaled = report.measurement.metrics.iter().any(|metric| metric.smallest_share.is_some());
    if scaled {
        let _ = writeln!(
            out,
            " Note: counters shared the hardware; the share of the time they ran is in the last column \
             and their values are extrapolated."
        );
    }
}
