//! An explanation as plain text.

use lineup_explain::Explanation;
use lineup_explain::explanation::{Coverage, LineUse, LinesPerCall, RegionExplanation, SharedLine};
use lineup_explain::quantiles::Quantiles;
use lineup_report::visible::one_line;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Tables of every region, with at most `top` lines each.
pub(super) fn text(explanation: &Explanation, top: usize) -> String {
    let mut out = String::new();
    for region in &explanation.regions {
        region_text(&mut out, region, explanation.line_bytes, top);
    }
    shared_text(&mut out, &explanation.shared_lines, explanation.threads, top);
    out
}

fn region_text(out: &mut String, region: &RegionExplanation, line_bytes: u64, top: usize) {
    let _ = writeln!(out, "{}: {} calls explained", one_line(&region.name), region.calls);
    let notes = [
        (region.unfinished, "calls left out: not ended when the recording did"),
        (region.abandoned, "calls left by longjmp or an exception"),
        (region.missed_blocks, "blocks entered whose accesses were not recorded"),
        (region.folded_patterns, "combinations of bytes folded: too many distinct ones"),
    ];
    for (count, what) in notes.iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(out, "  {count} {what}");
    }
    if let Some(rate) = region.calls_per_second {
        let _ = writeln!(out, "  {rate:.1} calls per second");
    }
    coverage_text(out, &region.coverage);
    for unnamed in &region.unnamed {
        let (function, image) = (one_line(&unnamed.function), one_line(&unnamed.image));
        let _ = writeln!(out, "    unnamed {:>10}  {function} ({image})", unnamed.accesses);
    }
    lines_text(out, &region.lines);
    for misses in &region.misses {
        let _ = writeln!(
            out,
            "  {}: {:.2} misses per call expected after {} bytes of other data",
            misses.cache, misses.misses_per_call, misses.pressure_bytes
        );
    }
    map_text(out, &region.map, line_bytes, top);
    code_text(out, region, line_bytes, top);
    out.push('\n');
}

/// Code by function: the lines that a call fetches on average.
fn code_text(out: &mut String, region: &RegionExplanation, line_bytes: u64, top: usize) {
    let mut functions: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for line in &region.code {
        let (lines, fetched) = functions.entry(&line.function).or_default();
        (*lines, *fetched) = (*lines + 1, *fetched + line.calls);
    }
    let mut functions: Vec<(&str, (u64, u64))> = functions.into_iter().collect();
    functions.sort_by_key(|(name, (_, fetched))| (std::cmp::Reverse(*fetched), *name));
    if !functions.is_empty() {
        let shown = top.min(functions.len());
        let _ = writeln!(
            out,
            "  code lines of {line_bytes} bytes by function, a call on average, and in any call ({shown} of {})",
            functions.len()
        );
    }
    for (name, (lines, fetched)) in functions.iter().take(top) {
        let per_call = *fetched as f64 / region.calls.max(1) as f64;
        let _ = writeln!(out, "    {per_call:>7.2} {lines:>5}  {}", one_line(name));
    }
}

fn coverage_text(out: &mut String, coverage: &Coverage) {
    let percent = |share: Option<f64>| {
        share.map_or("not observed".to_owned(), |share| format!("{:.2} %", share * 100.0))
    };
    let _ = writeln!(
        out,
        "  named {} of {} accesses; {} outside the stack",
        percent(coverage.named),
        coverage.accesses,
        percent(coverage.named_off_stack)
    );
    let share = |accesses: &u64| *accesses as f64 / coverage.accesses.max(1) as f64 * 100.0;
    for (class, accesses) in &coverage.by_class {
        let _ = writeln!(out, "    {:<18} {:>6.2} %", format!("{class:?}").to_lowercase(), share(accesses));
    }
    out.push_str("  by evidence\n");
    for (evidence, accesses) in &coverage.by_evidence {
        let _ = writeln!(out, "    {:<18} {:>6.2} %", format!("{evidence:?}"), share(accesses));
    }
}

fn lines_text(out: &mut String, lines: &[LinesPerCall]) {
    let _ = writeln!(
        out,
        "  lines per call {:>8} {:>8} {:>8} {:>8} {:>10}",
        "min", "median", "p99", "max", "mean"
    );
    for of_size in lines {
        for (what, spread) in [("data", &of_size.data), ("code", &of_size.code)] {
            let Some(Quantiles { min, median, p99, max, mean }) = spread else { continue };
            let _ = writeln!(
                out,
                "    {what} {:>4} B  {min:>8} {median:>8} {p99:>8} {max:>8} {mean:>10.2}",
                of_size.line_bytes
            );
        }
    }
}

fn map_text(out: &mut String, map: &[LineUse], line_bytes: u64, top: usize) {
    let _ = writeln!(
        out,
        "  lines of {line_bytes} bytes, most needed first ({} of {})",
        map.len().min(top),
        map.len()
    );
    for line in map.iter().take(top) {
        let place = match (&line.type_name, line.base_in_line) {
            (Some(name), Some(base)) => {
                format!("{} line {} (object at {base} in its line)", one_line(name), line.line)
            }
            _ => format!("variables at {:#x}", line.line * line_bytes),
        };
        let shared = if line.is_shared { ", passed between threads" } else { "" };
        let _ = writeln!(
            out,
            "    {place}: needed {:.3} times a call, {:.2} loads, {:.2} stores, {:.1} of {line_bytes} bytes used{shared}",
            line.needed_per_call, line.loads_per_call, line.stores_per_call, line.bytes_used
        );
        // Of a type, offsets in its object; of variables, in the line.
        let start = if line.type_name.is_none() { line.line * line_bytes } else { 0 };
        for part in &line.parts {
            let _ = writeln!(
                out,
                "      {:>6} {:>5} B  {:<40} {:>10.2} loads {:>10.2} stores",
                part.offset.wrapping_sub(start),
                part.size_bytes,
                one_line(&part.name),
                part.loads_per_call,
                part.stores_per_call
            );
        }
        let cold: Vec<&str> = line.cold.iter().map(|part| part.name.as_str()).collect();
        if !cold.is_empty() {
            let _ = writeln!(out, "      cold: {}", one_line(&cold.join(", ")));
        }
    }
}

fn shared_text(out: &mut String, lines: &[SharedLine], threads: u64, top: usize) {
    if threads < 2 {
        return;
    }
    let _ =
        writeln!(out, "lines passed between {threads} threads ({} of {})", lines.len().min(top), lines.len());
    for line in lines.iter().take(top) {
        let _ = writeln!(
            out,
            "  {:#x}: {} handovers of the same bytes, {} of the line alone; written by {:?}, read by {:?}",
            line.address, line.true_handovers, line.false_handovers, line.writers, line.readers
        );
        let _ = writeln!(out, "    {}", one_line(&line.parts.join(", ")));
    }
}
