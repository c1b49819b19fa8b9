//! Reports on recorded calls: every figure is there, with its table; hostile names are text.

use crate::measured;
use crate::measured::HOSTILE;
use lineup_report::calls::{Calls, calls_csv, calls_page, calls_text, high_water_listing, shown_by_default};
use lineup_report::text::{Extent, SCREEN_LINES, TextStyle};
use lineup_tail::{Analysis, Run, analyse};
use scraper::{Html, Selector};

const L2: &[&str] = &["l1i=32K,8,64", "l2=1M,16,64"];

/// Idle, busy, busy with things done before calls, busy without a second level.
fn runs() -> Vec<Run> {
    vec![
        measured::run("idle", L2, false),
        measured::run(HOSTILE, L2, false),
        measured::run("arms", L2, true),
        measured::run("nol2", &["l1i=32K,8,64"], false),
    ]
}

fn with<T>(runs: &[Run], show: impl FnOnce(&Calls<'_>) -> T) -> T {
    let analysis: Analysis = analyse(runs);
    let shown = shown_by_default(&analysis);
    show(&Calls { runs, analysis: &analysis, shown: &shown, title: HOSTILE, command: HOSTILE })
}

fn count(page: &str, selector: &str) -> usize {
    Html::parse_document(page).select(&Selector::parse(selector).unwrap()).count()
}

#[test]
fn the_page_has_every_figure_and_each_has_its_table() {
    let page = with(&runs(), calls_page);
    let anchors = [
        "findings",
        "distributions",
        "scattergrams",
        "interventions",
        "levels",
        "second",
        "maxima",
        "off",
        "regions",
    ];
    for anchor in anchors {
        assert_eq!(count(&page, &format!("section#{anchor}")), 1, "{anchor}");
    }
    // Instructions, L1I misses, I-stall cycles, cycles: linear and logarithmic, two outlines each.
    assert_eq!(count(&page, "#distributions svg.chart"), 8);
    assert_eq!(count(&page, "#distributions svg.chart path.outline"), 16);
    // Three runs in which nothing was done, three pairs of counts.
    assert_eq!(count(&page, "#scattergrams svg.chart"), 9);
    // Three counts and two of them rescaled; three arms each.
    assert_eq!(count(&page, "#interventions svg.chart path.outline"), 5 * 2 * 3);
    assert_eq!(count(&page, "#levels svg.chart path.outline"), 3 * 2 * 2);
    assert!(count(&page, "#off svg.chart") >= 4);
    assert_eq!(count(&page, "figure"), count(&page, "figure details table"));
    assert_eq!(count(&page, "figure"), count(&page, "figure figcaption"));
    let text = Html::parse_document(&page).root_element().text().collect::<String>();
    for words in
        ["rescaled so that the peaks coincide", "#mark          : ----- 1 max:", "Pearson", "second tail"]
    {
        assert!(text.contains(words), "{words}");
    }
}

#[test]
fn hostile_names_are_text_and_nothing_is_loaded() {
    let page = with(&runs(), calls_page);
    assert_eq!(count(&page, "script"), 0);
    assert!(page.contains("default-src 'none'") && page.contains("&lt;script&gt;"));
    assert!(
        !page.contains("http:")
            && !page.contains("https:")
            && !page.contains('\u{1b}')
            && !page.contains('\u{202e}')
    );
    assert!(!page.contains("NaN") && !page.contains("inf,") && !page.contains("\"inf\""));
    for style in [TextStyle::Plain, TextStyle::Terminal { columns: 100 }] {
        let text = with(&runs(), |calls| calls_text(calls, style, Extent::All));
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}') && text.contains("\\u{1b}[2J"));
    }
    let csv = calls_csv(&runs());
    assert!(!csv.contains('\u{1b}') && !csv.contains('\u{202e}'));
}

