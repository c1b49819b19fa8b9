//! Times for people.

use super::{RegionTimes, Report};
use crate::figures::{duration, grouped, percent};
use lineup_report::text::{Align, Table, TextStyle};
use std::fmt::Write;

/// Marks shown of each region.
const MARKS: usize = 5;

/// A table, and what is to be known.
pub(super) fn text(report: &Report, style: TextStyle) -> String {
    let mut out = String::new();
    let figures = ["calls", "min", "median", "p90", "p99", "p99.9", "max", "mean", "total", "share"];
    let columns = figures.map(|name| (name, Align::Right));
    let mut table = Table::new([("function", Align::Left)].into_iter().chain(columns));
    for region in &report.regions {
        let time = |ns: Option<f64>| ns.map_or_else(|| "-".to_owned(), duration);
        table.row([
            region.name.clone(),
            grouped(region.calls as f64, 0),
            time(region.min_ns),
            time(region.p50_ns),
            time(region.p90_ns),
            time(region.p99_ns),
            time(region.p999_ns),
            time(region.max_ns),
            time(region.mean_ns),
            duration(region.total_ns),
            percent(region.share),
        ]);
    }
    out.push_str(&table.render(style));
    report.regions.iter().for_each(|region| region_text(&mut out, region));
    let _ = writeln!(
        out,
        "the program ran {}; of each time {} were the stamps' own and are left out; each call took {} longer",
        duration(report.elapsed_ns as f64),
        duration(report.stamp_ns),
        duration(report.added_ns)
    );
    if report.processes > 1 {
        let _ = writeln!(out, "processes: {}", grouped(report.processes as f64, 0));
    }
    for note in &report.notes {
        let _ = writeln!(out, "note: {note}");
    }
    if let Some(status) = report.exit_status.filter(|status| *status != 0) {
        let _ = writeln!(out, "the program exited with status {status}");
    }
    out
}

fn region_text(out: &mut String, region: &RegionTimes) {
    let notes = [
        (region.left, "left by longjmp or an exception: not timed"),
        (region.inner, "inside a call of the same function: part of its time"),
        (region.jumped, "ended with a jump to another function: timed up to there"),
    ];
    for (number, what) in notes.iter().filter(|(number, _)| *number > 0) {
        let _ = writeln!(out, "{}: {} {what}", region.name, grouped(*number as f64, 0));
    }
    let skipped = region.high_water.len().saturating_sub(MARKS);
    for mark in region.high_water.iter().skip(skipped) {
        let cpu = mark.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
        let (took, after) = (duration(mark.ns), duration(mark.after_ns));
        let _ = writeln!(out, "{}: longest until then {took}, {after} after the start{cpu}", region.name);
    }
}
