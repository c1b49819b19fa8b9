//! Elements of pages: names, sentences, wide tables, changes.

use crate::visible::shortened;
use lineup_model::figure::mean;
use maud::{Markup, html};

/// Longest name on a page; the full one is in the JSON form.
pub(crate) const NAME_CHARACTERS: usize = 120;

/// A name as code, on one line and not too long.
pub(crate) fn name(text: &str) -> Markup {
    html! { code { (shortened(text, NAME_CHARACTERS)) } }
}

/// Longest sentence on a page: names of any length may be part of it.
const SENTENCE_CHARACTERS: usize = 1000;

/// A sentence, not too long.
pub(super) fn sentence(text: &str) -> String {
    shortened(text, SENTENCE_CHARACTERS)
}

/// A scrolling frame for a wide table.
pub(crate) fn scroll(label: &str, table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (table) } }
}

/// A change of a mean, better when it falls.
pub(super) fn delta(before: f64, after: f64) -> Markup {
    let change = after - before;
    let (class, sign) = match change {
        c if c < 0.0 => ("better", ""),
        c if c > 0.0 => ("worse", "+"),
        _ => ("muted", ""),
    };
    html! { span class=(class) { (sign) (mean(change)) } }
}
