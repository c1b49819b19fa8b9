//! Two kernels that were built and booted, side by side.

use super::elements::{name, scroll, sentence};
use crate::study::{GuestComparison, RegionCosts, TypeLines};
use lineup_model::figure::{mean, whole};
use maud::{Markup, html};

pub(super) fn guest(guest: Option<&GuestComparison>) -> Markup {
    let Some(guest) = guest else { return html! {} };
    html! {
        h3 { "Two kernels, booted" }
        dl.facts { @for fact in &guest.compared { dt { (sentence(&fact.name)) } dd { (sentence(&fact.value)) } } }
        @if !guest.types.is_empty() {
            (scroll("Lines of each type in both kernels", &types(&guest.types)))
        }
        @for costs in &guest.costs {
            h4 { (name(&costs.region)) ": " (whole(costs.calls_before)) " calls before, " (whole(costs.calls_after)) " after" }
            (scroll("Cost of a call in both kernels", &means(costs)))
        }
    }
}

fn types(all: &[TypeLines]) -> Markup {
    html! {
        table {
            thead { tr { th { "type" } th { "region" } th.n { "lines before" } th.n { "predicted" } th.n { "lines after" } } }
            tbody {
                @for one in all {
                    tr {
                        td { (name(&one.type_name)) }
                        td { (name(&one.region)) }
                        td.n { (mean(one.before)) }
                        td.n { (mean(one.predicted)) }
                        td.n { (mean(one.after)) }
                    }
                }
            }
        }
    }
}

fn means(costs: &RegionCosts) -> Markup {
    html! {
        table {
            thead { tr { th { "per call" } th.n { "before" } th.n { "after" } th.n { "difference, 95 %" } } }
            tbody {
                @for one in &costs.means {
                    tr {
                        td { (sentence(&one.name)) }
                        td.n { (mean(one.before)) }
                        td.n { (mean(one.after)) }
                        td.n { (one.difference.map_or_else(|| "too few calls".into(), |(low, high)| format!("{low:+.2} to {high:+.2}"))) }
                    }
                }
            }
        }
    }
}