#[test]
fn keyboards_reach_every_table_that_scrolls() {
    let page = with(&runs(), calls_page);
    assert_eq!(count(&page, "div.scroll"), count(&page, "div.scroll[tabindex='0'][aria-label]"));
    assert_eq!(count(&page, "svg.chart"), count(&page, "svg.chart[role='img'][aria-label] > title"));
}

#[test]
fn csv_has_a_line_for_each_call_of_as_many_fields_as_its_head() {
    let runs = [measured::run("a", L2, true)];
    let csv = calls_csv(&runs);
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(head.len(), 23);
    assert_eq!((head[7], head[8]), ("arm", "instructions"));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 240);
    assert!(lines.iter().any(|line| line.contains(",invalidated,")));
    // Hostile names hold no comma.
    assert!(lines.iter().all(|line| line.split(',').count() == head.len()));
}

#[test]
fn the_listing_is_laid_out_as_the_talk_has_it() {
    let runs = [measured::run("a", L2, false)];
    let listing = with(&runs, |calls| high_water_listing(&calls.analysis.regions[1].runs[0]));
    let lines: Vec<&str> = listing.lines().collect();
    assert_eq!(lines[0], "#mark          : ----- 1 max:        2,500 cycles -----");
    assert!(lines[1].starts_with("# start pc: ffffffff81000010 <script>"), "{}", lines[1]);
    assert!(lines[3].starts_with("#        10 <script>"), "{}", lines[3]);
    assert!(lines[4].contains("in all") && lines[4].ends_with("I-stall 0 %"), "{}", lines[4]);
    assert!(lines[5].starts_with("# end   pc: ffffffff81000020"), "{}", lines[5]);
}

/// The fields that `docs/json.md` lists.
#[test]
fn the_json_form_has_the_documented_fields() {
    let json = serde_json::to_value(analyse(&runs())).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let documented = include_str!("../../../../docs/json.md");
    let start = documented.find("## lineup.calls/1").expect("docs/json.md describes lineup.calls/1");
    let section = documented[start + 3..].split("\n## ").next().unwrap();
    let region = &json["regions"][0];
    let run = &region["runs"][2];
    let objects = [
        &json,
        &json["runs"][0],
        region,
        run,
        &run["arms"][0]["distributions"][0],
        &run["between_arms"][0],
        &run["between_arms"][0]["differences"][0],
        &run["correlations"][0],
        &region["between_runs"][0],
        &run["modes"][0],
        &run["second_tail"],
        &run["high_water"][0],
        &run["high_water"][0]["from"],
        &json["regions"][1]["runs"][0]["spans"],
        &json["regions"][1]["runs"][0]["spans"]["longest"][0],
        &json["regions"][1]["runs"][0]["spans"]["between"][0],
        &json["regions"][1]["runs"][0]["high_water"][0]["inner"][0],
    ];
    for key in objects.into_iter().flat_map(keys) {
        assert!(section.contains(&format!("`{key}`")), "{key} is not described");
    }
    assert_eq!(json["schema"], "lineup.calls/1");
    assert_eq!(run["arms"][1]["arm"], "invalidated");
    assert_eq!(json["regions"][0]["name"], HOSTILE);
}

#[test]
fn the_first_screen_has_at_most_40_lines_however_much_was_recorded() {
    let many: Vec<Run> = (0..8).map(|number| measured::run(&format!("run {number}"), L2, true)).collect();
    let is_short = |calls: &Calls<'_>| {
        for style in [TextStyle::Plain, TextStyle::Terminal { columns: 80 }] {
            let text = calls_text(calls, style, Extent::FirstScreen);
            assert!(text.lines().count() <= SCREEN_LINES, "{text}");
            assert!(text.contains("instructions vary by"), "{text}");
            let fits = |line: &str| line.chars().count() <= 80;
            assert!(style == TextStyle::Plain || text.lines().all(fits), "{text}");
            let all = calls_text(calls, style, Extent::All);
            assert!(all.contains("#mark") && !text.contains("#mark"), "{all}");
        }
    };
    with(&runs(), is_short);
    with(&many, is_short);
}
