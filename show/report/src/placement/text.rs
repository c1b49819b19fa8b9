//! A study of placement as text.

use super::report::{PlacementReport, changed};
use crate::text::{Align, Table, TextStyle};
use crate::visible::one_line;
use std::fmt::Write;

/// The report for a terminal or a pipe: verdict, use, table, reasons.
pub fn placement_text(report: &PlacementReport, style: TextStyle) -> String {
    let mut out = String::new();
    line(&mut out, &report.verdict);
    for action in &report.actions {
        line(&mut out, &format!("  {}:", action.purpose));
        line(&mut out, &format!("      {}", action.text));
    }
    if let Some(confirmed) = &report.confirmed {
        line(&mut out, "");
        for input in &confirmed.inputs {
            line(&mut out, &format!("  {}: {}", confirmed.name, input.in_words()));
            if let Some(difference) = &input.difference {
                line(&mut out, &format!("      {difference}"));
            }
        }
        line(&mut out, &format!("  effects: {}", confirmed.effects));
    }
    if !report.candidates.is_empty() {
        line(&mut out, "");
        let columns = [
            ("placement", Align::Left),
            ("modelled time", Align::Right),
            ("time", Align::Right),
            ("peak memory", Align::Right),
            ("page faults", Align::Right),
            ("end", Align::Left),
        ];
        let mut table = Table::new(columns);
        for one in &report.candidates {
            table.row([
                one.name.clone(),
                one.modelled_in_words(),
                one.time_in_words(),
                changed(one.peak_memory_ratio),
                changed(one.page_faults_ratio),
                one.round.map_or_else(|| one.end.to_owned(), |round| format!("{}, round {round}", one.end)),
            ]);
        }
        out.push_str(&table.render(style));
    }
    for one in &report.not_tried {
        line(&mut out, &format!("  not tried: {}: {}", one.name, one.why));
    }
    for remark in &report.remarks {
        line(&mut out, &format!("  {remark}"));
    }
    out
}

fn line(out: &mut String, text: &str) {
    let _ = writeln!(out, "{}", one_line(text));
}
