//! Results for a terminal or a pipe.

use lineup_model::figure;
use lineup_sched::report::{Figure, Report, VariantReport};
use lineup_sched::sim::Steps;
use lineup_sched::sweep::{Cell, SweepReport};
use std::fmt::Write;

/// Width of a variant's column.
const COLUMN: usize = 42;

/// The most variants that fit side by side.
const SIDE_BY_SIDE: usize = 4;

pub(crate) fn render(report: &Report, why: bool) -> String {
    let mut out = String::new();
    let Some(first) = report.variants.first() else { return out };
    let domains: Vec<String> = first.domains.iter().map(ToString::to_string).collect();
    let threads = if first.smt { ", threads share cores" } else { "" };
    let _ = writeln!(
        out,
        "{} CPUs, domains {}{threads}; {} seeds of {} each; 95 % intervals, differences paired by seed\n",
        first.cpus,
        domains.join("/"),
        report.seeds.len(),
        figure::time_ns(first.time_ns as f64),
    );
    if report.variants.len() > SIDE_BY_SIDE {
        list(&mut out, report);
    } else {
        table(&mut out, report);
    }
    out.push_str("\n* the interval of the difference from the first variant excludes zero\n");
    if why {
        report.variants.iter().for_each(|variant| explain(&mut out, variant));
    }
    out
}

fn table(out: &mut String, report: &Report) {
    let _ = write!(out, "{:30}", "");
    for variant in &report.variants {
        let _ = write!(out, "{:>COLUMN$}", variant.name);
    }
    out.push('\n');
    let rows = report.variants.first().map_or(0, |variant| variant.figures.len());
    for row in 0..rows {
        let figures: Vec<&Figure> = report.variants.iter().map(|variant| &variant.figures[row]).collect();
        let _ = write!(out, "{:30}", figures[0].name);
        for figure in &figures {
            let _ = write!(out, "{:>COLUMN$}", estimate(figure));
        }
        out.push('\n');
        if figures.iter().any(|figure| figure.difference.is_some()) {
            let _ = write!(out, "{:30}", "");
            for figure in &figures {
                let _ = write!(out, "{:>COLUMN$}", difference(figure));
            }
            out.push('\n');
        }
    }
}

/// One line for each variant, with the figures that differ most.
fn list(out: &mut String, report: &Report) {
    let columns = ["idle", "missed work"];
    let _ = writeln!(out, "{:28}{:>32}{:>32}{:>38}", "", columns[0], columns[1], "difference of idle");
    for variant in &report.variants {
        let figure = |name: &str| variant.figures.iter().find(|figure| figure.name == name);
        let _ = write!(out, "{:28}", variant.name);
        for name in columns {
            let _ = write!(out, "{:>32}", figure(name).map(estimate).unwrap_or_default());
        }
        let _ = writeln!(out, "{:>38}", figure(columns[0]).map(difference).unwrap_or_default());
    }
}

/// A mean with its interval.
fn estimate(figure: &Figure) -> String {
    let Some(mean) = figure.mean else { return "not observed".to_string() };
    let mean = value(mean, figure.unit);
    match figure.interval {
        Some([low, high]) => format!("{mean} [{}, {}]", value(low, figure.unit), value(high, figure.unit)),
        None => mean,
    }
}

fn difference(figure: &Figure) -> String {
    let Some(difference) = &figure.difference else { return String::new() };
    let [low, high] = difference.interval.map(|end| signed(end, figure.unit));
    let mark = if difference.excludes_zero { " *" } else { "" };
    format!("{} [{low}, {high}]{mark}", signed(difference.mean, figure.unit))
}

fn value(value: f64, unit: &str) -> String {
    match unit {
        "%" => format!("{value:.3} %"),
        "ns" => figure::time_ns(value),
        _ => figure::grouped(value, usize::from(value.abs() < 100.0)),
    }
}

