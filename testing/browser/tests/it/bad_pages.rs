//! The checks find their problems: pages with one fault each.

use lineup_browser::{Axe, Browser, check, missing};

/// A page, and its expected problem; none for the first.
const PAGES: [(&str, &str, &str); 10] = [
    ("fine", "<a href='#x'>to the text</a><p id=x>text", ""),
    ("console", "<a href='#x'>to the text</a><p id=x>text<script>console.error('oh')</script>", "console: "),
    ("policy", "<p>text<img src='http://localhost:1/x.png' alt='a picture'>", "console: "),
    ("wide", "<p style='width:900px'>text", "the page is"),
    (
        "hidden",
        "<p style='width:60px;overflow:hidden;white-space:nowrap'>a text that is too long for its box</p>",
        "is cut off by main > p",
    ),
    (
        "ellipsis",
        "<p style='width:60px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis'>a text that is too long</p>",
        "stands nowhere as a whole",
    ),
    (
        "no-focus",
        "<style>a:focus{outline:none}</style><a href='#x'>to the text</a><p id=x>text",
        "looks the same",
    ),
    ("order", "<a href='#x' tabindex=2>one</a> <a href='#x' tabindex=1>two</a><p id=x>text", "axe: tabindex"),
    (
        "beyond",
        "<a href='#x' style='position:fixed;left:-99px'>to the text</a><p id=x>text",
        "outside the window",
    ),
    ("faint", "<p style='color:#aaa;background:#fff'>text that is hard to read", "axe: color-contrast"),
];

#[test]
fn each_fault_is_found_and_a_page_without_one_has_none() {
    if let Some(why) = missing() {
        assert!(std::env::var_os("CI").is_none(), "{why}");
        return println!("skipped: {why}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let axe = Axe::fetched().expect("axe-core");
    let mut browser = Browser::start().expect("Chromium starts");
    for (name, body, fault) in PAGES {
        let page = folder.path().join(name).with_extension("html");
        let head =
            "<meta charset=utf-8><meta name=viewport content='width=device-width'><title>a page</title>";
        let policy = match name {
            "policy" => {
                "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">"
            }
            _ => "",
        };
        let text = format!(
            "<!DOCTYPE html><html lang=en><head>{head}{policy}</head><body><main><h1>a page</h1>{body}</main>"
        );
        std::fs::write(&page, text).expect("a file");
        let problems = check(&mut browser, &axe, &page, name, folder.path()).expect("looked at");
        let said = problems.join("\n");
        assert_eq!(problems.is_empty(), fault.is_empty(), "{name}: {said}");
        assert!(said.contains(fault), "{name}: {said}");
        assert!(folder.path().join(format!("{name}-400-light.png")).is_file());
    }
}
