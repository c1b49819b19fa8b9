//! The prediction for a person.

use super::report::{Misses, Report};
use std::fmt::Write;

/// Per region, a call's misses before and after.
pub(crate) fn text(report: &Report) -> String {
    let mut out = String::from(
        "If these types were laid anew, predicted by running the caches over the recorded stream:\n",
    );
    let width = report.regions.iter().map(|region| region.region.len()).max().unwrap_or(0).max(6);
    for one in &report.types {
        let _ = write!(out, "  {}: {} objects", one.name, one.objects);
        if one.size_bytes != one.new_size_bytes {
            let _ = write!(out, ", {} -> {} bytes", one.size_bytes, one.new_size_bytes);
        }
        if one.unaligned > 0 {
            let _ = write!(
                out,
                ", {} of them where the new alignment allows none: taken as if they began before that",
                one.unaligned
            );
        }
        out.push('\n');
    }
    for one in report.types.iter().filter(|one| !one.lines.is_empty()) {
        let _ = writeln!(out, "\nlines of {} a call, by the accesses of the kept calls:", one.name);
        for lines in &one.lines {
            let _ = writeln!(out, "  {:width$} {:6.2} -> {:6.2}", lines.region, lines.before, lines.after);
        }
    }
    out.push('\n');
    out.push_str(match report.reproduces_recording {
        true => "The replay of the present layout misses exactly what the recorder saw.\n",
        false => "The replay of the present layout does not miss exactly what the recorder saw: take the figures with doubt.\n",
    });
    table(&mut out, report, width);
    out.push_str("\nA prediction by the cache model, not a measurement.\n");
    out
}

/// A column's head and content.
type Column = (&'static str, fn(&Misses) -> u64);

/// A row for each region: a call's misses before and after.
fn table(out: &mut String, report: &Report, width: usize) {
    let mut columns: Vec<Column> = vec![
        ("L1D misses a call", |misses| misses.data_l1),
        ("L2 misses a call", |misses| misses.code_l2 + misses.data_l2),
        ("stall cycles a call", |misses| misses.stall_cycles),
    ];
    if report.cpus > 1 {
        columns.insert(2, ("from other CPUs a call", |misses| misses.shared));
    }
    let _ = write!(out, "\n{:width$} {:>6}", "region", "calls");
    columns.iter().for_each(|(name, _)| out.push_str(&format!(" {name:>24}")));
    out.push('\n');
    for region in report.regions.iter().filter(|region| region.calls > 0) {
        let per_call = |count: u64| count as f64 / region.calls as f64;
        let _ = write!(out, "{:width$} {:>6}", region.region, region.calls);
        for (_, of) in &columns {
            let pair = format!("{:.2} -> {:.2}", per_call(of(&region.before)), per_call(of(&region.after)));
            let _ = write!(out, " {pair:>24}");
        }
        out.push('\n');
    }
}
