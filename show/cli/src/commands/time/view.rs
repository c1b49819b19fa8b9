//! Times for people.

use super::interventions::{ArmTimes, Plan};
use super::report::{RegionTimes, Report};
use lineup_model::figure;
use lineup_report::text::{Align, Table, TextStyle};
use lineup_trace::attribution::MIN_CALLS;
use std::fmt::Write;

/// Marks shown of each region.
const MARKS: usize = 5;

/// A table, and notes.
pub(crate) fn text(report: &Report, style: TextStyle) -> String {
    let mut out = String::new();
    let figures = ["calls", "min", "median", "p90", "p99", "p99.9", "max", "mean", "total", "share"];
    let columns = figures.map(|name| (name, Align::Right));
    let mut table = Table::new([("function", Align::Left)].into_iter().chain(columns));
    for region in &report.regions {
        table.row([
            region.name.clone(),
            figure::grouped(region.calls as f64, 0),
            time(region.min_ns),
            time(region.p50_ns),
            time(region.p90_ns),
            time(region.p99_ns),
            time(region.p999_ns),
            time(region.max_ns),
            time(region.mean_ns),
            figure::time_ns(region.total_ns),
            figure::share(region.share),
        ]);
    }
    out.push_str(&table.render(style));
    report.regions.iter().for_each(|region| region_text(&mut out, region));
    if let Some(plan) = &report.interventions {
        out.push_str(&arms(report, plan, style));
    }
    let _ = writeln!(
        out,
        "the program ran {}; of each time {} were the stamps' own and are left out; each call took at least {} longer",
        figure::time_ns(report.elapsed_ns as f64),
        figure::time_ns(report.stamp_ns),
        figure::time_ns(report.added_ns)
    );
    if report.processes > 1 {
        let _ = writeln!(out, "processes: {}", figure::grouped(report.processes as f64, 0));
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
        (
            region.left,
            "left by longjmp, an exception or a switch of stacks, or not ended when the program did: not timed",
        ),
        (region.inner, "inside a call of the same function: part of its time"),
        (region.jumped, "ended with a jump to another function: timed up to there"),
    ];
    for (number, what) in notes.iter().filter(|(number, _)| *number > 0) {
        let _ = writeln!(out, "{}: {} {what}", region.name, figure::grouped(*number as f64, 0));
    }
    let skipped = region.high_water.len().saturating_sub(MARKS);
    for mark in region.high_water.iter().skip(skipped) {
        let cpu = mark.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
        let (took, after) = (figure::time_ns(mark.ns), figure::time_ns(mark.after_ns));
        let _ = writeln!(out, "{}: longest until then {took}, {after} after the start{cpu}", region.name);
    }
}

/// The sampled calls, by the intervention before them.
fn arms(report: &Report, plan: &Plan, style: TextStyle) -> String {
    let mut out = String::from("\n");
    let level = figure::level(plan.level.fraction());
    let effect = format!("raises the median by ({level} interval)");
    let names = ["function", "before the call"].map(|name| (name, Align::Left));
    let figures = ["calls", "min", "median", "p90", "p99", "max", "mean"].map(|name| (name, Align::Right));
    let mut table = Table::new(names.into_iter().chain(figures).chain([(effect.as_str(), Align::Left)]));
    let drawn = || report.regions.iter().filter_map(|region| Some((region, region.interventions.as_ref()?)));
    for (region, drawn) in drawn() {
        for arm in &drawn.arms {
            table.row([
                region.name.clone(),
                arm.arm.to_owned(),
                figure::grouped(arm.calls as f64, 0),
                time(arm.min_ns),
                time(arm.p50_ns),
                time(arm.p90_ns),
                time(arm.p99_ns),
                time(arm.max_ns),
                time(arm.mean_ns),
                raised(arm),
            ]);
        }
    }
    out.push_str(&table.render(style));
    for (region, drawn) in drawn() {
        let timed: u64 = drawn.arms.iter().map(|arm| arm.calls).sum();
        let without = drawn.drawn.saturating_sub(timed);
        let without =
            if without == 0 { String::new() } else { format!(", {without} of them without a time") };
        let (calls, spent) = (figure::grouped(drawn.drawn as f64, 0), figure::time_ns(drawn.spent_ns));
        let _ =
            writeln!(out, "{}: {calls} calls were sampled{without}; {spent} went before them", region.name);
        if drawn.arms.iter().any(|arm| arm.arm != "none" && arm.raises_median_ns.is_none()) {
            let longer = "let the program run longer, or sample more often with --intervene-every";
            let _ = writeln!(out, "{}: too few calls were sampled for an effect; {longer}", region.name);
        }
    }
    let _ = writeln!(
        out,
        "sampled calls are in no other figure; one of {} on average, {}; random choices began at --seed {}",
        plan.every,
        match plan.rest {
            0 => "at any cost".to_owned(),
            rest => format!("with rests of {rest} times what was done"),
        },
        plan.seed
    );
    out
}

/// A time in a table.
fn time(ns: Option<f64>) -> String {
    ns.map_or_else(|| "-".to_owned(), figure::time_ns)
}

fn raised(arm: &ArmTimes) -> String {
    match (&arm.raises_median_ns, arm.arm) {
        (Some(by), _) => {
            format!(
                "{} [{}, {}]",
                figure::time_ns(by.value),
                figure::time_ns(by.low),
                figure::time_ns(by.high)
            )
        }
        (None, "none") => String::new(),
        (None, _) => format!("fewer than {MIN_CALLS} calls of one"),
    }
}