fn signed(amount: f64, unit: &str) -> String {
    let text = value(amount, unit);
    if amount >= 0.0 { format!("+{text}") } else { text }
}

/// The reasons why CPUs idled while tasks waited, and the steps that lost load.
fn explain(out: &mut String, variant: &VariantReport) {
    let total: f64 = variant.causes.iter().map(|cause| cause.idle_ms).sum();
    let _ = writeln!(
        out,
        "\n{}: {total:.0} ms of CPU time per run idle while some task waited, because",
        variant.name
    );
    for cause in &variant.causes {
        let _ = writeln!(out, "{:>12.1} ms {:>9.0} passes  {}", cause.idle_ms, cause.passes, cause.text);
    }
    let Steps {
        weight_floored,
        load_per_task_zero,
        average_truncated,
        imbalance_zero,
        hierarchical_load_zero,
        credit_zero,
    } = variant.steps;
    let _ = writeln!(out, "  Steps that lost load, in all runs:");
    for (count, text) in [
        (weight_floored, "a group's weight on a loaded CPU came out below the floor"),
        (load_per_task_zero, "the load per task was truncated to zero"),
        (average_truncated, "the average was truncated to this group's load"),
        (imbalance_zero, "the imbalance was truncated to zero"),
        (hierarchical_load_zero, "a queue's part of its CPU's load was truncated to zero"),
        (credit_zero, "a task was moved and the credit rounded to zero"),
    ] {
        let _ = writeln!(out, "{:>15}  {text}", figure::grouped(count as f64, 0));
    }
}

/// Busy and idle time in each second, and on average, as mpstat shows them.
pub(crate) fn by_second(report: &Report) -> String {
    let mut out = String::from("\n%idle by second, averaged over the seeds\n");
    let seconds =
        report.variants.iter().map(|variant| variant.idle_percent_by_second.len()).max().unwrap_or(0);
    let mut row = |name: String, idle: &dyn Fn(&VariantReport) -> Option<f64>| {
        let _ = write!(out, "{name:>10}");
        for variant in &report.variants {
            let figure = idle(variant).map_or("-".to_string(), |idle| format!("{idle:.2}"));
            let _ = write!(out, "{:>22} {figure:>7}", variant.name);
        }
        out.push('\n');
    };
    for second in 0..seconds {
        row((second + 1).to_string(), &|variant| variant.idle_percent_by_second.get(second).copied());
    }
    row("Average".to_string(), &|variant| {
        variant.figures.iter().find(|figure| figure.name == "idle").and_then(|figure| figure.mean)
    });
    out
}

/// For each variant a grid of idle time.
pub(crate) fn render_sweep(sweep: &SweepReport) -> String {
    let mut out = String::new();
    for (at, name) in sweep.variants.iter().enumerate() {
        let _ =
            writeln!(out, "{name}: idle %, 95 % interval; {} across, {} down", sweep.x.name, sweep.y.name);
        let _ = write!(out, "{:16}", "");
        for x in &sweep.x.values {
            let _ = write!(out, "{x:>26}");
        }
        out.push('\n');
        for (row, y) in sweep.y.values.iter().enumerate() {
            let _ = write!(out, "{y:16}");
            for cell in sweep.cells.iter().filter(|cell| cell.y == row) {
                let _ = write!(out, "{:>26}", idle(cell, at));
            }
            out.push('\n');
        }
        out.push('\n');
    }
    out
}

fn idle(cell: &Cell, variant: usize) -> String {
    let figures = cell.report.variants.get(variant).map(|variant| &variant.figures);
    let idle = figures.and_then(|figures| figures.iter().find(|figure| figure.name == "idle"));
    match idle.map(|figure| (figure.mean, figure.interval)) {
        Some((Some(mean), Some([low, high]))) => format!("{mean:.3} [{low:.3}, {high:.3}]"),
        Some((Some(mean), None)) => format!("{mean:.3}"),
        _ => "not observed".to_string(),
    }
}
