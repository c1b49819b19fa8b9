//! The tables of the page.

use super::Calls;
use super::findings::{coefficient, estimate, of_calls};
use crate::html::{name, scroll};
use crate::visible::shortened;
use lineup_model::figure::{UNKNOWN, mean, mean_or_unknown, share, whole};
use lineup_tail::Metric;
use lineup_tail::analysis::{RegionAnalysis, RegionRun};
use lineup_tail::distribution::Difference;
use lineup_tail::second::SecondTail;
use lineup_tail::spans::Spans;
use maud::{Markup, html};

/// Longest label on a page.
const LABEL_CHARACTERS: usize = 60;

/// A run's label.
pub(super) fn label(calls: &Calls<'_>, run: usize) -> String {
    shortened(calls.label(run), LABEL_CHARACTERS)
}

pub(super) fn overview(calls: &Calls<'_>) -> Markup {
    let metrics = [Metric::Instructions, Metric::CodeMissesL1, Metric::Cycles];
    scroll(
        "Every region",
        &html! { table {
            thead {
                tr { th colspan="4" { "" } @for metric in metrics { th.over colspan="3" scope="colgroup" { (metric.name()) } } }
                tr { th scope="col" { "region" } th scope="col" { "run" } th scope="col" { "before the call" } th.n scope="col" { "calls" }
                    @for _ in metrics { th.n.first scope="col" { "median" } th.n scope="col" { "99 %" } th.n scope="col" { "max" } } }
            }
            @for region in &calls.analysis.regions { tbody.group {
                @for run in &region.runs { @for arm in &run.arms { tr {
                    td.name { (name(&region.name)) } td { (label(calls, run.run)) } td { (arm.arm.name()) }
                    td.n { (whole(arm.distributions.first().map_or(0, |d| d.calls as u64))) }
                    @for metric in metrics { @if let Some(d) = arm.distributions.iter().find(|d| d.metric == metric) {
                        td.n.first { (mean(d.median)) } td.n { (mean(d.p99)) } td.n { (mean(d.max)) }
                    } }
                } } }
                @if region.runs.is_empty() { tr { td.name { (name(&region.name)) } td colspan="12" { "never called while recorded" } } }
            } }
        } },
    )
}

/// Every count, over the calls of these runs.
pub(super) fn distributions(calls: &Calls<'_>, runs: &[&RegionRun]) -> Markup {
    scroll(
        "Distributions",
        &html! { table {
            thead { tr { th scope="col" { "run" } th scope="col" { "before the call" } th scope="col" { "count" }
                @for column in ["calls", "min", "median", "99 %", "max", "mean", "± deviation"] { th.n scope="col" { (column) } } } }
            @for run in runs { @for arm in &run.arms { tbody.group {
                @for d in arm.distributions.iter().filter(|d| d.max > 0.0) { tr {
                    td { (label(calls, run.run)) } td { (arm.arm.name()) } td { (d.metric.name()) } td.n { (whole(d.calls as u64)) }
                    @for value in [d.min, d.median, d.p99, d.max, d.mean] { td.n { (mean(value)) } }
                    td.n { (mean_or_unknown(d.deviation)) }
                } }
            } } }
        } },
    )
}

pub(super) fn correlations(calls: &Calls<'_>, region: &RegionAnalysis) -> Markup {
    scroll(
        "Correlations with cycles",
        &html! { table {
            thead { tr { th scope="col" { "run" } th scope="col" { "cycles with" } th.n scope="col" { "calls" }
                th.n scope="col" { "Pearson [95 %]" } th.n scope="col" { "Spearman [95 %]" } } }
            @for run in &region.runs { tbody.group { @for found in &run.correlations { tr {
                td { (label(calls, run.run)) } td { (found.with.name()) } td.n { (whole(found.calls as u64)) }
                td.n { (coefficient(&found.pearson)) } td.n { (coefficient(&found.spearman)) }
            } } } }
        } },
    )
}

pub(super) fn modes(run: &RegionRun) -> Markup {
    scroll(
        "Groups of cycles",
        &html! { table {
            thead { tr { @for column in ["share of calls", "mean cycles", "from", "to"] { th.n scope="col" { (column) } } } }
            tbody { @for mode in &run.modes { tr {
                td.n { (share(mode.share)) } td.n { (mean(mode.mean_cycles)) } td.n { (mean(mode.low_cycles)) } td.n { (mean(mode.high_cycles)) }
            } } }
        } },
    )
}

/// Differences from `first`, under that name.
pub(super) fn differences(what: &str, first: &str, all: &[Difference]) -> Markup {
    scroll(
        what,
        &html! { table {
            thead { tr { th scope="col" { "count" } th scope="col" { "of the calls" } th.n scope="col" { (first) } th.n scope="col" { (what) " [95 %]" } th { "" } } }
            tbody { @for one in all { tr {
                td { (one.metric.name()) } td { (one.statistic.name()) } td.n { (mean(one.first)) } td.n { (estimate(&one.difference)) }
                td { @if one.difference.excludes_zero() { "differs" } }
            } } }
        } },
    )
}

pub(super) fn second_tail(tail: &SecondTail) -> Markup {
    html! {
        (scroll("Cost of calls in the tail", &html! { table {
            thead { tr { th scope="col" { "mean per call" } th.n scope="col" { "usual" } th.n scope="col" { "tail" } } }
            tbody { @for means in tail.means.iter().filter(|means| means.usual + means.tail > 0.0) { tr {
                td { (means.metric.name()) } td.n { (mean(means.usual)) } td.n { (mean(means.tail)) }
            } } }
        } }))
        @if !tail.classes.is_empty() { (classes(tail)) }
        @if !tail.regions.is_empty() { (inner_regions(tail)) }
        @if tail.kept_tail_calls == 0 {
            p { "None of these calls is among those whose accesses were kept: what ran in them is not known. Record with more kept calls." }
        }
        @if !tail.functions.is_empty() { (functions(tail)) }
    }
}

