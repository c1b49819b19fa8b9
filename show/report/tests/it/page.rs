//! The page of a study: whole, offline, and deaf to hostile names.

use crate::sample;
use lineup_report::html::study_page;
use lineup_report::study::*;
use scraper::{ElementRef, Html, Selector};

fn select<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    page.select(&Selector::parse(selector).expect("a valid selector")).collect()
}

fn parsed(report: &StudyReport) -> Html {
    let page = Html::parse_document(&study_page(report));
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    page
}

/// Every text of the sample replaced by a hostile one.
fn hostile(name: &str) -> StudyReport {
    let mut report = sample::study();
    report.title = name.into();
    for region in &mut report.regions {
        region.name = name.into();
        region.misses.iter_mut().for_each(|one| one.cache = name.into());
    }
    for map in &mut report.maps {
        map.owner.name = name.into();
        map.owner.declared_at = Some(name.into());
        map.notes = vec![name.into()];
        for line in map.before.lines.iter_mut().chain(map.after.iter_mut().flat_map(|after| &mut after.lines))
        {
            line.cells
                .iter_mut()
                .filter(|cell| cell.name.is_some())
                .for_each(|cell| cell.name = Some(name.into()));
            line.cold_riders.iter_mut().for_each(|rider| *rider = name.into());
        }
    }
    for proposal in &mut report.proposals {
        proposal.target = name.into();
        proposal.summary = name.into();
        proposal.reasons = vec![name.into()];
        proposal.gains.iter_mut().for_each(|gain| gain.data_model = name.into());
    }
    for note in report.refusals.iter_mut().flat_map(|refusal| &mut refusal.because) {
        *note = ConstraintNote {
            rule: name.into(),
            names: vec![name.into()],
            at: Some(name.into()),
            detail: Some(name.into()),
        };
    }
    report.refusals.iter_mut().for_each(|refusal| refusal.target = name.into());
    report.patch = Some(Patch { file: name.into(), text: format!("+{name}\n-{name}\n") });
    if let Some(proof) = &mut report.proof {
        proof.conclusion = name.into();
        proof.output = OutputCheck::NotRepeatable(name.into());
    }
    report.coverage = Some(Coverage::new(
        vec![EvidenceCount { evidence: name.into(), accesses: 1 }],
        vec![FunctionCount { function: name.into(), accesses: 1 }],
    ));
    report.not_observed = vec![NotObserved { what: name.into(), consequence: name.into() }];
    report.commands = vec![CommandLine { purpose: name.into(), text: name.into() }];
    report.setting = vec![Fact { name: name.into(), value: name.into() }];
    report
}

#[test]
fn the_page_is_valid_and_needs_nothing_but_itself() {
    let page = parsed(&sample::study());
    assert!(select(&page, "script, link, img, iframe, object, embed, base, form").is_empty());
    let policy = select(&page, "meta[http-equiv='Content-Security-Policy']");
    let policy = policy[0].attr("content").expect("a policy");
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("script"), "{policy}");
    for element in select(&page, "*") {
        for (attribute, value) in element.value().attrs() {
            assert!(!attribute.starts_with("on"), "{attribute}");
            assert!(!["src", "srcset", "action", "data"].contains(&attribute), "{attribute}={value}");
            assert!(attribute != "href" || value.starts_with('#'), "{value}");
        }
    }
    let style = select(&page, "style")[0].text().collect::<String>();
    assert!(!style.contains("url(") && !style.contains("@import"));
}

#[test]
fn every_entry_of_the_contents_leads_to_a_section() {
    let page = parsed(&sample::study());
    let links = select(&page, "nav a");
    assert_eq!(links.len(), select(&page, "main > section").len());
    for link in links.into_iter().chain(select(&page, "a.skip")) {
        let target = link.attr("href").expect("a target");
        assert_eq!(select(&page, target).len(), 1, "{target}");
    }
}

