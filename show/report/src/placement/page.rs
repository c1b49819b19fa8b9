//! A study of placement as a page.

use super::report::{PlacementReport, changed};
use crate::html::{Section, page, scroll};
use maud::{Markup, html};

/// One offline page: nothing is loaded, every text is escaped.
pub fn placement_page(report: &PlacementReport) -> String {
    let lead = html! { p.lead { code { (report.command) } } p { (report.verdict) } };
    let sections = [
        Section { anchor: "use", heading: "To use it", body: actions(report) },
        Section { anchor: "confirmed", heading: "Confirmed", body: confirmed(report) },
        Section { anchor: "candidates", heading: "Candidates", body: candidates(report) },
        Section { anchor: "not-tried", heading: "Not tried", body: not_tried(report) },
        Section {
            anchor: "repeat",
            heading: "Repeat",
            body: html! {
                pre.command tabindex="0" { span { (report.repeat) } }
                ul { @for fact in &report.machine { li { (fact.name) ": " (fact.value) } } }
            },
        },
    ];
    page("placement", "Placement", &lead, &sections)
}

fn actions(report: &PlacementReport) -> Markup {
    html! {
        @if report.actions.is_empty() { p { "Nothing: the program stays as it is." } }
        @for action in &report.actions {
            p { (action.purpose) ":" }
            pre.command tabindex="0" { span { (action.text) } }
        }
    }
}

fn confirmed(report: &PlacementReport) -> Markup {
    html! {
        @match &report.confirmed {
            None => p { "No candidate was left to be confirmed." },
            Some(confirmed) => {
                @for input in &confirmed.inputs {
                    p { (confirmed.name) ": " (input.in_words()) "." }
                    @if let Some(difference) = &input.difference { p { (difference) } }
                }
                p { "Effects: " (confirmed.effects) "." }
            }
        }
        @for remark in &report.remarks { p.muted { (remark) "." } }
    }
}

fn candidates(report: &PlacementReport) -> Markup {
    let table = html! {
        table {
            thead { tr { th { "placement" } th { "modelled time" } th { "time" } th { "peak memory" } th { "page faults" } th { "end" } th { "environment" } } }
            tbody { @for one in &report.candidates { tr {
                td { (one.name) } td { (one.modelled_in_words()) } td { (one.time_in_words()) }
                td { (changed(one.peak_memory_ratio)) } td { (changed(one.page_faults_ratio)) }
                td { (one.end) @if let Some(round) = one.round { ", round " (round) } }
                td { code { (one.environment) } }
            } } }
        }
    };
    html! {
        (scroll("Candidates", &table))
        p.muted { "Intervals cover the number of candidates: level " (lineup_model::figure::level(report.level)) " each." }
    }
}

fn not_tried(report: &PlacementReport) -> Markup {
    html! {
        @if report.not_tried.is_empty() { p { "Everything was tried." } }
        ul { @for one in &report.not_tried { li { (one.name) ": " (one.why) } } }
    }
}
