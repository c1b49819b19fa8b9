//! The page.

use super::text::notes;
use super::{Calls, findings, sections, tables};
use crate::html::{Section, name, page};
use crate::visible::shortened;
use lineup_model::figure::{UNKNOWN, whole};
use lineup_tail::analysis::RegionAnalysis;
use maud::{Markup, html};

/// Longest sentence on a page: names of any length may be part of it.
const SENTENCE_CHARACTERS: usize = 1000;

/// One offline page: nothing is loaded, every text is escaped.
pub fn calls_page(calls: &Calls<'_>) -> String {
    let functions: Vec<&RegionAnalysis> =
        calls.regions().filter(|region| !region.is_span && !region.runs.is_empty()).collect();
    let spans: Vec<&RegionAnalysis> =
        calls.regions().filter(|region| region.is_span && !region.runs.is_empty()).collect();
    let each = |regions: &[&RegionAnalysis],
                show: &dyn Fn(&RegionAnalysis) -> Option<Markup>|
     -> Option<Markup> {
        let shown: Vec<(&str, Markup)> =
            regions.iter().filter_map(|region| Some((region.name.as_str(), show(region)?))).collect();
        (!shown.is_empty()).then(|| html! { @for (region, body) in &shown { h3 { (name(region)) } (body) } })
    };
    let section = |anchor, heading, body: Option<Markup>| body.map(|body| Section { anchor, heading, body });
    let sections: Vec<Section> = [
        section(
            "findings",
            "Findings",
            each(&[&functions[..], &spans[..]].concat(), &|region| Some(found(calls, region))),
        ),
        section(
            "distributions",
            "Distributions",
            each(&functions, &|region| Some(sections::distributions(calls, region))),
        ),
        section(
            "scattergrams",
            "Cycles against stalls",
            each(&functions, &|region| Some(sections::scattergrams(calls, region))),
        ),
        section(
            "interventions",
            "Caches emptied, code fetched",
            each(&functions, &|region| sections::interventions(calls, region)),
        ),
        section("levels", "Other caches", each(&functions, &|region| sections::levels(calls, region))),
        section(
            "second",
            "The second tail",
            each(&functions, &|region| Some(sections::second_tail(calls, region))),
        ),
        section(
            "maxima",
            "New maxima",
            each(&functions, &|region| Some(sections::high_water(calls, region))),
        ),
        section("off", "Interrupts off", each(&spans, &|region| Some(sections::spans(calls, region)))),
        section("regions", "Every region", Some(tables::overview(calls))),
        section("recordings", "Recordings", Some(recordings(calls))),
        section(
            "repeat",
            "To repeat this",
            Some(html! { pre.command tabindex="0" { span { (calls.command) } } }),
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    page("calls", &shortened(calls.title, 120), &lead(calls), &sections)
}

fn lead(calls: &Calls<'_>) -> Markup {
    let runs = calls.analysis.runs.len();
    html! {
        p.lead { "Cost of recorded calls by the processor model: every call counted, none sampled." }
        p.muted { (runs) @if runs == 1 { " recording. " } @else { " recordings. " }
            "Cycles are one for each instruction and the modelled stalls. Intervals are 95 % bootstrap intervals." }
    }
}

fn found(calls: &Calls<'_>, region: &RegionAnalysis) -> Markup {
    html! { ul.plain { @for sentence in findings(calls, region) { li { (shortened(&sentence, SENTENCE_CHARACTERS)) } } } }
}

fn recordings(calls: &Calls<'_>) -> Markup {
    let number = |value: Option<u64>| value.map_or_else(|| UNKNOWN.to_owned(), whole);
    html! { @for facts in &calls.analysis.runs {
        h3 { (shortened(&facts.label, 120)) }
        dl.facts {
            dt { "command" } dd { (name(&facts.command.join(" "))) }
            dt { "machine, virtual CPUs" } dd { (shortened(&facts.machine, 60)) ", " (facts.cpus) }
            @if !facts.emulator.is_empty() { dt { "emulator" } dd { (shortened(&facts.emulator, 200)) } }
            dt { "caches" } dd { (shortened(&facts.caches.join(", "), 200)) }
            dt { "instructions" } dd { (number(facts.instructions)) }
            dt { "hardware interrupts" } dd { (number(facts.interrupts)) }
            dt { "of these, while tracked as off" } dd { (number(facts.interrupts_while_off)) }
            dt { "task switches" } dd { (number(facts.switches)) }
        }
        @for note in notes(facts) { p { b { (shortened(&note, SENTENCE_CHARACTERS)) } } }
    } }
}
