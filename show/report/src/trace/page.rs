//! The page.

use super::{TracedRun, counters_read, high_water_listing, sections};
use crate::html::{Section, name, page, scroll};
use lineup_model::figure::whole;
use lineup_trace::NameKind;
use lineup_trace::attribution::Attribution;
use maud::{Markup, html};

/// One offline page for one or several runs, and the known causes: nothing is loaded, every text is escaped.
pub fn trace_page(runs: &[TracedRun], causes: &[Attribution]) -> String {
    let names = names(runs);
    let each = |show: &dyn Fn(&str) -> Option<Markup>| -> Option<Markup> {
        let shown: Vec<(&str, Markup)> =
            names.iter().filter_map(|text| Some((text.as_str(), show(text)?))).collect();
        (!shown.is_empty()).then(|| html! { @for (text, body) in &shown { h3 { (name(text)) } (body) } })
    };
    let causes = each(&|text| {
        let found: Vec<&Attribution> = causes.iter().filter(|found| found.region == text).collect();
        (!found.is_empty()).then(|| html! { @for found in found { (sections::causes(found)) } })
    });
    let section = |anchor, heading, body: Option<Markup>| body.map(|body| Section { anchor, heading, body });
    let sections: Vec<Section> = [
        section("causes", "Causes of the tail", causes),
        section("modes", "Modes", each(&|text| sections::modes(runs, text))),
        section("distributions", "Distributions", each(&|text| sections::distributions(runs, text))),
        section(
            "scattergrams",
            "Duration against waits and counters",
            each(&|text| sections::scattergrams(runs, text)),
        ),
        section("maxima", "New maxima", maxima(runs)),
        section("recorded", "Recorded data", Some(recorded(runs))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let title = runs.first().map_or_else(|| "no trace".to_owned(), TracedRun::shown);
    page("trace", &title, &lead(runs), &sections)
}

fn lead(runs: &[TracedRun]) -> Markup {
    html! {
        p.lead { "Records of the tracer in the running program." }
        p.muted { (runs.len()) @if runs.len() == 1 { " trace. " } @else { " traces, laid over each other. " }
            "Times are of the process's own clock." }
    }
}

/// The regions and locks of all runs.
fn names(runs: &[TracedRun]) -> Vec<String> {
    let all = runs.iter().flat_map(|run| &run.trace.names).filter(|name| name.kind != NameKind::Mark);
    let mut names: Vec<String> = all.map(|name| name.text.clone()).collect();
    names.sort();
    names.dedup();
    names
}

fn maxima(runs: &[TracedRun]) -> Option<Markup> {
    let listings: Vec<(String, String)> = runs
        .iter()
        .map(|run| (run.shown(), high_water_listing(&run.trace)))
        .filter(|(_, listing)| !listing.is_empty())
        .collect();
    (!listings.is_empty()).then(|| {
        html! { @for (label, listing) in &listings {
            h3 { (label) }
            pre tabindex="0" { @for line in listing.lines() { span { (line) } } }
        } }
    })
}

/// The kept and the lost events, a row for each run.
fn recorded(runs: &[TracedRun]) -> Markup {
    const LOST: [&str; 6] =
        ["overwritten", "refused, full", "in handlers", "without room", "unbalanced", "open at the end"];
    let table = html! { table {
        thead { tr {
            th scope="col" { "run" } th.n scope="col" { "process" } th.n scope="col" { "threads" }
            th scope="col" { "counters" } @for what in LOST { th.n scope="col" { (what) } }
        } }
        tbody { @for run in runs {
            @let lost = run.trace.losses();
            tr {
                td.name { (run.shown()) } td.n { (run.trace.pid) } td.n { (run.trace.threads.len()) }
                td { (counters_read(run.trace.rung)) }
                @for count in [lost.overwritten, lost.full, lost.nested, lost.without_area, lost.unbalanced, lost.in_progress] {
                    td.n { (whole(count)) }
                }
            }
        } }
    } };
    scroll("Recorded data", &table)
}
