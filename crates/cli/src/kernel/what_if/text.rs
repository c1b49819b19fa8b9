//! The prediction for a person.

use super::{Misses, Report};
use std::fmt::Write;

/// Per region, what a call misses before and after.
pub(super) fn text(report: &Report) -> String {
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
    let _ = writeln!(
        out,
        "\n{:width$} {:>6} {:>22} {:>22} {:>26}",
        "region", "calls", "L1D misses a call", "L2 misses a call", "stall cycles a call"
    );
    for region in report.regions.iter().filter(|region| region.calls > 0) {
        let per_call = |count: u64| count as f64 / region.calls as f64;
        let pair = |of: fn(&Misses) -> u64| {
            format!("{:.2} -> {:.2}", per_call(of(&region.before)), per_call(of(&region.after)))
        };
        let _ = writeln!(
            out,
            "{:width$} {:>6} {:>22} {:>22} {:>26}",
            region.region,
            region.calls,
            pair(|misses| misses.data_l1),
            pair(|misses| misses.code_l2 + misses.data_l2),
            pair(|misses| misses.stall_cycles)
        );
    }
    out.push_str("\nA prediction by the cache model, not a measurement.\n");
    out
}
