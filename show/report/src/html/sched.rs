//! The page of `lineup sched`: figures by variant, idle time second by second, why it arose, and sweeps.

use super::elements::{name, scroll};
use super::page::{Section, page};
use crate::chart::{Curve, Heat, curves, heat_map};
use lineup_sched::report::{Figure, Report, VariantReport};
use lineup_sched::sim::Steps;
use lineup_sched::sweep::{Cell, SweepReport};
use maud::{Markup, html};

/// The page of a comparison of variants. `command` repeats it.
pub fn sched_page(report: &Report, command: &str) -> String {
    let sections = [
        Section { anchor: "figures", heading: "Figures", body: figures(report) },
        Section { anchor: "seconds", heading: "Idle time second by second", body: seconds(report) },
        Section { anchor: "why", heading: "Why CPUs idled while tasks waited", body: why(report) },
        repeat(command),
    ];
    page("sched", &title(report), &lead(report), &sections)
}

/// The page of a sweep. `command` repeats it.
pub fn sched_sweep_page(sweep: &SweepReport, command: &str) -> String {
    let lead = html! { p {
        "Idle time in per cent of all CPU time, over " (sweep.x.name)
        @if !sweep.y.name.is_empty() { " and " (sweep.y.name) } ". Means over seeds; bars are 95 % intervals."
    } };
    let maps = html! { @for at in 0..sweep.variants.len() {
        h3 { (sweep.variants[at]) }
        (heat_map(&format!("idle per cent, {}", sweep.variants[at]), &heat(sweep, at)))
        details { summary { "Every value with its interval" } (intervals(sweep, at)) }
    } };
    let lines = html! { @for (row, value) in sweep.y.values.iter().enumerate() {
        h3 { (sweep.y.name) " " (value) }
        (curves(&format!("idle per cent by {}, {value}", sweep.x.name), sweep.x.name, &sweep.x.values, &row_curves(sweep, row)))
    } };
    let sections = [
        Section { anchor: "map", heading: "Heat maps", body: maps },
        Section { anchor: "curves", heading: "Curves", body: lines },
        repeat(command),
    ];
    page("sched", &format!("Idle time by {}", sweep.x.name), &lead, &sections)
}

fn repeat(command: &str) -> Section {
    Section {
        anchor: "repeat",
        heading: "To repeat this",
        body: html! { pre.command tabindex="0" { span { (command) } } },
    }
}

fn title(report: &Report) -> String {
    report.variants.first().map_or_else(|| "No variant".to_string(), |first| format!("{} CPUs", first.cpus))
}

fn lead(report: &Report) -> Markup {
    let Some(first) = report.variants.first() else { return html! {} };
    let domains: Vec<String> = first.domains.iter().map(ToString::to_string).collect();
    html! { p {
        "A simulated group-fair scheduler on " (first.cpus) " CPUs, domains " (domains.join("/"))
        @if first.smt { ", threads sharing cores" } "; " (report.seeds.len()) " seeds of "
        (first.time_ns as f64 / 1e9) " s each. Differences are from the first variant, paired by seed, with 95 % intervals."
    } }
}

fn figures(report: &Report) -> Markup {
    let rows = report.variants.first().map_or(0, |variant| variant.figures.len());
    let table = html! { table {
        thead { tr { th scope="col" { "figure" } th scope="col" { "unit" }
            @for variant in &report.variants { th scope="col" { (name(&variant.name)) } }
        } }
        tbody { @for row in 0..rows { tr {
            th scope="row" { (report.variants[0].figures[row].name) }
            td { (report.variants[0].figures[row].unit) }
            @for variant in &report.variants { td.num { @if let Some(figure) = variant.figures.get(row) { (figure_cell(figure)) } } }
        } } }
    } };
    scroll("Figures by variant", &table)
}

fn figure_cell(figure: &Figure) -> Markup {
    let Some(mean) = figure.mean else { return html! { span.muted { "not observed" } } };
    html! {
        (number(mean))
        @if let Some([low, high]) = figure.interval { " " span.muted { "[" (number(low)) ", " (number(high)) "]" } }
        @if let Some(difference) = &figure.difference {
            br;
            @let [low, high] = difference.interval;
            span.muted { @if difference.mean >= 0.0 { "+" } (number(difference.mean)) " [" (number(low)) ", " (number(high)) "]" }
            @if difference.excludes_zero { " excludes 0" }
        }
    }
}

/// Three digits after the point for small numbers, none for large ones.
fn number(value: f64) -> String {
    if value.abs() < 1000.0 { format!("{value:.3}") } else { format!("{value:.0}") }
}

fn seconds(report: &Report) -> Markup {
    let most = report.variants.iter().map(|variant| variant.idle_percent_by_second.len()).max().unwrap_or(0);
    let x: Vec<String> = (1..=most).map(|second| second.to_string()).collect();
    let line = |variant: &VariantReport| Curve {
        name: variant.name.clone(),
        values: variant.idle_percent_by_second.iter().copied().map(Some).collect(),
        intervals: Vec::new(),
    };
    let lines: Vec<Curve> = report.variants.iter().map(line).collect();
    curves("idle per cent by second", "second; idle in per cent, mean over seeds", &x, &lines)
}

fn why(report: &Report) -> Markup {
    html! { @for variant in &report.variants {
        h3 { (name(&variant.name)) }
        (scroll("Causes", &html! { table {
            thead { tr { th scope="col" { "idle, ms per run" } th scope="col" { "passes per run" } th scope="col" { "because" } } }
            tbody { @for cause in &variant.causes { tr {
                td.num { (format!("{:.1}", cause.idle_ms)) } td.num { (format!("{:.0}", cause.passes)) } td { (cause.text) }
            } } }
        } }))
        (steps(&variant.steps))
    } }
}

