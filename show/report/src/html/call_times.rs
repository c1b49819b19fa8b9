//! The times of the regions' calls, before and after.

use super::elements::{name, scroll};
use crate::chart::{Curve, curves};
use crate::study::{CallTime, RegionReport, StudyReport, region_letter};
use lineup_model::figure::{NO_ESTIMATE, UNKNOWN, change, factor, is_estimate, share, short_time_ns, whole};
use lineup_prove::links::ONE_LINK_MEANS;
use maud::{Markup, html};

pub(super) fn call_times(report: &StudyReport) -> Markup {
    let rows = || {
        let numbered = report.regions.iter().enumerate();
        numbered.filter_map(|(index, region)| Some((index, region, region.time.as_ref()?)))
    };
    if rows().next().is_none() {
        return html! {};
    }
    let table = html! {
        table {
            thead {
                tr {
                    th { "" } th { "region" } th.n { "calls in a run" } th.n { "before" } th.n { "after" } th.n { "change" }
                    th { "interval" } th { "verdict" } th.n { "smallest detectable" }
                }
            }
            tbody {
                @for (index, region, time) in rows() {
                    @let all = &time.all_calls;
                    @let [before, after] = time.mean_ns();
                    tr {
                        td { span.letter { (region_letter(index)) } }
                        td.name { (name(&region.name)) }
                        td.n { (whole(time.calls_per_run)) }
                        td.n { (short_time_ns(before)) }
                        td.n { (short_time_ns(after)) }
                        @if is_estimate(all.ratio_low, all.ratio_high) {
                            td.n { (change(all.ratio)) }
                            td { (change(all.ratio_low)) " to " (change(all.ratio_high)) " (" (lineup_model::figure::level(all.level)) ")" }
                        } @else {
                            td.n { (UNKNOWN) }
                            td { (NO_ESTIMATE) }
                        }
                        td { span.verdict { (all.verdict.word()) } }
                        td.n { (share(all.smallest_detectable)) }
                    }
                }
            }
        }
    };
    html! {
        h3 { "Time of calls" }
        p.muted { "Mean time of a call, callees included: entry and exit are stamped in runs of their own, in mirrored blocks. " (ONE_LINK_MEANS) }
        (scroll("Time of calls, by region", &table))
    }
}

/// The threads' calls by the number of CPUs: a drawing for each region, and the figures.
pub(super) fn contention(report: &StudyReport) -> Markup {
    let Some(contention) = &report.contention else { return html! {} };
    let of_region = |(index, region): (usize, &RegionReport)| {
        let points = contention.of_region(region.id);
        let cpus: Vec<String> = points.iter().map(|(cpus, _)| cpus.to_string()).collect();
        let title = format!("milliseconds of a {}, by CPUs: {}", contention.of(), region.name);
        html! {
            h4 { span.letter { (region_letter(index)) } " " (name(&region.name)) ", milliseconds of a " (contention.of()) }
            (curves(&title, "CPUs", &cpus, &[curve("before", &points, 0), curve("after", &points, 1)]))
            (scroll("Time of calls, by CPUs", &by_cpus(&points)))
        }
    };
    html! {
        h3 { "Threads on one CPU and on more" }
        p.muted { (contention.in_words()) " " (ONE_LINK_MEANS) }
        @for region in report.regions.iter().enumerate() {
            @if !contention.of_region(region.1.id).is_empty() { (of_region(region)) }
        }
    }
}

/// Means of one variant's runs, with the span of their middle half.
fn curve(label: &str, points: &[(usize, &CallTime)], variant: usize) -> Curve {
    let runs = |time: &CallTime| -> Vec<f64> {
        let runs = if variant == 0 { &time.all_calls.before_ns } else { &time.all_calls.after_ns };
        let mut each: Vec<f64> = runs.iter().map(|ns| ns / 1e6 / time.calls_per_run.max(1) as f64).collect();
        each.sort_by(f64::total_cmp);
        each
    };
    let middle = |runs: &[f64]| Some([*runs.get(runs.len() / 4)?, *runs.get(3 * runs.len() / 4)?]);
    Curve {
        name: label.to_owned(),
        values: points.iter().map(|(_, time)| Some(time.mean_ns()[variant] / 1e6)).collect(),
        intervals: points.iter().map(|(_, time)| middle(&runs(time))).collect(),
    }
}

fn by_cpus(points: &[(usize, &CallTime)]) -> Markup {
    html! { table {
        thead { tr {
            th.n { "CPUs" } th.n { "before" } th.n { "after" } th.n { "times as fast" } th { "interval" } th { "verdict" }
        } }
        tbody { @for (cpus, time) in points {
            @let all = &time.all_calls;
            @let [before, after] = time.mean_ns();
            tr {
                td.n { (cpus) }
                td.n { (short_time_ns(before)) }
                td.n { (short_time_ns(after)) }
                @if is_estimate(all.ratio_low, all.ratio_high) {
                    td.n { (factor(1.0 / all.ratio)) }
                    td { (factor(1.0 / all.ratio_high)) " to " (factor(1.0 / all.ratio_low)) " (" (lineup_model::figure::level(all.level)) ")" }
                } @else {
                    td.n { (UNKNOWN) }
                    td { (NO_ESTIMATE) }
                }
                td { span.verdict { (all.verdict.word()) } }
            }
        } }
    } }
}
