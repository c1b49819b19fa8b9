//! Figures of distributions: each with its meaning in words, a legend and the same as a table.

use crate::chart::{Bins, CountAxis, StepSeries, scatter, step_legend, steps};
use crate::html::scroll;
use lineup_model::figure::{mean, share, whole};
use lineup_stats::summary::quantile;
use maud::{Markup, html};

/// Values under a name.
pub(crate) struct Series {
    pub(crate) label: String,
    pub(crate) values: Vec<Counted>,
}

/// A value, and how often it occurred.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Counted {
    pub(crate) value: f64,
    pub(crate) times: u64,
}

impl Series {
    /// Values that each stand for one occurrence.
    pub(crate) fn of_each(label: String, values: impl IntoIterator<Item = f64>) -> Series {
        Series { label, values: values.into_iter().map(|value| Counted { value, times: 1 }).collect() }
    }
}

/// The quantile of values that occurred more than once each.
fn counted_quantile(values: &[Counted], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
    let total: u64 = sorted.iter().fold(0, |sum, one| sum.saturating_add(one.times));
    let rank = (q * total as f64).ceil().max(1.0);
    let mut below = 0.0;
    sorted.iter().find_map(|one| {
        below += one.times as f64;
        (below >= rank).then_some(one.value)
    })
}

/// Bins of a figure.
const BINS: usize = 64;

/// A distribution whose greatest value is this much above its median is drawn over a logarithmic axis.
const WIDE: f64 = 100.0;

fn bins(series: &[Series]) -> Bins {
    let all = || {
        series.iter().flat_map(|one| one.values.iter().map(|one| one.value)).filter(|value| value.is_finite())
    };
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    let middle = series.iter().filter_map(|one| counted_quantile(&one.values, 0.5)).fold(0.0, f64::max);
    let is_wide = high > WIDE * middle.max(1.0);
    // Small whole numbers get a bin each.
    let span = high - low;
    let count = if span.is_finite() && (1.0..BINS as f64).contains(&span) && !is_wide {
        span as usize + 1
    } else {
        BINS
    };
    let high = if count < BINS { low + count as f64 } else { high };
    Bins::new(low, high, count, is_wide)
}

/// The upper end of the figure with the linear count, as a share of all values: few far calls would leave the peak no
/// room.
const NEAR: f64 = 0.975;

/// Histograms over each other: the greater part of the calls with a linear count, and all with a logarithmic one.
pub(crate) fn overlay(what: &str, axis: &str, series: &[Series]) -> Markup {
    let all = bins(series);
    let pooled: Vec<Counted> = series.iter().flat_map(|one| one.values.iter().copied()).collect();
    let end = counted_quantile(&pooled, NEAR).unwrap_or(f64::INFINITY);
    let near: Vec<Series> = series
        .iter()
        .map(|one| Series {
            label: one.label.clone(),
            values: one.values.iter().copied().filter(|one| one.value <= end).collect(),
        })
        .collect();
    let left = format!("{axis}, up to {}", mean(end));
    drawn(what, [(&left, bins(&near), &near), (axis, all, series)])
}

/// The upper end of rescaled figures: the last bin counts the values beyond it.
const MOST_PEAKS: f64 = 6.0;

/// The same, each series divided by its own peak, so that the peaks coincide.
pub(crate) fn rescaled(what: &str, series: &[(Series, f64)]) -> Markup {
    let scaled: Vec<Series> = series
        .iter()
        .filter(|(_, peak)| *peak > 0.0)
        .map(|(one, peak)| Series {
            label: format!("{} (peak {})", one.label, mean(*peak)),
            values: one.values.iter().map(|of| Counted { value: of.value / peak, ..*of }).collect(),
        })
        .collect();
    let most = scaled.iter().flat_map(|one| one.values.iter().map(|of| of.value)).fold(1.0, f64::max);
    let bins = Bins::new(0.0, most.min(MOST_PEAKS), BINS, false);
    let axis = if most > MOST_PEAKS {
        format!("multiples of the peak; the last bin holds all up to {}", mean(most))
    } else {
        "multiples of the peak".to_owned()
    };
    drawn(what, [(&axis, bins, &scaled), (&axis, bins, &scaled)])
}

/// One of two figures side by side: the axis in words, its bins, the values.
type Half<'a> = (&'a str, Bins, &'a [Series]);

fn drawn(what: &str, [left, right]: [Half<'_>; 2]) -> Markup {
    let counted = |(_, bins, series): &Half<'_>| -> Vec<StepSeries> {
        series
            .iter()
            .map(|one| StepSeries {
                label: one.label.clone(),
                counts: bins.counts_of(one.values.iter().map(|of| (of.value, of.times))),
            })
            .collect()
    };
    let (near, all) = (counted(&left), counted(&right));
    html! { figure.drawn {
        figcaption { b { (what) } ": shares, and on the right their logarithm" (step_legend(all.iter().map(|one| one.label.as_str()))) }
        div.pair {
            (steps(&format!("{what}: shares"), left.0, &left.1, CountAxis::Linear, &near))
            (steps(&format!("{what}: shares, logarithmic"), right.0, &right.1, CountAxis::Logarithmic, &all))
        }
        details {
            summary { "The figure as a table" }
            (scroll(&format!("{what} as a table"), &bin_table(right.0, &right.1, &all)))
        }
    } }
}

fn bin_table(axis: &str, bins: &Bins, series: &[StepSeries]) -> Markup {
    let rows = series.iter().map(|one| one.counts.len()).max().unwrap_or(0);
    let filled =
        (0..rows).filter(|bin| series.iter().any(|one| one.counts.get(*bin).is_some_and(|count| *count > 0)));
    html! { table {
        thead { tr { th scope="col" colspan="2" { (axis) } @for one in series { th.n scope="col" { (one.label) } } } }
        tbody { @for bin in filled { tr {
            td.n { (mean(bins.start(bin))) } td { "to " (mean(bins.start(bin + 1))) }
            @for one in series { td.n { (whole(one.counts.get(bin).copied().unwrap_or(0))) } }
        } } }
    } }
}

/// One point a call, with the calls in ten groups by the horizontal value as the table.
pub(crate) fn scattergram(what: &str, across: &str, up: &str, said: &str, points: &[(f64, f64)]) -> Markup {
    html! { figure.drawn {
        figcaption { b { (what) } ": " (said) }
        (scatter(what, across, up, points))
        details {
            summary { "The figure as a table" }
            (scroll(&format!("{what} as a table"), &group_table(across, up, points)))
        }
    } }
}

fn group_table(across: &str, up: &str, points: &[(f64, f64)]) -> Markup {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let size = sorted.len().div_ceil(10).max(1);
    let median = |group: &[(f64, f64)]| quantile(&group.iter().map(|point| point.1).collect::<Vec<_>>(), 0.5);
    html! { table {
        thead { tr { th.n scope="col" { "calls" } th scope="col" colspan="2" { (across) } th.n scope="col" { (up) ", median" } } }
        tbody { @for group in sorted.chunks(size) { tr {
            td.n { (group.len()) }
            td.n { (mean(group.first().map_or(0.0, |point| point.0))) }
            td { "to " (mean(group.last().map_or(0.0, |point| point.0))) }
            td.n { (median(group).map_or_else(|_| lineup_model::figure::UNKNOWN.to_owned(), mean)) }
        } } }
    } }
}

/// A share with its name, for captions.
pub(crate) fn of_all(part: usize, all: usize) -> String {
    format!("{part} of {all} ({})", share(part as f64 / all.max(1) as f64))
}