fn classes(tail: &SecondTail) -> Markup {
    html! {
        h4 { "Kinds of work in the tail, and the functions they are known by" }
        (scroll("Kinds of work", &html! { table {
            thead { tr { th scope="col" { "kind" } th.n scope="col" { "in calls of the tail" } th.n scope="col" { "in usual calls" }
                th.n scope="col" { "instructions above usual" } th scope="col" { "functions that ran" } } }
            tbody { @for class in &tail.classes { tr {
                td { (class.class.name()) } td.n { (class.tail_calls) " of " (of_calls(tail, class.class)) } td.n { (class.usual_calls) }
                td.n { (mean(class.excess_instructions_per_call)) }
                td { @for (at, function) in class.functions.iter().enumerate() { @if at > 0 { ", " } (name(function)) }
                    @if class.spin_instructions_per_tail_call > 0.0 { " " (mean(class.spin_instructions_per_tail_call)) " instructions spinning per call" } }
            } } }
        } }))
        @if tail.unclassified_calls > 0 { p.muted { "In " (tail.unclassified_calls) " kept calls of the tail no kind \
                                                     of work was recognised; the list of functions shows what they ran." } }
    }
}

fn inner_regions(tail: &SecondTail) -> Markup {
    html! {
        h4 { "Regions inside" }
        (scroll("Regions inside", &html! { table {
            thead {
                tr { th { "" } @for what in ["calls", "instructions", "L1I misses", "cycles"] { th.over colspan="2" scope="colgroup" { (what) " per call" } } }
                tr { th scope="col" { "region" } @for _ in 0..4 { th.n.first scope="col" { "usual" } th.n scope="col" { "tail" } } }
            }
            tbody { @for inner in &tail.regions { tr {
                td.name { (name(&inner.region)) }
                td.n.first { (mean(inner.calls_per_usual_call)) } td.n { (mean(inner.calls_per_tail_call)) }
                td.n.first { (mean(inner.instructions_per_usual_call)) } td.n { (mean(inner.instructions_per_tail_call)) }
                td.n.first { (mean(inner.code_misses_per_usual_call)) } td.n { (mean(inner.code_misses_per_tail_call)) }
                td.n.first { (mean(inner.cycles_per_usual_call)) } td.n { (mean(inner.cycles_per_tail_call)) }
            } } }
        } }))
    }
}

fn functions(tail: &SecondTail) -> Markup {
    html! { details {
        summary { "Functions that did more in the tail (" (tail.functions.len() + tail.functions_not_listed) ")" }
        p.muted { "From the " (tail.kept_tail_calls) " kept calls of the tail and " (tail.kept_usual_calls) " kept usual ones." }
        (scroll("Functions in the tail", &html! { table {
            thead {
                tr { th { "" } @for what in ["ran in calls", "accesses per call", "bytes of code per call"] { th.over colspan="2" scope="colgroup" { (what) } } }
                tr { th scope="col" { "function" } @for _ in 0..3 { th.n.first scope="col" { "usual" } th.n scope="col" { "tail" } } }
            }
            tbody { @for function in &tail.functions { tr {
                td.name { (name(&function.function)) }
                td.n.first { (function.usual_calls) } td.n { (function.tail_calls) }
                td.n.first { (mean(function.accesses_per_usual_call)) } td.n { (mean(function.accesses_per_tail_call)) }
                td.n.first { (mean(function.code_bytes_per_usual_call)) } td.n { (mean(function.code_bytes_per_tail_call)) }
            } } }
        } }))
        @if tail.functions_not_listed > 0 { p.muted { (tail.functions_not_listed) " more are not listed." } }
    } }
}

pub(super) fn spans(spans: &Spans) -> Markup {
    html! {
        h4 { "The longest" }
        (scroll("The longest spans", &html! { table {
            thead { tr { th.n scope="col" { "cycles" } th.n scope="col" { "I-stall" } th.n scope="col" { "D-stall" } th.n scope="col" { "instructions" }
                th.first scope="col" { "turned off in" } th scope="col" { "turned on in" } th scope="col" { "regions inside" } } }
            tbody { @for span in &spans.longest { tr {
                td.n { (whole(span.cost.cycles)) } td.n { (whole(span.cost.code_stall_cycles)) } td.n { (whole(span.cost.data_stall_cycles)) } td.n { (whole(span.cost.instructions)) }
                td.first { (name(&span.from.text())) } td { (name(&span.to.text())) }
                td { @if span.inside.is_empty() { (UNKNOWN) } @for (at, region) in span.inside.iter().enumerate() { @if at > 0 { ", " } (name(region)) } }
            } } }
        } }))
        h4 { "By where they begin and end" }
        (scroll("Spans by beginning and end", &html! { table {
            thead { tr { th.n scope="col" { "spans" } th.n scope="col" { "most cycles" } th.n scope="col" { "cycles in all" } th.first scope="col" { "turned off in" } th scope="col" { "turned on in" } } }
            tbody { @for between in &spans.between { tr {
                td.n { (whole(between.spans)) } td.n { (whole(between.max_cycles)) } td.n { (whole(between.total_cycles)) }
                td.first { (name(&between.from)) } td { (name(&between.to)) }
            } } }
        } }))
    }
}
