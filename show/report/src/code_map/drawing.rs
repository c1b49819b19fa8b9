//! One function: its lines as boxes, and its pages next to them.

use crate::html::{name, scroll};
use crate::study::region_letter;
use crate::visible::shortened;
use lineup_codelayout::{
    CodeMap, LINE_BYTES, MappedFunction, MappedLine, MappedPage, PAGE_BYTES, RegionFetch,
};
use lineup_model::figure::{counted, share, whole};
use maud::{Markup, html};

/// Pages in the list of all.
pub(super) const MOST_PAGES: usize = 1000;
/// Regions named in a line's box.
const MOST_LETTERS: usize = 2;
/// Longest name in a sentence.
const NAME_CHARACTERS: usize = 120;

/// The meaning of the patterns of bytes.
pub(super) fn legend() -> Markup {
    const ALL: u64 = u64::MAX;
    let kinds = [
        (ALL, ALL, "executed"),
        (0, ALL, "of the function, fetched with them and never executed (cold)"),
        (0, 0, "of another function, or between functions"),
    ];
    html! {
        ul.legend aria-label="Bytes of a line" {
            @for (executed, own, what) in kinds { li { (bytes(executed, own)) (what) } }
        }
    }
}

/// A function with at most `most` of its lines drawn. `all` is the number of executed instructions in all functions.
pub(super) fn function(map: &CodeMap, one: &MappedFunction, all: u64, most: usize) -> Markup {
    let drawn = one.lines.get(..most).unwrap_or(&one.lines);
    let part = share(one.instructions as f64 / all.max(1) as f64);
    let cold: u64 = one.lines.iter().map(|line| u64::from(line.cold_bytes())).sum();
    let label = format!(
        "{}: {part} of instructions, entered {}×; {} on {}; {} bytes executed, {} cold on the same lines",
        shortened(&one.name, NAME_CHARACTERS),
        whole(one.entries),
        counted(one.code.lines, "line"),
        counted(one.code.pages, "page"),
        whole(one.code.executed_bytes),
        whole(cold)
    );
    html! {
        article.function tabindex="0" aria-label=(label) {
            div.line-head {
                b { (name(&one.name)) }
                span { (part) " of instructions" }
                span { "entered " (whole(one.entries)) "×" }
                span { (counted(one.code.lines, "line")) ", " (counted(one.code.pages, "page")) }
                span { (whole(one.code.executed_bytes)) " bytes executed, " b { (whole(cold)) " cold" } " on the same lines" }
            }
            div.function-body {
                div.function-pages { @for page in pages_of(one) { (page_beside(map, one, page)) } }
                div.function-lines {
                    @for (line, skipped) in drawn.iter().zip(skipped(one)) {
                        @if skipped > 0 { span.gap { "⋯" (skipped) span.unseen { " lines not fetched" } } }
                        (line_box(line))
                    }
                    @if one.lines.len() > drawn.len() { span.gap { (whole((one.lines.len() - drawn.len()) as u64)) " more lines are not drawn" } }
                }
            }
            details { summary { "These lines as a table" } (table(map, one, drawn)) }
        }
    }
}

/// Lines of the function before each fetched one that were not fetched.
fn skipped(one: &MappedFunction) -> impl Iterator<Item = u64> {
    let first = one.addresses.start / LINE_BYTES;
    let before = one.lines.iter().scan(first, |next, line| {
        let number = line.address / LINE_BYTES;
        let skipped = number.saturating_sub(*next);
        *next = number + 1;
        Some(skipped)
    });
    before.collect::<Vec<_>>().into_iter()
}

fn pages_of(one: &MappedFunction) -> Vec<u64> {
    let mut pages: Vec<u64> = one.lines.iter().map(|line| line.address / PAGE_BYTES * PAGE_BYTES).collect();
    pages.dedup();
    pages
}

/// A page that distinguishes the function's own lines from others'.
fn page_beside(map: &CodeMap, one: &MappedFunction, page: u64) -> Markup {
    let own = one.lines.iter().filter(|line| line.address / PAGE_BYTES == page / PAGE_BYTES);
    let own: Vec<u64> = own.map(|line| line.address % PAGE_BYTES / LINE_BYTES).collect();
    let all = map.pages.get(&page).map_or(0, MappedPage::lines);
    html! {
        div.beside {
            @if is_listed(map, page) { a href=(format!("#page-{page:x}")) { (format!("{page:#x}")) } } @else { span { (format!("{page:#x}")) } }
            (strip(map.pages.get(&page), &|line| own.contains(&line)))
            span.muted { (own.len()) " of " (all) " lines" }
        }
    }
}

/// True when the list of pages has a row for it.
fn is_listed(map: &CodeMap, page: u64) -> bool {
    map.pages.range(..page).count() < MOST_PAGES
}