#[test]
fn hostile_names_stay_text() {
    let plain = parsed(&sample::study());
    let elements = |page: &Html| select(page, "script, img, b[onclick], svg[onload], style, a").len();
    for name in [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "'><svg onload=alert(1)>",
        "</title></style></pre><script>alert(1)</script>",
        "<!--",
        "&lt;script&gt;",
        "javascript:alert(1)",
        "]]><![CDATA[",
    ] {
        let report = hostile(name);
        let page = parsed(&report);
        assert_eq!(elements(&page), elements(&plain), "{name}");
        let heading = select(&page, "h1")[0].text().collect::<String>();
        assert_eq!(heading, name);
        let members: Vec<String> =
            select(&page, ".cell.loaded span:first-child").iter().map(|cell| cell.text().collect()).collect();
        assert!(members.iter().all(|member| member.trim_start_matches('…') == name), "{members:?}");
    }
}

#[test]
fn characters_that_turn_or_hide_text_are_spelled_out() {
    let page = study_page(&hostile("safe\u{202e}gnp.exe\u{2066}\u{200b}\u{0}\u{1b}[31m\r"));
    let acting =
        |c: &char| (c.is_control() && !"\n\t".contains(*c)) || "\u{202e}\u{2066}\u{200b}".contains(*c);
    assert_eq!(page.chars().find(acting), None);
    assert!(page.contains(r"safe\u{202e}gnp.exe\u{2066}\u{200b}\u{0}\u{1b}[31m\u{d}"));
}

#[test]
fn a_huge_name_does_not_make_a_huge_page() {
    let name = "_ZN4core3fmt".repeat(20_000);
    let plain = study_page(&sample::study()).len();
    // Commands and the patch stay whole, so that they can be copied: one and two times the name.
    let page = study_page(&hostile(&name));
    assert!(page.len() < plain + 3 * name.len() + 100_000, "{} bytes", page.len());
    let page = parsed(&hostile(&"x".repeat(10_000)));
    for name in select(&page, "td code, h3 code, .cell span, dt code") {
        assert!(name.text().collect::<String>().chars().count() <= 160);
    }
}

#[test]
fn all_bytes_of_a_line_are_drawn_sixteen_to_a_row() {
    let page = parsed(&sample::study());
    let lines = select(&page, ".line");
    assert_eq!(lines.len(), 5);
    let cell = Selector::parse(".cell").expect("a valid selector");
    for line in lines {
        let spans = line.select(&cell).map(|cell| {
            let style = cell.attr("style").expect("a width");
            style.trim_start_matches("grid-column:span ").parse::<u32>().expect("a number of bytes")
        });
        assert_eq!(spans.sum::<u32>(), 64);
    }
}

#[test]
fn use_is_said_in_words_and_letters_too() {
    let page = parsed(&sample::study());
    let label = select(&page, ".line")[0].attr("aria-label").expect("a label").to_owned();
    assert!(
        label.starts_with("Line 0: 40 of 64 bytes used; set_next_event B 0.95L, next_event B 1S"),
        "{label}"
    );
    let shared = select(&page, ".cell.shared")[0];
    assert!(shared.text().collect::<String>().starts_with("⇄ armed"));
    assert!(
        shared.attr("title").expect("words").contains("read by threads 0, 2, written by 1, 9,114 handovers")
    );
    for line in select(&page, ".line, .scroll, pre") {
        assert_eq!(line.attr("tabindex"), Some("0"), "reachable by keyboard");
    }
}

#[test]
fn an_empty_report_is_a_page_that_says_so() {
    let page = parsed(&StudyReport::new("nothing"));
    let text = select(&page, "main")[0].text().collect::<String>();
    for said in ["nothing on this page is proven", "Nothing was recorded", "Nothing is proposed"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn what_was_not_observed_is_a_dash() {
    let mut report = sample::study();
    for region in &mut report.regions {
        region.calls_per_second = None;
        region.instructions_per_call = None;
        region.footprints.iter_mut().for_each(|footprint| footprint.after = None);
    }
    let page = parsed(&report);
    let cells: Vec<String> = select(&page, "#lines tbody.group tr:first-child td.n")
        .iter()
        .map(|cell| cell.text().collect())
        .collect();
    assert_eq!(cells[2..4], ["–", "–"]);
    assert_eq!(cells.iter().filter(|cell| *cell == "–").count(), 2 * (2 + 5));
}
