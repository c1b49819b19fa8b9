//! An explanation as plain text: one screen, or all of it.

use super::parts::Shape;
use super::{brief, full};
use lineup_explain::Explanation;
use lineup_report::text::{Extent, TextStyle, screen};

/// The regions and the lines that pass between threads.
pub(crate) fn text(explanation: &Explanation, shape: Shape) -> String {
    let lines = match shape.is_full {
        true => full::lines(explanation, shape.top.unwrap_or(usize::MAX)),
        false => brief::lines(explanation, shape),
    };
    let text: String = lines.into_iter().map(|line| line.trim_end().to_owned() + "\n").collect();
    let style = match shape.columns.and_then(|columns| u16::try_from(columns).ok()) {
        Some(columns) => TextStyle::Terminal { columns },
        None => TextStyle::Plain,
    };
    screen(&text, style, Extent::All, "")
}
