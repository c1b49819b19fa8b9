//! Lines per call: the table over all regions and sizes, and a histogram for each region.

use super::elements::{NAME_CHARACTERS, delta, name, scroll, sentence};
use crate::chart::{Bar, HistogramSeries, histogram_overlay};
use crate::study::{Footprint, LineDistribution, LineKind, RegionReport, StudyReport, region_letter};
use crate::visible::shortened;
use lineup_model::figure::{UNKNOWN, mean, mean_or_unknown, whole};
use maud::{Markup, html};

pub(super) fn regions(report: &StudyReport) -> Markup {
    let table = html! {
        table {
            thead {
                tr { th colspan="7" { "" } th.over colspan="4" scope="colgroup" { "before" } th.over colspan="5" scope="colgroup" { "after" } }
                tr {
                    th { "" } th { "region" } th.n { "weight" } th.n { "calls" } th.n { "calls / s" } th.n { "instructions" } th { "lines" }
                    @for _ in 0..2 { th.n.first { "min" } th.n { "median" } th.n { "max" } th.n { "mean" } }
                    th.n { "change" }
                }
            }
            @for (index, region) in report.regions.iter().enumerate() { (region_rows(index, region)) }
        }
    };
    html! {
        p.muted { "Number of different cache lines that a call touches, callees included: counted, not sampled." }
        (scroll("Lines per call, by region and line size", &table))
        @for region in report.regions.iter().filter(|region| region.calls_abandoned > 0) {
            p { (name(&region.name)) ": " (whole(region.calls_abandoned)) " recorded calls were left by an exception or longjmp." }
        }
        div.pair { @for (index, region) in report.regions.iter().enumerate() { (histograms(index, region)) } }
        @if report.regions.iter().any(|region| !region.misses.is_empty()) { (misses(report)) }
    }
}

fn region_rows(index: usize, region: &RegionReport) -> Markup {
    let rows = region.footprints.len().max(1);
    html! {
        tbody.group {
            @for row in 0..rows {
                tr {
                    @if row == 0 {
                        td rowspan=(rows) { span.letter { (region_letter(index)) } }
                        td.name rowspan=(rows) { (name(&region.name)) }
                        td.n rowspan=(rows) { (mean(region.weight)) }
                        td.n rowspan=(rows) { (whole(region.calls_recorded)) @if let Some(made) = region.calls_made { br; span.muted { "of " (whole(made)) } } }
                        td.n rowspan=(rows) { (mean_or_unknown(region.calls_per_second)) }
                        td.n rowspan=(rows) { (mean_or_unknown(region.instructions_per_call.map(|spread| spread.median))) }
                    }
                    @match region.footprints.get(row) {
                        Some(footprint) => { (footprint_cells(footprint)) }
                        None => { td { (UNKNOWN) } }
                    }
                }
            }
        }
    }
}

fn footprint_cells(footprint: &Footprint) -> Markup {
    let distribution = |lines: &LineDistribution| {
        html! {
            td.n.first { (whole(lines.min())) } td.n { (whole(lines.median())) } td.n { (whole(lines.max())) } td.n { (mean(lines.mean())) }
        }
    };
    html! {
        td.size { (footprint.kind.word()) ", " (footprint.line_bytes) " B" }
        (distribution(&footprint.before))
        @match &footprint.after {
            Some(after) => { (distribution(after)) td.n { (delta(footprint.before.mean(), after.mean())) } }
            None => { td.n.first { (UNKNOWN) } @for _ in 0..4 { td.n { (UNKNOWN) } } }
        }
    }
}

/// The histogram of data lines at 64 bytes, or at the first size there is.
fn histograms(index: usize, region: &RegionReport) -> Markup {
    let data = || region.footprints.iter().filter(|footprint| footprint.kind == LineKind::Data);
    let Some(footprint) = data().find(|footprint| footprint.line_bytes == 64).or_else(|| data().next())
    else {
        return html! {};
    };
    let mut series = vec![histogram_series("before", &footprint.before)];
    series.extend(footprint.after.as_ref().map(|after| histogram_series("after", after)));
    let title = format!(
        "Data lines per call of {}: before {}{}",
        shortened(&region.name, NAME_CHARACTERS),
        in_words(&footprint.before),
        footprint.after.as_ref().map_or_else(String::new, |after| format!("; after {}", in_words(after)))
    );
    html! {
        figure {
            h4 { span.letter { (region_letter(index)) } " " (name(&region.name)) }
            (histogram_overlay(&title, &format!("data lines of {} bytes per call", footprint.line_bytes), &series))
            figcaption.muted {
                span.key {} "before: " (in_words(&footprint.before))
                @if let Some(after) = &footprint.after { br; span.key.after {} "after: " (in_words(after)) }
            }
        }
    }
}

fn histogram_series(label: &str, lines: &LineDistribution) -> HistogramSeries {
    let bar = |(lines, calls): (&u64, &u64)| Bar {
        from: *lines as f64 - 0.45,
        to: *lines as f64 + 0.45,
        count: *calls,
    };
    HistogramSeries { label: label.into(), bars: lines.calls_by_lines().iter().map(bar).collect() }
}

fn in_words(lines: &LineDistribution) -> String {
    if lines.min() == lines.max() {
        return format!("{} in every call", whole(lines.min()));
    }
    format!("{} to {}, median {}", whole(lines.min()), whole(lines.max()), whole(lines.median()))
}

fn misses(report: &StudyReport) -> Markup {
    let table = html! {
        table {
            thead { tr { th { "region" } th { "cache" } th.n { "other data between calls" } th.n { "before" } th.n { "after" } } }
            tbody {
                @for (index, region) in report.regions.iter().enumerate() {
                    @for one in &region.misses {
                        tr {
                            td { span.letter { (region_letter(index)) } }
                            td.name { (sentence(&one.cache)) }
                            td.n { (whole(one.pressure_bytes)) " B" }
                            td.n { (mean(one.before)) }
                            td.n { (mean_or_unknown(one.after)) }
                        }
                    }
                }
            }
        }
    };
    html! {
        h3 { "Misses per call by the cache model" }
        (scroll("Misses per call by the cache model", &table))
    }
}
