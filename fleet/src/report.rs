//! One page about a store: trends by commit, and the usual questions.

use crate::engine::{Answer, Engine};
use crate::error::Result;
use crate::print::cells;
use lineup_report::chart::{Curve, curves};
use lineup_report::html::{Section, page};
use lineup_report::visible::shortened;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Rows of each table.
const ROWS: usize = 25;

/// Charts: the regions that changed most.
const CHARTS: usize = 12;

/// Longest text in a cell.
const LONGEST: usize = 80;

/// A table of the page.
struct Asked {
    anchor: &'static str,
    heading: &'static str,
    /// The meaning of a row, and of an empty answer.
    words: [&'static str; 2],
    sql: &'static str,
}

const ASKED: [Asked; 6] = [
    Asked {
        anchor: "grown",
        heading: "Regions whose lines grew",
        words: ["Calls need more lines of data than at the commit before.", "No region needs more lines than before."],
        sql: "SELECT service, region, commit_before, commit_after, data_lines_before, data_lines_after, grown_by_lines
              FROM grown_regions ORDER BY grown_by_lines DESC, service, region, commit_after",
    },
    Asked {
        anchor: "hottest",
        heading: "Hottest members",
        words: ["Over all machines, by accesses.", "Nothing was accessed."],
        sql: "SELECT owner, member, hosts, services, accesses, l1_misses, stall_cycles, sampled_weight, hitm
              FROM hottest_members WHERE class IN ('member', 'variable') ORDER BY accesses DESC, owner, member",
    },
    Asked {
        anchor: "moved",
        heading: "Members that moved to another line",
        words: ["From one build of a service to its next, lines of 64 bytes.", "No member moved between builds."],
        sql: "SELECT service, type_name, member, commit_before, commit_after, line_before, line_after
              FROM moved_members ORDER BY service, type_name, member, commit_after",
    },
    Asked {
        anchor: "disputed",
        heading: "Types that services use differently",
        words: [
            "An overlap of 1 is the same use of members, 0 none in common. lineup fleet advise says whether one order is good for all.",
            "No type of more than one line is used by two services.",
        ],
        sql: "SELECT type_name, service_a, service_b, type_size_bytes, overlap
              FROM disputed_types ORDER BY overlap, type_name, service_a, service_b",
    },
    Asked {
        anchor: "guards",
        heading: "What guards would have stopped",
        words: ["Builds in which members that a guard holds on one line lie on several, or are gone.", "No build breaks a guard."],
        sql: "SELECT service, commit_id, build_id, type_name, line_bytes, members, found, first_line, last_line
              FROM guard_breaks ORDER BY service, commit_id, type_name, build_id",
    },
    Asked {
        anchor: "verdicts",
        heading: "What studies showed",
        words: ["Lines are means of a call; time is the median of the runs in nanoseconds.", "No study is in the store."],
        sql: "SELECT subject, quantity, region, line_bytes, before, after, ratio, ratio_low, ratio_high, verdict
              FROM verdicts ORDER BY subject, quantity DESC, region, line_bytes",
    },
];

/// The page. `command` repeats it.
///
/// # Errors
/// When the engine cannot answer.
pub fn report(engine: &Engine, title: &str, command: &str) -> Result<String> {
    let section = |anchor, heading, body| Section { anchor, heading, body };
    let stored = engine.ask(
        "SELECT source, COUNT(*) AS files, COUNT(DISTINCT service) AS services, COUNT(DISTINCT host) AS hosts,
           COUNT(DISTINCT build_id) AS builds, COUNT(DISTINCT commit_id) AS commits
         FROM runs GROUP BY source ORDER BY source",
    )?;
    let mut sections = vec![
        section("trends", "Trends by commit", trends(engine)?),
        section("store", "What is in the store", table(&stored, "Nothing yet.")?),
    ];
    for Asked { anchor, heading, words: [what, nothing], sql } in ASKED {
        let answer = engine.ask(sql)?;
        let body = html! { p.muted { (what) } (table(&answer, nothing)?) };
        sections.push(section(anchor, heading, body));
    }
    sections.push(section(
        "repeat",
        "To repeat this",
        html! { pre.command tabindex="0" { span { (command) } } },
    ));
    let lead = html! { p.muted { "What was not observed is –, never 0. Figures are of what was added to the store." } };
    Ok(page("fleet", &shortened(title, 120), &lead, &sections))
}

/// The lines of a region by commit, in order.
type Trend = Vec<(String, Option<f64>)>;

fn trends(engine: &Engine) -> Result<Markup> {
    let answer = engine.ask(
        "SELECT service, region, COALESCE(commit_id, '(none)'), data_lines
         FROM regions_by_commit ORDER BY service, region, time_s, commit_id",
    )?;
    let (services, regions, commits) = (answer.texts(0)?, answer.texts(1)?, answer.texts(2)?);
    let mut all: BTreeMap<(String, String), Trend> = BTreeMap::new();
    for (at, lines) in answer.numbers(3)?.into_iter().enumerate() {
        let text = |column: &[Option<String>]| column[at].clone().unwrap_or_default();
        all.entry((text(&services), text(&regions))).or_default().push((text(&commits), lines));
    }
    all.retain(|_, trend| trend.len() > 1);
    let mut trends: Vec<((String, String), Trend)> = all.into_iter().collect();
    let span = |trend: &Trend| {
        let values = || trend.iter().filter_map(|(_, lines)| *lines);
        values().fold(f64::MIN, f64::max) - values().fold(f64::MAX, f64::min)
    };
    trends.sort_by(|a, b| span(&b.1).total_cmp(&span(&a.1)).then_with(|| a.0.cmp(&b.0)));
    let shown = trends.len().min(CHARTS);
    Ok(html! {
        p.muted { "Lines of 64 bytes of data that a call needs: the mean of all recordings of a commit. "
            (shown) " of " (trends.len()) " regions with more than one commit, those that changed most." }
        @for ((service, region), trend) in trends.iter().take(CHARTS) { (chart(service, region, trend)) }
    })
}

fn chart(service: &str, region: &str, trend: &Trend) -> Markup {
    let title = shortened(&format!("{region} of {service}"), LONGEST);
    let commits: Vec<String> = trend.iter().map(|(commit, _)| commit.chars().take(10).collect()).collect();
    let values = trend.iter().map(|(_, lines)| *lines).collect();
    let line = Curve { name: "lines of data per call".into(), values, intervals: Vec::new() };
    html! { h3 { (title) } (curves(&title, "commit", &commits, &[line])) }
}

fn table(answer: &Answer, nothing: &str) -> Result<Markup> {
    if answer.rows() == 0 {
        return Ok(html! { p { (nothing) } });
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for batch in &answer.batches {
        rows.extend(cells(batch)?);
    }
    let beyond = rows.len().saturating_sub(ROWS);
    let is_number = |at: usize| answer.schema.field(at).data_type().is_numeric();
    Ok(html! {
        div.scroll { table {
            thead { tr { @for field in answer.schema.fields() { th scope="col" { (field.name().replace('_', " ")) } } } }
            tbody { @for row in rows.iter().take(ROWS) { tr {
                @for (at, cell) in row.iter().enumerate() {
                    td.num[is_number(at)] { (shortened(cell, LONGEST)) }
                }
            } } }
        } }
        @if beyond > 0 { p.muted { (beyond) " more; lineup fleet query shows all." } }
    })
}
