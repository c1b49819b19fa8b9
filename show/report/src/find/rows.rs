//! The end of a table: the table itself, and the number of rows that it does not show.

use crate::text::{Table, TextStyle};
use std::fmt::Write;

/// Writes a table that has rows, after an empty line, and the number of rows that are not shown.
pub(super) fn write_table(out: &mut String, table: &Table, all: usize, top: usize, style: TextStyle) {
    if !table.is_empty() {
        let _ = write!(out, "\n{}", table.render(style));
    }
    if all > top {
        let _ = writeln!(out, "{} more; --top shows more, --json all", all - top);
    }
}
