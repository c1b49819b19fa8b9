//! Code in another order.

use super::elements::{name, scroll};
use super::optimisers::optimisers;
use crate::study::{COLD_AGAINST, CodeFigure, CodeReport, ColdCalls, HintsReport};
use lineup_model::figure::{UNKNOWN, change, mean, whole};
use lineup_prove::links::ONE_LINK_MEANS;
use maud::{Markup, html};

pub(super) fn code(report: Option<&CodeReport>) -> Markup {
    let Some(code) = report else { return html! {} };
    let whole_run = html! { table {
        thead { tr { th { "whole run" } th.n { "before" } th.n { "after" } th.n { "change" } } }
        tbody { @for one in &code.whole_run { tr {
            td { (one.what) } td.n { (whole(one.before)) } td.n { (whole(one.after)) } td.n { (change_of(one)) }
        } } }
    } };
    let calls = html! { table {
        thead { tr {
            th { "a call of" } th.n { "lines before" } th.n { "after" } th.n { "pages before" } th.n { "after" }
        } }
        tbody { @for one in &code.calls { tr {
            td.name { (name(&one.region)) }
            @for figure in one.lines.iter().chain(&one.pages) { td.n { (mean(*figure)) } }
        } } }
    } };
    html! {
        h3 { @if code.hints.is_some() { "Hints in the source" } @else { "Code in another order" } }
        @if let Some(hints) = &code.hints { (hinted(hints)) }
        @if let Some(patch) = code.patch_in_words() { p { (patch) } }
        p { "By " (code.optimiser) ", " (code.runs_in_words()) "." }
        p.muted {
            @if code.ways_exact + code.ways_estimated > 0 {
                (whole(code.ways_exact)) " ways between blocks had exact counts, " (whole(code.ways_estimated)) " were estimated. "
            }
            @if !code.whole_run.is_empty() { "Misses are modelled, of the whole process with its libraries." }
        }
        @if !code.whole_run.is_empty() { (scroll("Code of the whole run", &whole_run)) }
        @if let Some(cold) = &code.cold {
            (cold_calls(cold))
        } @else if !code.calls.is_empty() {
            (scroll("Code of a call", &calls))
        }
        @if let Some(table) = &code.optimisers { (optimisers(table)) }
        @if let Some(not_ordered) = code.not_ordered_in_words() { p { (name(&not_ordered)) } }
        @if !code.optimiser_command.is_empty() { pre.command tabindex="0" { span { (code.optimiser_command) } } }
    }
}

/// The hints that were written into the sources, and those that were not.
fn hinted(hints: &HintsReport) -> Markup {
    let given = html! { table {
        thead { tr { th { "place" } th { "hint" } th { "of" } th { "counted" } } }
        tbody { @for one in &hints.given { tr {
            td.name { (name(&one.at.to_string())) } td { (name(&one.hint)) } td { (name(&one.of)) } td { (one.because) }
        } } }
    } };
    html! {
        @if hints.given.is_empty() { p { "None." } } @else { (scroll("Hints", &given)) }
        @if !hints.refused.is_empty() {
            details {
                summary { (whole(hints.refused.len() as u64)) " were refused" }
                ul { @for one in &hints.refused { li { (name(&one.at.to_string())) ": " (one.because) } } }
            }
        }
        @if !hints.unused_copies.is_empty() {
            h4 { "Inlined code that never ran" }
            ul { @for copy in &hints.unused_copies { li { (copy.in_words()) } } }
        }
        @if !hints.unused_paths.is_empty() {
            h4 { "Code that never ran between code that does" }
            ul { @for path in &hints.unused_paths { li { (path.in_words()) } } }
        }
    }
}

/// Calls that find no code in the caches, in three orders.
fn cold_calls(cold: &ColdCalls) -> Markup {
    let orders = ["as linked", "by counts", "by calls"];
    let table = html! { table {
        thead { tr {
            th { "a call of" }
            @for order in orders { th.n { "lines " (order) } }
            @for order in orders { th.n { "pages " (order) } }
            th { "typical time of a call whose code was flushed" }
        } }
        tbody { @for one in &cold.regions { tr {
            td.name { (name(&one.region)) }
            @for figure in one.lines.iter().chain(&one.pages) { td.n { (mean(*figure)) } }
            td {
                @for (time, other) in one.time.iter().zip(COLD_AGAINST) {
                    @if let Some(time) = time { p { (time.in_words(other)) } }
                }
            }
        } } }
    } };
    html! {
        h4 { "Calls that find none of their code in the caches" }
        p.muted {
            "Every line that such a call fetches is a miss. The order was made from " (whole(cold.recorded_calls))
            " recorded calls. Times are medians of a run's calls, after the program's lines that recorded calls execute were flushed, in mirrored \
             blocks of runs. " (ONE_LINK_MEANS)
        }
        (scroll("Calls that find no code in the caches", &table))
        @for why in &cold.not_timed { p.muted { "Not timed " (why) "." } }
    }
}

/// The change as a percentage.
fn change_of(figure: &CodeFigure) -> String {
    figure.ratio().map_or_else(|| UNKNOWN.into(), change)
}
