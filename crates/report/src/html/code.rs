//! Code in another order.

use super::lines::{name, scroll};
use crate::figure::{UNKNOWN, change, mean, whole};
use crate::study::{COLD_AGAINST, CodeFigure, CodeReport, ColdCalls};
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
        h3 { "Code in another order" }
        p { "By " (code.optimiser) ", " (code.runs_in_words()) "." }
        p.muted {
            (whole(code.ways_exact)) " ways between blocks had exact counts, " (whole(code.ways_estimated))
            " were estimated. Misses are modelled, of the whole process with its libraries."
        }
        (scroll("Code of the whole run", &whole_run))
        @if let Some(cold) = &code.cold {
            (cold_calls(cold))
        } @else if !code.calls.is_empty() {
            (scroll("Code of a call", &calls))
        }
        pre.command tabindex="0" { span { (code.optimiser_command) } }
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
