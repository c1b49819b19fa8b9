//! Prints the page of a made-up study, for a look in a browser. With `--text`, the terminal's form.

#[path = "../tests/it/sample/mod.rs"]
mod sample;

use lineup_report::html::study_page;
use lineup_report::text::{Telling, TextStyle, study_text};

/// All of it.
fn told(style: TextStyle) -> Telling {
    Telling { style, is_full: true, all_data_models: false }
}

fn main() {
    let report = sample::study();
    match std::env::args().nth(1).as_deref() {
        Some("--text") => print!("{}", study_text(&report, told(TextStyle::Terminal { columns: 80 }))),
        Some("--plain") => print!("{}", study_text(&report, told(TextStyle::Plain))),
        _ => print!("{}", study_page(&report)),
    }
}