/// The 64 lines of a page: a whole bar where `is_own`, half a one where others were executed.
pub(super) fn strip(page: Option<&MappedPage>, is_own: &dyn Fn(u64) -> bool) -> Markup {
    let executed = page.map(|page| page.executed_bytes.as_slice()).unwrap_or_default();
    html! {
        svg.strip viewBox="0 0 128 8" preserveAspectRatio="none" aria-hidden="true" {
            @for (line, _) in (0u64..).zip(executed).filter(|(_, bytes)| **bytes > 0) {
                @let (class, y) = if is_own(line) { ("x", 0) } else { ("o", 5) };
                rect class=(class) x=(2 * line) y=(y) width="2" height=(8 - y) {}
            }
        }
    }
}

fn line_box(line: &MappedLine) -> Markup {
    html! {
        span.code-line title=(line_in_words(line)) {
            (bytes(line.executed, line.own))
            span.use { (times(line.most_times)) @for one in line.fetched_by.iter().take(MOST_LETTERS) { " " (letter(one)) }
                @if line.fetched_by.len() > MOST_LETTERS { " +" (line.fetched_by.len() - MOST_LETTERS) } }
        }
    }
}

/// A region's letter, with the share of its calls where not all fetch the line.
fn letter(fetched: &RegionFetch) -> String {
    match fetched.share {
        all if all >= 1.0 => region_letter(fetched.region),
        part => format!("{} {}", region_letter(fetched.region), share(part)),
    }
}

fn line_in_words(line: &MappedLine) -> String {
    let calls: String = line.fetched_by.iter().map(|one| format!("; {}", letter(one))).collect();
    format!(
        "{:#x}: {} bytes executed, {} cold, at most {} times{calls}",
        line.address,
        line.executed.count_ones(),
        line.cold_bytes(),
        whole(line.most_times)
    )
}

/// The 64 bytes of a line: high where executed, low where cold, a line where another function's.
fn bytes(executed: u64, own: u64) -> Markup {
    let class = |bit: u32| match (executed >> bit & 1, own >> bit & 1) {
        (1, _) => ("x", 0, 12),
        (_, 1) => ("c", 6, 6),
        _ => ("o", 10, 2),
    };
    let all: Vec<u32> = (0..u64::BITS).collect();
    html! {
        svg.code-bytes viewBox="0 0 64 12" preserveAspectRatio="none" aria-hidden="true" {
            @for run in all.chunk_by(|a, b| class(*a) == class(*b)) {
                @let (class, y, height) = class(run[0]);
                rect class=(class) x=(run[0]) y=(y) width=(run.len()) height=(height) {}
            }
        }
    }
}

/// A count in few characters.
fn times(count: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    match UNITS.iter().find(|(unit, _)| count >= *unit) {
        Some((unit, name)) if count / unit >= 10 => format!("{}{name}", count / unit),
        Some((unit, name)) => format!("{}.{}{name}", count / unit, count % unit * 10 / unit),
        None => count.to_string(),
    }
}

fn table(map: &CodeMap, one: &MappedFunction, drawn: &[MappedLine]) -> Markup {
    let rows = html! {
        table {
            thead { tr { th.n { "line" } th.n { "executed bytes" } th.n { "cold bytes" } th.n { "others' bytes" } th.n { "times at most" } @if !map.regions.is_empty() { th { "fetched by calls of" } } } }
            tbody { @for line in drawn { tr {
                td.n { (format!("{:#x}", line.address)) }
                td.n { (line.executed.count_ones()) }
                td.n { (line.cold_bytes()) }
                td.n { (line.own.count_zeros()) }
                td.n { (whole(line.most_times)) }
                @if !map.regions.is_empty() { td { @for (index, one) in line.fetched_by.iter().enumerate() { @if index > 0 { ", " } (region_letter(one.region)) " " (share(one.share)) } } }
            } } }
        }
    };
    scroll(&format!("Lines of {}", shortened(&one.name, NAME_CHARACTERS)), &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_take_four_characters() {
        let counts = [0, 999, 1_000, 1_940, 12_345, 9_999_999, 123_456_789, u64::MAX];
        assert_eq!(counts.map(times), ["0", "999", "1.0k", "1.9k", "12k", "9.9M", "123M", "18446744T"]);
    }

    #[test]
    fn bytes_of_a_line_are_drawn_in_runs() {
        let drawn = bytes(0b11 << 8, 0xffff).into_string();
        let runs = [("c", 0, 8), ("x", 8, 2), ("c", 10, 6), ("o", 16, 48)];
        for (class, x, width) in runs {
            assert!(drawn.contains(&format!("class=\"{class}\" x=\"{x}\"")), "{drawn}");
            assert!(drawn.contains(&format!("width=\"{width}\"")), "{drawn}");
        }
        assert_eq!(drawn.matches("<rect").count(), runs.len());
    }
}
