//! Proposals, refusals, the patch.

use super::elements::{name, scroll, sentence};
use crate::study::{
    ConstraintNote, Gain, Patch, Proposal, Refusal, SavingReport, SizeChange, StudyReport, region_letter,
};
use crate::visible::{many_lines, shortened};
use lineup_model::figure::{UNKNOWN, mean, mean_or_unknown, whole};
use maud::{Markup, html};

pub(super) fn proposals(report: &StudyReport) -> Markup {
    html! {
        @if report.proposals.is_empty() && report.refusals.is_empty() { p { "Nothing is proposed." } }
        @for one in &report.proposals { (proposal(report, one)) }
        @for one in &report.refusals { (refusal(report, one)) }
        @if !report.already_good.is_empty() {
            p {
                "Already as good as any allowed order: "
                @for (index, one) in report.already_good.iter().enumerate() { @if index > 0 { ", " } (name(one)) }
                "."
            }
        }
        @if !report.side_effects.is_empty() {
            h3 { "Side effects" }
            ul.plain { @for effect in &report.side_effects { li { (sentence(effect)) } } }
        }
        @if let Some(patch) = &report.patch { (patch_text(patch)) }
    }
}

fn proposal(report: &StudyReport, one: &Proposal) -> Markup {
    html! {
        div.proposal {
            h3 { (one.kind.words) ": " (name(&one.target)) " " span.status { (one.status.describe()) } }
            p { (sentence(&one.summary)) }
            @if !one.worth.is_empty() { (worth(&one.worth)) }
            @if !one.reasons.is_empty() { ul.plain { @for reason in &one.reasons { li { (sentence(reason)) } } } }
            @if let Some(predicted) = &one.predicted { p { (predicted.in_words()) } }
            @if !one.gains.is_empty() { (gains(report, &one.gains, &one.sizes)) }
            @if let Some(check) = one.check { p.muted { "Checked: " (check.describe()) "." } }
            @if !one.constraints.is_empty() {
                h4 { "Constraints obeyed" }
                (notes(&one.constraints))
            }
        }
    }
}

/// The lines saved in each region.
fn worth(worth: &[SavingReport]) -> Markup {
    html! {
        p {
            "Per call: "
            @for (index, one) in worth.iter().enumerate() {
                @if index > 0 { ", " }
                span.letter { (region_letter(one.region)) } " " (one.lines())
            }
            "."
        }
        @for one in worth {
            p { span.letter { (region_letter(one.region)) } " " (one.scale()) "." }
        }
    }
}

/// Expected lines per call under the recorded data model; those of others are folded.
fn gains(report: &StudyReport, gains: &[Gain], sizes: &[SizeChange]) -> Markup {
    let (recorded, others): (Vec<&Gain>, Vec<&Gain>) =
        gains.iter().partition(|gain| report.shows_model(&gain.data_model));
    let (own, other): (Vec<&SizeChange>, Vec<&SizeChange>) =
        sizes.iter().partition(|size| report.shows_model(&size.data_model));
    html! {
        @if !recorded.is_empty() { (gains_table(report, &recorded, &own)) }
        @if !others.is_empty() {
            details {
                summary { "The data model that was not recorded" }
                (gains_table(report, &others, &other))
            }
        }
    }
}

/// A row per region, a column per data model and line size.
fn gains_table(report: &StudyReport, gains: &[&Gain], sizes: &[&SizeChange]) -> Markup {
    let mut columns: Vec<(&str, u32)> = Vec::new();
    for column in gains.iter().map(|gain| (gain.data_model.as_str(), gain.line_bytes)) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    let mut regions: Vec<usize> = gains.iter().map(|gain| gain.region).collect();
    regions.sort_unstable();
    regions.dedup();
    let at = |region: usize, column: &(&str, u32)| {
        gains
            .iter()
            .copied()
            .find(|gain| gain.region == region && (gain.data_model.as_str(), gain.line_bytes) == *column)
    };
    let table = html! {
        table {
            thead { tr {
                th { "lines per call" }
                @for (model, line_bytes) in &columns { th.n { (shortened(model, 20)) ", " (line_bytes) " B" } }
            } }
            tbody {
                @for region in &regions {
                    tr {
                        td.name { span.letter { (region_letter(*region)) } " " (name(report.region_name(*region))) }
                        @for column in &columns { td.n { (gain_cell(at(*region, column))) } }
                    }
                }
                @if !sizes.is_empty() {
                    tr { td.name { "size in bytes" } @for (model, _) in &columns { td.n { (size_cell(sizes, model)) } } }
                }
            }
        }
    };
    scroll("Expected lines per call", &table)
}

fn gain_cell(gain: Option<&Gain>) -> Markup {
    let Some(gain) = gain else { return html! { (UNKNOWN) } };
    let class = match gain.before.map(|before| gain.after - before) {
        Some(change) if change < 0.0 => "better",
        Some(change) if change > 0.0 => "worse",
        _ => "muted",
    };
    html! { (mean_or_unknown(gain.before)) " → " span class=(class) { (mean(gain.after)) } }
}

fn size_cell(sizes: &[&SizeChange], model: &str) -> Markup {
    match sizes.iter().find(|size| size.data_model == model) {
        Some(size) => html! { (whole(size.before_bytes)) " → " (whole(size.after_bytes)) },
        None => html! { (UNKNOWN) },
    }
}

fn notes(notes: &[ConstraintNote]) -> Markup {
    html! {
        ul.plain {
            @for note in notes {
                li {
                    (sentence(&note.rule))
                    @for (index, one) in note.names.iter().enumerate() { @if index == 0 { ": " } @else { ", " } (name(one)) }
                    @if let Some(at) = &note.at { " " span.muted { (shortened(at, 120)) } }
                    @if let Some(detail) = &note.detail { " – " (sentence(detail)) }
                }
            }
        }
    }
}

fn refusal(report: &StudyReport, one: &Refusal) -> Markup {
    html! {
        div.refusal {
            h3 { "refused: " (name(&one.target)) }
            (notes(&one.because))
            @if !one.gains.is_empty() {
                h4 { "Now, and at the least that the hot bytes need" }
                (gains(report, &one.gains, &[]))
            }
            @if let Some(way_out) = &one.way_out { p { (sentence(way_out)) } }
        }
    }
}

fn patch_text(patch: &Patch) -> Markup {
    let text = many_lines(&patch.text);
    html! {
        h3 { "Patch " span.muted { (shortened(&patch.file, 120)) } }
        pre tabindex="0" aria-label="Patch" {
            @for line in text.lines() { span class=(diff_class(line)) { (line) } }
        }
    }
}

fn diff_class(line: &str) -> &'static str {
    match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..]
        | [b'-', b'-', b'-', b' ', ..]
        | [b'@', b'@', ..]
        | [b'd', b'i', b'f', b'f', ..] => "hunk",
        [b'+', ..] => "add",
        [b'-', ..] => "del",
        _ => "",
    }
}
