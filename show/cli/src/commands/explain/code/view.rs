//! Executed code for people.

use lineup_codelayout::Summary;
use lineup_model::figure;
use lineup_model::figure::{counted, whole};
use lineup_report::text::{Align, Table, TextStyle};
use lineup_report::visible::one_line;
use std::fmt::Write;

/// The first page, with at most `top` functions.
pub(crate) fn text(summary: &Summary, top: usize, style: TextStyle) -> String {
    let mut out = String::new();
    let code = &summary.code;
    let _ = writeln!(
        out,
        "{}: {} in {}",
        one_line(&summary.file),
        counted(summary.instructions, "instruction"),
        counted(summary.functions.len() as u64, "function")
    );
    let _ = writeln!(
        out,
        "{} bytes of code were executed, on {} of 64 bytes and {}; without a gap they would fill {}",
        whole(code.executed_bytes),
        counted(code.lines, "line"),
        counted(code.pages, "page"),
        counted(summary.least_lines, "line")
    );
    let estimated = summary.estimated_times as f64 / summary.times.max(1) as f64;
    let _ = writeln!(
        out,
        "{} ways between blocks have exact counts; {} are estimated, with {} of all passages\n",
        whole(summary.edges_exact),
        whole(summary.edges_estimated),
        figure::share(estimated)
    );
    let columns = [
        ("function", Align::Left),
        ("instructions", Align::Right),
        ("share", Align::Right),
        ("entries", Align::Right),
        ("bytes", Align::Right),
        ("executed", Align::Right),
        ("lines", Align::Right),
        ("cold bytes on them", Align::Right),
    ];
    let mut table = Table::new(columns);
    for function in summary.functions.iter().take(top) {
        table.row([
            one_line(&function.name).into_owned(),
            whole(function.instructions),
            figure::share(function.instructions as f64 / summary.instructions.max(1) as f64),
            whole(function.entries),
            whole(function.size_bytes),
            whole(function.code.executed_bytes),
            whole(function.code.lines),
            whole(function.code.cold_bytes()),
        ]);
    }
    out += &table.render(style);
    if summary.functions.len() > top {
        let _ = writeln!(out, "{} more functions; --top shows them", summary.functions.len() - top);
    }
    for name in &summary.not_decoded {
        let _ = writeln!(out, "note: {} has bytes that are no instructions, and is left out", one_line(name));
    }
    out
}
