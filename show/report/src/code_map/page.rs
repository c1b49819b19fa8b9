//! The page.

use super::drawing::{MOST_PAGES, function, legend, strip};
use crate::html::{Section, letters, name, page, scroll};
use crate::visible::shortened;
use lineup_codelayout::{CodeMap, MappedFunction, MappedPage, Summary};
use lineup_model::figure::{counted, share, whole};
use maud::{Markup, html};

/// Lines drawn; a browser must show them all.
const MOST_LINES: usize = 1500;
/// Rows of each table.
const ROWS: usize = 300;
/// Functions named on a page of code.
const NAMED: usize = 4;

/// The content of a page of code.
#[derive(Clone, Copy, Debug)]
pub struct CodePage<'c> {
    /// Figures of the file.
    pub summary: &'c Summary,
    /// The places of its code.
    pub map: &'c CodeMap,
    /// The command that makes the page again.
    pub command: &'c str,
}

/// Executed code as one offline page.
pub fn code_page(of: &CodePage<'_>) -> String {
    let section = |anchor, heading, body| Section { anchor, heading, body };
    let sections = [
        section("lines", "Functions, line by line", lines(of)),
        section("pages", "Pages", pages(of.map)),
        section("functions", "All functions", functions(of)),
        section("repeat", "To repeat this", html! { pre.command tabindex="0" { span { (of.command) } } }),
    ];
    page("code", &shortened(&of.summary.file, 120), &lead(of.summary), &sections)
}

fn lead(summary: &Summary) -> Markup {
    let code = &summary.code;
    html! {
        p.lead {
            (whole(summary.instructions)) " instructions in " (counted(summary.functions.len() as u64, "function")) ": "
            (counted(code.lines, "line")) " of 64 bytes on " (counted(code.pages, "page")) "."
        }
        p.muted {
            (whole(code.executed_bytes)) " bytes of code were executed. Without a gap they would fill "
            (whole(summary.least_lines)) " lines. "
            @if !summary.not_decoded.is_empty() { (summary.not_decoded.len()) " functions have bytes that are no instructions, and are left out." }
        }
    }
}

fn lines(of: &CodePage<'_>) -> Markup {
    let map = of.map;
    let mut room = MOST_LINES;
    let drawn: Vec<(&MappedFunction, usize)> = map
        .functions
        .iter()
        .map_while(|one| {
            let most = room;
            room = room.saturating_sub(one.lines.len());
            (most > 0).then_some((one, most))
        })
        .collect();
    html! {
        p.muted {
            "Most instructions first. One box per fetched line, 64 bytes from left to right; below it how often its most executed byte was"
            @if map.regions.is_empty() { ". " } @else { ", and the regions whose calls fetch it, with the share of their calls where not all do. " }
            "⋯ stands for lines of the function that were not fetched. At the left are its pages, with the lines of other functions as half bars."
        }
        (legend())
        @if !map.regions.is_empty() {
            (letters("Regions", map.regions.iter().map(|region| region.name.as_str())))
        }
        @for (one, most) in &drawn { (function(map, one, of.summary.instructions, *most)) }
        @if map.functions.len() > drawn.len() { p.muted { (whole((map.functions.len() - drawn.len()) as u64)) " more functions are not drawn." } }
    }
}

fn pages(map: &CodeMap) -> Markup {
    let table = html! {
        table {
            thead { tr { th.n { "page" } th { "its 64 lines" } th.n { "lines" } th.n { "bytes executed" } th { "functions" } } }
            tbody { @for (address, page) in map.pages.iter().take(MOST_PAGES) { (page_row(map, *address, page)) } }
        }
    };
    html! {
        p.muted { "By address. A bar is a line of which some was executed." }
        (scroll("Pages of code", &table))
        @if map.pages.len() > MOST_PAGES { p.muted { (whole((map.pages.len() - MOST_PAGES) as u64)) " more pages are not shown." } }
    }
}

fn page_row(map: &CodeMap, address: u64, page: &MappedPage) -> Markup {
    let named: Vec<&str> = page
        .functions
        .iter()
        .filter_map(|number| map.functions.get(*number))
        .map(|one| one.name.as_str())
        .collect();
    html! {
        tr id=(format!("page-{address:x}")) {
            td.n { (format!("{address:#x}")) }
            td { (strip(Some(page), &|_| true)) }
            td.n { (page.lines()) }
            td.n { (whole(page.executed_bytes.iter().map(|bytes| u64::from(*bytes)).sum())) }
            td.name { @for (index, one) in named.iter().take(NAMED).enumerate() { @if index > 0 { ", " } (name(one)) }
                @if named.len() > NAMED { span.muted { " and " (named.len() - NAMED) " more" } } }
        }
    }
}

fn functions(of: &CodePage<'_>) -> Markup {
    let all = &of.summary.functions;
    let table = html! {
        table {
            thead { tr { th { "function" } th.n { "instructions" } th.n { "share" } th.n { "entries" } th.n { "bytes" } th.n { "executed" } th.n { "lines" } th.n { "pages" } th.n { "cold bytes on them" } } }
            tbody { @for one in all.iter().take(ROWS) { tr {
                td.name { (name(&one.name)) }
                td.n { (whole(one.instructions)) }
                td.n { (share(one.instructions as f64 / of.summary.instructions.max(1) as f64)) }
                td.n { (whole(one.entries)) }
                td.n { (whole(one.size_bytes)) }
                td.n { (whole(one.code.executed_bytes)) }
                td.n { (whole(one.code.lines)) }
                td.n { (whole(one.code.pages)) }
                td.n { (whole(one.code.cold_bytes())) }
            } } }
        }
    };
    html! {
        p.muted { "Cold bytes of this table count all that a fetched line brings along, other functions' bytes included." }
        (scroll("All functions", &table))
        @if all.len() > ROWS { p.muted { (whole((all.len() - ROWS) as u64)) " more are in the JSON form." } }
    }
}
