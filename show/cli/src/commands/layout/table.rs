//! One line per type.

use super::args::Sort;
use super::shown::Shown;
use lineup_report::text::{SCREEN_LINES, TextStyle};
use lineup_report::visible::shortened;
use std::cmp::Reverse;
use std::fmt::Write;

/// Rows that fit on a first screen together with the heading and a line about the rest.
pub(crate) const SCREEN_ROWS: usize = SCREEN_LINES - 2;

/// No name is cut to less.
const LEAST_NAME: usize = 16;

const HEADING: [&str; 7] = ["size", "lines", "members", "holes", "bytes", "padding", "straddle"];

/// At most `most` layouts as a table in the requested order; equal ones by name. At a terminal names are cut, so that
/// each has its row.
pub(crate) fn table(mut layouts: Vec<Shown<'_>>, sort: Sort, most: usize, style: TextStyle) -> String {
    let wasted = |shown: &Shown<'_>| shown.layout.hole_bytes() + shown.layout.padding.bytes;
    layouts.sort_by_key(|shown| {
        let key = match sort {
            Sort::Size => shown.layout.size_bytes,
            Sort::Holes => wasted(shown),
            Sort::Lines => shown.layout.lines(),
        };
        (Reverse(key), shown.name.to_owned())
    });
    let rows: Vec<(String, [u64; 7])> =
        layouts.iter().take(most).map(|shown| (shown.name.to_owned(), figures(shown))).collect();
    let mut out = text(&rows, style);
    if let Some(more) = layouts.len().checked_sub(most).filter(|more| *more > 0) {
        let _ = writeln!(out, "… {more} types more: --all");
    }
    out
}

fn figures(shown: &Shown<'_>) -> [u64; 7] {
    let layout = &shown.layout;
    [
        layout.size_bytes,
        layout.lines(),
        layout.rows.len() as u64,
        layout.holes() as u64,
        layout.hole_bytes(),
        layout.padding.bytes,
        layout.straddling().count() as u64,
    ]
}

fn text(rows: &[(String, [u64; 7])], style: TextStyle) -> String {
    let width = |column: usize| {
        let longest = rows.iter().map(|(_, figures)| figures[column]).max().unwrap_or(0);
        HEADING[column].len().max(longest.to_string().len()) + 2
    };
    let widths: [usize; 7] = std::array::from_fn(width);
    let room = match style {
        TextStyle::Terminal { columns } => {
            usize::from(columns).saturating_sub(widths.iter().sum::<usize>() + 2).max(LEAST_NAME)
        }
        TextStyle::Plain => usize::MAX,
    };
    let mut out = String::new();
    for (title, width) in HEADING.iter().zip(widths) {
        let _ = write!(out, "{title:>width$}");
    }
    out.push_str("  type\n");
    for (name, figures) in rows {
        for (figure, width) in figures.iter().zip(widths) {
            let _ = write!(out, "{figure:>width$}");
        }
        let name = if name.chars().count() > room { shortened(name, room) } else { name.clone() };
        let _ = writeln!(out, "  {name}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_fits_beside_its_figures_at_80_columns() {
        let name = "std::_Hashtable<std::pair<const char*, unsigned long>, std::allocator<char> >".to_owned();
        let rows = [(name.clone(), [123_456, 1_930, 12, 3, 44, 8, 1]), ("short".to_owned(), [8; 7])];
        let at_80 = text(&rows, TextStyle::Terminal { columns: 80 });
        assert!(at_80.lines().all(|line| line.chars().count() <= 80), "{at_80}");
        assert!(at_80.contains('…') && at_80.lines().count() == 3, "{at_80}");
        assert!(text(&rows, TextStyle::Plain).contains(&name));
    }
}
