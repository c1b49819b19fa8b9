//! One line per type.

use super::{Shown, Sort};
use std::cmp::Reverse;
use std::fmt::Write;

/// Layouts as a table in the order asked for; equal ones by name.
pub(super) fn table(mut layouts: Vec<Shown<'_>>, sort: Sort) -> String {
    let wasted = |shown: &Shown<'_>| shown.layout.hole_bytes() + shown.layout.padding.bytes;
    layouts.sort_by_key(|shown| {
        let key = match sort {
            Sort::Size => shown.layout.size_bytes,
            Sort::Holes => wasted(shown),
            Sort::Lines => shown.layout.lines(),
        };
        (Reverse(key), shown.name.to_owned())
    });
    let mut out = String::new();
    let heading = ["size", "lines", "members", "holes", "bytes", "padding", "straddle"];
    for title in heading {
        let _ = write!(out, "{title:>9}");
    }
    out.push_str("  type\n");
    for shown in &layouts {
        let layout = &shown.layout;
        let cells = [
            layout.size_bytes,
            layout.lines(),
            layout.rows.len() as u64,
            layout.holes() as u64,
            layout.hole_bytes(),
            layout.padding.bytes,
            layout.straddling().count() as u64,
        ];
        for cell in cells {
            let _ = write!(out, "{cell:>9}");
        }
        let _ = writeln!(out, "  {}", shown.name);
    }
    out
}
