//! The page of a comparison: verdicts, distributions laid over each other, quantiles, run order.

use super::page::{Section, page};
use crate::chart::{
    Bar, HistogramSeries, IntervalMark, QuantileSeries, RunOrderSeries, histogram_overlay, quantile_plot,
    ratio_interval, run_order,
};
use lineup_model::figure::{NO_ESTIMATE, change, is_estimate, mean, time_ns};
use lineup_prove::compare::{Collected, ComparedMetric, Comparison, Contrast, Estimated, VariantValues};
use lineup_prove::detectable_in_words;
use lineup_prove::links::{links_mean, of_links};
use lineup_prove::metric::Unit;
use lineup_stats::histogram::Histogram;
use lineup_stats::modes;
use lineup_stats::verdict::Verdict;
use maud::{Markup, html};

/// A page's content apart from the comparison itself.
#[derive(Clone, Debug)]
pub struct ComparisonPage<'c> {
    /// The commands, one per variant.
    pub commands: &'c [String],
    /// The load that all of them ran under.
    pub under: Option<&'c str>,
    /// The reason why no more blocks were run, in words.
    pub stopped: &'c str,
    /// Changes below this share count as equivalent.
    pub margin: f64,
    /// The number of links of each program.
    pub links: u64,
    /// Confidence level.
    pub level: f64,
    /// The command that repeats the comparison.
    pub repeat: &'c str,
}

/// Bars in a histogram.
const BARS: usize = 30;

/// One offline page: nothing is loaded, every text is escaped.
pub fn comparison_page(about: &ComparisonPage<'_>, comparison: &Comparison, collected: &Collected) -> String {
    let lead = html! {
        @for (index, command) in about.commands.iter().enumerate() { p.lead { b { (letter(index)) } ": " code { (command) } } }
        @if let Some(load) = about.under { p { "under " code { (load) } } }
        p.muted { (comparison.blocks) " blocks (" (about.stopped) "), " (lineup_model::figure::level(about.level)) " intervals, margin " (lineup_model::figure::level(about.margin)) ". " (links_mean(about.links)) }
    };
    let (first, others) = match comparison.metrics.split_first() {
        Some((first, others)) => (Some(first), others),
        None => (None, &[][..]),
    };
    let sections = [
        Section {
            anchor: "verdict",
            heading: "Verdict",
            body: html! { @if let Some(metric) = first { (primary(about, metric, collected)) } },
        },
        Section { anchor: "all", heading: "Every metric", body: table(about, comparison) },
        Section {
            anchor: "others",
            heading: "Distributions",
            body: html! { @for metric in others { (distributions(metric, about)) } },
        },
        Section {
            anchor: "repeat",
            heading: "Repeat",
            body: html! { pre.command tabindex="0" { span { (about.repeat) } } },
        },
    ];
    let title = first.map_or("Comparison", |metric| metric.name.as_str());
    page("comparison", title, &lead, &sections)
}

fn letter(variant: usize) -> String {
    u8::try_from(variant)
        .ok()
        .filter(|number| *number < 26)
        .map_or_else(|| format!("V{}", variant + 1), |number| char::from(b'A' + number).to_string())
}

fn primary(about: &ComparisonPage<'_>, metric: &ComparedMetric, collected: &Collected) -> Markup {
    html! {
        @for contrast in &metric.contrasts {
            p { (letter(contrast.variant.0)) " against A: " span.verdict { (contrast.verdict.word()) } ", " (of_links(about.links)) ": " (estimate(contrast, &metric.unit)) }
            @if let Estimated::Ratio { judged, .. } = &contrast.estimate {
                @let mark = IntervalMark { ratio: judged.ratio, low: judged.interval.low, high: judged.interval.high, margin: about.margin };
                figure { (ratio_interval(&format!("Change of {}", metric.name), &mark)) }
            }
        }
        (distributions(metric, about))
        figure { (order(metric, collected)) }
    }
}

fn estimate(contrast: &Contrast, unit: &Unit) -> Markup {
    html! {
        @match &contrast.estimate {
            Estimated::Ratio { judged, .. } if contrast.verdict == Verdict::Inconclusive && !is_estimate(judged.interval.low, judged.interval.high) => { (NO_ESTIMATE) }
            Estimated::Ratio { judged, .. } => { (change(judged.ratio)) " (" (change(judged.interval.low)) " to " (change(judged.interval.high)) ")" }
            Estimated::Difference(difference) => { (value(difference.difference, unit)) " (" (value(difference.interval.low, unit)) " to " (value(difference.interval.high, unit)) ")" }
        }
        @if let Some(share) = contrast.link_share { span.muted { "; links are " (lineup_model::figure::share(share)) " of the spread of blocks" } }
        @if let Some(smallest) = contrast.smallest_detectable { span.muted { "; " (detectable_in_words(smallest)) } }
    }
}

