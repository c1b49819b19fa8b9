//! Several optimisers' versions of a program.

use super::elements::{scroll, sentence};
use crate::study::Optimisers;
use lineup_model::figure::whole;
use lineup_prove::links::ONE_LINK_MEANS;
use maud::{Markup, html};

pub(super) fn optimisers(table: &Optimisers) -> Markup {
    let times = html! { table {
        thead { tr { th { "program" } th.n { "user time" } th.n { "elapsed time" } th { "effects" } th { "made" } } }
        tbody { @for row in &table.rows { tr {
            td { (row.name) } td.n { (row.user_in_words()) } td.n { (row.elapsed_in_words()) }
            td { @if let Some(effects) = &row.effects { (sentence(effects)) } } td { (sentence(&row.made)) }
        } } }
    } };
    let whats = table.rows.first().map(|row| row.figures.as_slice()).unwrap_or_default();
    let figures = html! { table {
        thead { tr { th { "program" } @for figure in whats { th.n { (figure.what) } } } }
        tbody { @for row in &table.rows { tr {
            td { (row.name) } @for figure in &row.figures { td.n { (whole(figure.count)) } }
        } } }
    } };
    html! {
        h3 { (table.heading()) }
        p.muted { (table.times_in_words()) " " (ONE_LINK_MEANS) }
        (scroll("Times of optimised programs", &times))
        ul {
            @for pair in &table.pairs { li { (pair.in_words()) "." } }
            @for together in table.together.iter().chain(&table.patch_together) { li { (together.in_words()) "." } }
        }
        @if !whats.is_empty() { (scroll("Code of optimised programs", &figures)) }
        @if !table.not_observed.is_empty() {
            h4 { "Not observed" }
            ul { @for one in &table.not_observed { li { (one.name) ": " (sentence(&one.why)) } } }
        }
    }
}
