//! The page of a study.

use super::call_times::{call_times, contention};
use super::code::code;
use super::elements::{name, scroll, sentence};
use super::guest::guest;
use super::lines::regions;
use super::map::maps;
use super::page::{Section, page};
use super::proof::proof;
use super::proposal::proposals;
use crate::study::{CertificateReport, Coverage, LineKind, StudyReport, region_letter};
use crate::visible::shortened;
use lineup_model::figure::{UNKNOWN, mean, share, whole};
use maud::{Markup, html};

/// The study as one HTML page.
pub fn study_page(report: &StudyReport) -> String {
    let mut sections = Vec::new();
    if !report.levers.is_empty() {
        sections.push(Section { anchor: "levers", heading: "Levers", body: levers(report) });
    }
    sections.extend([
        Section {
            anchor: "verdict",
            heading: "Verdict",
            body: html! { (proof(report.proof.as_ref(), report.not_proven.as_deref())) (certificate(report)) (call_times(report)) (contention(report)) (guest(report.guest.as_ref())) (code(report.code.as_ref())) },
        },
        Section { anchor: "lines", heading: "Lines per call", body: regions(report) },
        Section { anchor: "maps", heading: "Line maps", body: maps(report) },
        Section { anchor: "proposals", heading: "Proposals", body: proposals(report) },
        Section { anchor: "coverage", heading: "Coverage", body: coverage(report.coverage.as_ref()) },
        Section { anchor: "not-observed", heading: "Not observed", body: not_observed(report) },
        Section { anchor: "repeat", heading: "To repeat", body: repeat(report) },
    ]);
    page("study", &shortened(&report.title, 120), &lead(report), &sections)
}

/// A row for each lever, and the ways to use it.
fn levers(report: &StudyReport) -> Markup {
    let table = html! {
        table {
            thead { tr { th { "lever" } th.n { "time" } th { "result" } } }
            tbody { @for lever in &report.levers { tr {
                td { (lever.lever) }
                td.n { (lever.time_in_words()) }
                td { (sentence(&lever.result)) @if let Some(page) = &lever.page { " " a href=(page) { "details" } } }
            } } }
        }
    };
    html! {
        (scroll("Levers", &table))
        @for lever in report.levers.iter().filter(|lever| !lever.details.is_empty()) {
            h4 { (lever.lever) ": " "tried and refused" }
            ul { @for detail in &lever.details { li { (sentence(detail)) } } }
        }
        @for lever in &report.levers {
            @for action in &lever.actions {
                h4 { (lever.lever) ": " (sentence(&action.purpose)) }
                pre.command tabindex="0" { span { (action.text) } }
            }
        }
    }
}

/// The findings at a glance: data lines at 64 bytes and time.
fn lead(report: &StudyReport) -> Markup {
    html! {
        @if let Some(answer) = report.answer() { p.lead { (sentence(&answer)) } }
        @if let Some(proof) = &report.proof { p.lead { (sentence(&proof.conclusion)) } }
        @if report.not_proven.is_some() { p.lead { "Not proven." } }
        dl.facts {
            @for (index, region) in report.regions.iter().enumerate() {
                @for footprint in region.footprints.iter().filter(|one| one.kind == LineKind::Data && one.line_bytes == 64) {
                    dt { span.letter { (region_letter(index)) } " " (name(&region.name)) }
                    dd {
                        (mean(footprint.before.mean()))
                        @if let Some(after) = &footprint.after { " → " (mean(after.mean())) }
                        " data lines of 64 bytes per call"
                        @if let Some(rate) = region.calls_per_second { ", " (mean(rate)) " calls per second" }
                    }
                }
            }
            @if let Some(coverage) = &report.coverage {
                dt { "Accesses named" }
                dd { (coverage.share.map_or_else(|| UNKNOWN.into(), share)) }
            }
        }
    }
}

/// The certificate of the patch, with the kinds of what is open.
fn certificate(report: &StudyReport) -> Markup {
    let Some(of) = &report.certificate else { return html! {} };
    let kinds = match of {
        CertificateReport::Written { open_kinds, .. } => open_kinds.as_slice(),
        CertificateReport::NotCovered { .. } => &[],
    };
    html! {
        dl.facts {
            dt { "Certificate" }
            dd { (sentence(&of.sentence())) }
            @for one in kinds { dt { "Open: " (one.kind) } dd { (whole(one.count)) } }
        }
    }
}

fn coverage(coverage: Option<&Coverage>) -> Markup {
    let Some(coverage) = coverage else { return html! { p { "Nothing was recorded." } } };
    let part =
        |accesses: u64| if coverage.accesses == 0 { 0.0 } else { accesses as f64 / coverage.accesses as f64 };
    let row = |what: Markup, accesses: u64, class: &str| {
        html! {
            tr {
                td { (what) }
                td.n { (whole(accesses)) }
                td.n { (share(part(accesses))) }
                td.bars aria-hidden="true" { span class={ "bar " (class) } style=(format!("width:{:.1}%", 100.0 * part(accesses))) {} }
            }
        }
    };
    html! {
        p {
            (coverage.share.map_or_else(|| UNKNOWN.into(), share)) " of the data accesses in the recorded calls have a name: "
            (whole(coverage.named)) " of " (whole(coverage.accesses)) "."
            @if let Some(off_stack) = coverage.share_off_stack { " Outside the stack: " (share(off_stack)) "." }
        }
        div.pair {
            @if !coverage.by_class.is_empty() {
                table {
                    thead { tr { th { "what was accessed" } th.n { "accesses" } th.n { "share" } th.bars { "" } } }
                    tbody { @for one in &coverage.by_class { (row(html! { (sentence(&one.class)) }, one.accesses, "")) } }
                }
            }
            table {
                thead { tr { th { "named by" } th.n { "accesses" } th.n { "share" } th.bars { "" } } }
                tbody { @for one in &coverage.by_evidence { (row(html! { (sentence(&one.evidence)) }, one.accesses, "")) } }
                @if !coverage.unnamed_by_function.is_empty() {
                    tbody.group {
                        @for one in &coverage.unnamed_by_function { (row(html! { "no name, in " (name(&one.function)) }, one.accesses, "none")) }
                    }
                }
            }
        }
    }
}

fn not_observed(report: &StudyReport) -> Markup {
    html! {
        @if report.not_observed.is_empty() { p { "Nothing that the recorder knows of." } }
        dl.facts { @for one in &report.not_observed { dt { (sentence(&one.what)) } dd { (sentence(&one.consequence)) } } }
    }
}

fn repeat(report: &StudyReport) -> Markup {
    html! {
        @for command in &report.commands {
            h4 { (sentence(&command.purpose)) }
            pre.command tabindex="0" { span { (command.text) } }
        }
        @if !report.setting.is_empty() {
            h3 { "Setting" }
            dl.facts { @for fact in &report.setting { dt { (sentence(&fact.name)) } dd { (sentence(&fact.value)) } } }
        }
    }
}