fn table(about: &ComparisonPage<'_>, comparison: &Comparison) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { th { "metric" } @for index in 0..about.commands.len() { th { (letter(index)) ", mean" } } th { "change" } th { "verdict, " (of_links(about.links)) } } }
            tbody { @for metric in &comparison.metrics { tr {
                td { (metric.name) }
                @for variant in &metric.variants {
                    td { @match variant { Ok(values) => (value(values.summary.mean, &metric.unit)), Err(absence) => (absence.words()) } }
                }
                td { @for contrast in &metric.contrasts { p { (letter(contrast.variant.0)) ": " (estimate(contrast, &metric.unit)) } } }
                td { @for contrast in &metric.contrasts { p { (contrast.verdict.word()) } } }
            } } }
        } }
    }
}

/// A value in its unit.
fn value(value: f64, unit: &Unit) -> String {
    match unit {
        Unit::Nanoseconds => time_ns(value),
        Unit::Bytes => format!("{} KiB", mean(value / 1024.0)),
        Unit::Events => mean(value),
        Unit::Named(name) => format!("{} {name}", mean(value)),
    }
}

/// The divisor of values on an axis, and the axis' unit.
fn axis(unit: &Unit) -> (f64, &str) {
    match unit {
        Unit::Nanoseconds => (1e6, "ms"),
        Unit::Bytes => (1024.0, "KiB"),
        Unit::Events => (1.0, "events"),
        Unit::Named(name) => (1.0, name),
    }
}

fn seen(metric: &ComparedMetric) -> impl Iterator<Item = (usize, &VariantValues)> {
    metric.variants.iter().enumerate().filter_map(|(index, variant)| Some((index, variant.as_ref().ok()?)))
}

fn distributions(metric: &ComparedMetric, about: &ComparisonPage<'_>) -> Markup {
    let (divisor, unit) = axis(&metric.unit);
    let quantiles: Vec<QuantileSeries> = seen(metric)
        .map(|(index, values)| QuantileSeries { label: letter(index), values: values.values.clone() })
        .collect();
    if quantiles.is_empty() {
        return html! { h3 { (metric.name) } p { "not observed on this machine" } };
    }
    let title = format!("{}: how the runs of {} variants are distributed", metric.name, about.commands.len());
    html! {
        h3 { (metric.name) }
        ul.legend { @for (index, values) in seen(metric) { li {
            (letter(index)) @if index == 0 { " dashed" } @else { " solid" }
            @let modes: Vec<String> = modes::modes(&values.modes).map(|mode| value(mode.mean, &metric.unit)).collect();
            @let outliers: usize = modes::outliers(&values.modes).map(|group| group.count).sum();
            @if modes.len() > 1 { ": " (modes.len()) " modes, at " (modes.join(", ")) }
            @if outliers > 0 { "; outliers: " (outliers) }
            @if values.series.is_some_and(|series| series.drifts()) { "; drifts" }
        } } }
        div.pair {
            figure { (histogram_overlay(&title, &format!("{} in {unit}", metric.name), &bars(metric, divisor))) }
            figure { (quantile_plot(&title, &metric.name, &quantiles, |tick| value(tick, &metric.unit))) }
        }
    }
}

/// All variants in the same bins.
fn bars(metric: &ComparedMetric, divisor: f64) -> Vec<HistogramSeries> {
    let low = seen(metric).map(|(_, values)| values.summary.min()).fold(f64::INFINITY, f64::min);
    let high = seen(metric).map(|(_, values)| values.summary.max()).fold(f64::NEG_INFINITY, f64::max);
    let series = seen(metric).map(|(index, values)| {
        let histogram = Histogram::with_range(&values.values, low, high, BARS).ok();
        let bars = histogram.into_iter().flat_map(|histogram| {
            let Histogram { start, bin_width, counts } = histogram;
            (0u32..).zip(counts).map(move |(bin, count)| Bar {
                from: (start + f64::from(bin) * bin_width) / divisor,
                to: (start + f64::from(bin + 1) * bin_width) / divisor,
                count,
            })
        });
        HistogramSeries { label: letter(index), bars: bars.collect() }
    });
    series.collect()
}

fn order(metric: &ComparedMetric, collected: &Collected) -> Markup {
    let series: Vec<RunOrderSeries> = seen(metric)
        .map(|(index, values)| {
            let positions =
                collected.runs.iter().enumerate().filter(|(_, (slot, _))| slot.variant.0 == index);
            let points = positions.zip(&values.values).map(|((at, _), value)| (at as f64, *value));
            RunOrderSeries { label: letter(index), points: points.collect() }
        })
        .collect();
    run_order(&format!("{} run by run", metric.name), &series, |tick| value(tick, &metric.unit))
}