fn steps(steps: &Steps) -> Markup {
    html! { dl.facts {
        dt { "group weights below the floor" } dd { (steps.weight_floored) }
        dt { "load per task truncated to zero" } dd { (steps.load_per_task_zero) }
        dt { "average truncated to this group's load" } dd { (steps.average_truncated) }
        dt { "imbalance truncated to zero" } dd { (steps.imbalance_zero) }
        dt { "queue's part of the load truncated to zero" } dd { (steps.hierarchical_load_zero) }
        dt { "task moved, credit rounded to zero" } dd { (steps.credit_zero) }
    } }
}

fn idle(cell: &Cell, variant: usize) -> Option<&Figure> {
    cell.report.variants.get(variant)?.figures.iter().find(|figure| figure.name == "idle")
}

fn row_cells(sweep: &SweepReport, row: usize) -> impl Iterator<Item = &Cell> {
    sweep.cells.iter().filter(move |cell| cell.y == row)
}

/// The map as a table, for those who read or hear it.
fn intervals(sweep: &SweepReport, variant: usize) -> Markup {
    let table = html! { table {
        thead { tr {
            th scope="col" { (sweep.y.name) " ↓ " (sweep.x.name) " →" }
            @for value in &sweep.x.values { th scope="col" { (value) } }
        } }
        tbody { @for (row, value) in sweep.y.values.iter().enumerate() { tr {
            th scope="row" { (value) }
            @for cell in row_cells(sweep, row) { td.num { @if let Some(figure) = idle(cell, variant) { (figure_cell(figure)) } } }
        } } }
    } };
    scroll(&format!("Idle per cent, {}", sweep.variants[variant]), &table)
}

fn heat(sweep: &SweepReport, variant: usize) -> Heat {
    let mean = |cell: &Cell, variant| idle(cell, variant).and_then(|figure| figure.mean);
    let all =
        (0..sweep.variants.len()).flat_map(|at| sweep.cells.iter().filter_map(move |cell| mean(cell, at)));
    let rows =
        (0..sweep.y.values.len()).map(|row| row_cells(sweep, row).map(|cell| mean(cell, variant)).collect());
    Heat {
        x_name: sweep.x.name.to_string(),
        x: sweep.x.values.clone(),
        y_name: sweep.y.name.to_string(),
        y: sweep.y.values.clone(),
        greatest: all.fold(0.0, f64::max),
        rows: rows.collect(),
    }
}

fn row_curves(sweep: &SweepReport, row: usize) -> Vec<Curve> {
    let line = |(at, name): (usize, &String)| Curve {
        name: name.clone(),
        values: row_cells(sweep, row).map(|cell| idle(cell, at).and_then(|figure| figure.mean)).collect(),
        intervals: row_cells(sweep, row)
            .map(|cell| idle(cell, at).and_then(|figure| figure.interval))
            .collect(),
    };
    sweep.variants.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_sched::experiment::{Variant, run};
    use lineup_sched::report::report;
    use lineup_sched::scenario::{Scenario, Topology, parse_group};
    use lineup_sched::sweep::Grid;
    use lineup_sched::weights::Resolution;
    use scraper::{Html, Selector};

    fn variants() -> Vec<Variant> {
        let mut scenario = Scenario::new(Topology::new(4, &[2, 4]));
        scenario.groups.push(parse_group("<b>low</b>:shares=2,tasks=9,busy=~9ms,sleep=~9ms").unwrap());
        scenario.time_ns = 2_000_000_000;
        let ten = Scenario { resolution: Resolution::TEN, ..scenario.clone() };
        vec![Variant { name: "R = 0".into(), scenario }, Variant { name: "R = 10".into(), scenario: ten }]
    }

    fn count(page: &str, selector: &str) -> usize {
        Html::parse_document(page).select(&Selector::parse(selector).unwrap()).count()
    }

    #[test]
    fn a_comparison_shows_every_figure_and_escapes_names() {
        let variants = variants();
        let outcomes = run(&variants, &[1, 2, 3], 1, &|_| {}).unwrap();
        let report = report(&variants, &[1, 2, 3], &outcomes).unwrap();
        let page = sched_page(&report, "lineup sched --cpus 4");
        assert_eq!(count(&page, "#figures tbody tr"), report.variants[0].figures.len());
        assert_eq!(count(&page, "b"), 0);
        assert!(page.contains("&lt;b&gt;low&lt;/b&gt;") && page.contains("lineup sched --cpus 4"));
        assert_eq!(count(&page, "#seconds polyline"), 2);
    }

    #[test]
    fn a_sweep_shows_a_map_for_each_variant_and_a_curve_for_each_row() {
        let (x, y) = ("shares=2,64,1024".parse().unwrap(), "tasks=4,9".parse().unwrap());
        let grid = Grid::new(&variants(), x, Some(y)).unwrap();
        let of = |variants: &Vec<Variant>| {
            report(variants, &[1, 2], &run(variants, &[1, 2], 1, &|_| {}).unwrap()).unwrap()
        };
        let sweep = grid.report(grid.points.iter().map(|point| of(&point.2)).collect());
        let page = sched_sweep_page(&sweep, "lineup sched");
        assert_eq!(count(&page, "#map rect.heat"), 2 * 6);
        assert_eq!(count(&page, "#curves svg"), 2);
        assert_eq!(count(&page, "#curves polyline"), 4);
    }
}
