//! A study of placement as text.

use super::{PlacementReport, changed};
use crate::text::{Align, Table, TextStyle};
use crate::visible::one_line;
use std::fmt::Write;

/// The report for a terminal or a pipe: verdict, use, table, reasons.
pub fn placement_text(report: &PlacementReport, style: TextStyle) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        let _ = writeln!(out, "{}", one_line(text));
    };
    line(&report.verdict);
    for action in &report.actions {
        line(&format!("  {}:", action.purpose));
        line(&format!("      {}", action.text));
    }
    if let Some(confirmed) = &report.confirmed {
        line("");
        for input in &confirmed.inputs {
            line(&format!("  {}: {}", confirmed.name, input.in_words()));
            if let Some(difference) = &input.difference {
                line(&format!("      {difference}"));
            }
        }
        line(&format!("  effects: {}", confirmed.effects));
    }
    if !report.candidates.is_empty() {
        line("");
        let columns = [
            ("placement", Align::Left),
            ("time", Align::Right),
            ("peak memory", Align::Right),
            ("page faults", Align::Right),
            ("end", Align::Left),
        ];
        let mut table = Table::new(columns);
        for one in &report.candidates {
            table.row([
                one.name.clone(),
                one.time_in_words(),
                changed(one.peak_memory_ratio),
                changed(one.page_faults_ratio),
                one.round.map_or_else(|| one.end.to_owned(), |round| format!("{}, round {round}", one.end)),
            ]);
        }
        out.push_str(&table.render(style));
    }
    let mut line = |text: &str| {
        let _ = writeln!(out, "{}", one_line(text));
    };
    for one in &report.not_tried {
        line(&format!("  not tried: {}: {}", one.name, one.why));
    }
    for remark in &report.remarks {
        line(&format!("  {remark}"));
    }
    out
}
