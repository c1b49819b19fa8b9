//! The page of `lineup explain`: names may hold anything, every link leads somewhere, and every byte of a line is shown.

use lineup_codelayout::{
    CodeMap, Footprint, FunctionSummary, MappedFunction, MappedLine, MappedPage, RegionCalls, RegionFetch,
    Summary,
};
use lineup_report::code_map::{CodePage, code_page};
use scraper::{Html, Selector};
use std::collections::BTreeMap;

const HOSTILE: &str = "</style><script>alert(1)</script>\u{202e}<b title='x'>";

fn line(address: u64, own: u64, executed: u64, fetched_by: Vec<RegionFetch>) -> MappedLine {
    MappedLine { address, own, executed, most_times: 12_345, fetched_by }
}

/// Two lines on different pages, with three between them that nothing fetched.
fn function() -> MappedFunction {
    let [all, half] = [1.0, 0.5].map(|share| RegionFetch { region: 0, share });
    MappedFunction {
        name: HOSTILE.to_owned(),
        addresses: 0x1fb0..0x2100,
        entries: 7,
        instructions: 90,
        code: Footprint { executed_bytes: 24, lines: 2, pages: 2 },
        lines: vec![
            line(0x1f80, 0xffff << 48, 0xff << 48, vec![all]),
            line(0x2080, u64::MAX, 0xffff, vec![half]),
        ],
    }
}

fn map(functions: usize) -> CodeMap {
    let page = |line: usize, bytes: u32| {
        let mut executed_bytes = vec![0; 64];
        executed_bytes[line] = bytes;
        MappedPage { executed_bytes, functions: (0..functions).collect() }
    };
    CodeMap {
        regions: vec![RegionCalls { name: HOSTILE.to_owned(), calls: 4 }],
        functions: vec![function(); functions],
        pages: BTreeMap::from([(0x1000, page(62, 8)), (0x2000, page(2, 16))]),
    }
}

fn text(functions: usize) -> String {
    let one = FunctionSummary {
        name: HOSTILE.to_owned(),
        instructions: 90,
        entries: 7,
        size_bytes: 336,
        code: function().code,
    };
    let summary = Summary {
        schema: "lineup.code/1",
        file: HOSTILE.to_owned(),
        instructions: 90,
        code: function().code,
        least_lines: 1,
        edges_exact: 3,
        edges_estimated: 0,
        estimated_times: 0,
        times: 9,
        functions: vec![one; functions],
        not_decoded: vec![HOSTILE.to_owned()],
    };
    code_page(&CodePage { summary: &summary, map: &map(functions), command: HOSTILE })
}

fn texts(page: &Html, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    page.select(&selector).map(|one| one.text().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn names_stay_text() {
    let text = text(1);
    let page = Html::parse_document(&text);
    let count = |selector| texts(&page, selector).len();
    assert_eq!((count("script"), count("[title=x]"), count("style")), (0, 0, 1));
    assert!(!text.contains('\u{202e}') && text.contains("alert(1)"));
}

#[test]
fn every_link_leads_to_something_on_the_page() {
    let page = Html::parse_document(&text(2));
    let ids: Vec<_> =
        page.select(&Selector::parse("[id]").unwrap()).filter_map(|at| at.value().id()).collect();
    let links = Selector::parse("a[href]").unwrap();
    let links: Vec<_> = page.select(&links).map(|link| link.value().attr("href").unwrap()).collect();
    for link in &links {
        let found = ids.iter().filter(|id| Some(**id) == link.strip_prefix('#'));
        assert_eq!(found.count(), 1, "{link}");
    }
    // The way past the contents, the contents, and both pages beside both functions.
    assert_eq!(links.len(), 1 + 4 + 4);
}

#[test]
fn a_line_tells_executed_and_cold_bytes_how_often_and_who_fetches_it() {
    let page = Html::parse_document(&text(1));
    let boxes: Vec<_> = texts(&page, ".code-line").iter().map(|text| text.trim().to_owned()).collect();
    assert_eq!(boxes, ["12k A", "12k A 50.0 %"]);
    // Lines 0x1fc0 to 0x2040.
    assert_eq!(texts(&page, ".gap"), ["⋯3  lines not fetched"]);
    let rows: Vec<_> = texts(&page, ".function tbody td");
    assert_eq!(rows[..6], ["0x1f80", "8", "8", "48", "12,345", "A 100 %"]);
    assert_eq!(rows[6..], ["0x2080", "16", "48", "0", "12,345", "A 50.0 %"]);
    let label = page.select(&Selector::parse("article.function[tabindex='0']").unwrap()).next().unwrap();
    let label = label.value().attr("aria-label").unwrap();
    assert!(
        label.ends_with("entered 7×; 2 lines on 2 pages; 24 bytes executed, 56 cold on the same lines"),
        "{label}"
    );
    assert_eq!(texts(&page, ".beside .muted"), ["1 of 1 lines", "1 of 1 lines"]);
}

#[test]
fn what_is_too_much_to_draw_is_counted() {
    let page = Html::parse_document(&text(900));
    assert_eq!(texts(&page, "article.function").len(), 750);
    let said = texts(&page, "#lines > p.muted");
    assert!(said.iter().any(|text| text.contains("150 more functions are not drawn")), "{said:?}");
}
