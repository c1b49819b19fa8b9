//! Code in another order.

use super::lines::{name, scroll};
use crate::figure::{UNKNOWN, change, mean, whole};
use crate::study::{CodeFigure, CodeReport};
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
        @if !code.calls.is_empty() { (scroll("Code of a call", &calls)) }
        pre.command tabindex="0" { span { (code.optimiser_command) } }
    }
}

/// The change as a percentage.
fn change_of(figure: &CodeFigure) -> String {
    figure.ratio().map_or_else(|| UNKNOWN.into(), change)
}
