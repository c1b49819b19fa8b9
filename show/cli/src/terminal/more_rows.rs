//! The number of rows that a table does not show.

use std::fmt::Write;

/// The number of rows that are not shown.
pub(crate) fn more(out: &mut String, all: usize, top: usize) {
    if all > top {
        let _ = writeln!(out, "{} more; --top shows more, --json all", all - top);
    }
}
