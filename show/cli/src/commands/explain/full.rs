//! Everything that is known.

use super::parts::{
    ONE_THREAD, SAMPLES, coverage_line, function_name, no_names, no_registers, notes, rows, unnamed_line,
};
use lineup_explain::Explanation;
use lineup_explain::explanation::{Coverage, LineUse, LinesPerCall, RegionExplanation, SharedLine};
use lineup_explain::quantiles::Quantiles;
use lineup_model::figure::counted;
use lineup_report::visible::one_line;
use std::collections::BTreeMap;

/// Tables of every region, with at most `top` lines of memory each.
pub(crate) fn lines(explanation: &Explanation, top: usize) -> Vec<String> {
    let mut out: Vec<String> = no_names(explanation).into_iter().collect();
    for region in &explanation.regions {
        region_lines(&mut out, region, explanation.line_bytes, top);
    }
    shared(&mut out, &explanation.shared_lines, explanation.threads, top);
    out.extend((!explanation.tells.whole_calls).then(|| SAMPLES.to_owned()));
    out.extend(no_registers(explanation));
    out
}

fn region_lines(out: &mut Vec<String>, region: &RegionExplanation, line_bytes: u64, top: usize) {
    out.push(format!("{}: {} explained", function_name(&region.name), counted(region.calls, "call")));
    out.extend(notes(region));
    coverage(out, &region.coverage);
    out.extend(region.unnamed.iter().map(unnamed_line));
    per_call(out, &region.lines);
    for misses in &region.misses {
        out.push(format!(
            "  {}: {:.2} misses per call expected after {} bytes of other data",
            misses.cache, misses.misses_per_call, misses.pressure_bytes
        ));
    }
    map(out, &region.map, line_bytes, top);
    code(out, region, line_bytes, top);
    out.push(String::new());
}

fn coverage(out: &mut Vec<String>, coverage: &Coverage) {
    out.push(coverage_line(coverage));
    let share = |accesses: &u64| *accesses as f64 / coverage.accesses.max(1) as f64 * 100.0;
    for (class, accesses) in &coverage.by_class {
        out.push(format!("    {:<18} {:>6.2} %", format!("{class:?}").to_lowercase(), share(accesses)));
    }
    out.push("  by evidence".to_owned());
    for (evidence, accesses) in &coverage.by_evidence {
        out.push(format!("    {:<18} {:>6.2} %", format!("{evidence:?}"), share(accesses)));
    }
}

fn per_call(out: &mut Vec<String>, lines: &[LinesPerCall]) {
    out.push(format!(
        "  lines per call {:>8} {:>8} {:>8} {:>8} {:>10}",
        "min", "median", "p99", "max", "mean"
    ));
    for of_size in lines {
        for (what, quantiles) in [("data", &of_size.data), ("code", &of_size.code)] {
            let Some(Quantiles { min, median, p99, max, mean }) = quantiles else { continue };
            out.push(format!(
                "    {what} {:>4} B  {min:>8} {median:>8} {p99:>8} {max:>8} {mean:>10.2}",
                of_size.line_bytes
            ));
        }
    }
}

fn map(out: &mut Vec<String>, map: &[LineUse], line_bytes: u64, top: usize) {
    let shown = map.len().min(top);
    out.push(format!("  lines of {line_bytes} bytes, most needed first ({shown} of {})", map.len()));
    for line in map.iter().take(top) {
        let place = match (&line.type_name, line.base_in_line) {
            (Some(name), Some(base)) => {
                format!("{} line {} (object at {base} in its line)", one_line(name), line.line)
            }
            _ => format!("variables at {:#x}", line.line * line_bytes),
        };
        out.push(format!("    {place}"));
        let shared = if line.is_shared { ", passed between threads" } else { "" };
        out.push(format!(
            "      needed {:.3} times a call, {:.2} loads, {:.2} stores, {:.1} of {line_bytes} bytes used{shared}",
            line.needed_per_call, line.loads_per_call, line.stores_per_call, line.bytes_used
        ));
        // For a type, offsets in its object; for variables, in the line.
        let start = if line.type_name.is_none() { line.line * line_bytes } else { 0 };
        for row in rows(&line.parts) {
            out.push(format!(
                "      {:>6} {:>5} B {:>9.2} loads {:>9.2} stores  {}",
                offset_from(start, row.offset),
                row.size_bytes,
                row.loads_per_call,
                row.stores_per_call,
                row.label()
            ));
        }
        cold(out, line);
    }
}

/// The distance from the start of its line or object; negative for data that begins on the line before.
fn offset_from(start: u64, offset: u64) -> i128 {
    i128::from(offset) - i128::from(start)
}

/// Data that shares a line without being used. An array is named once.
fn cold(out: &mut Vec<String>, line: &LineUse) {
    let mut names: Vec<&str> = line.cold.iter().map(|part| part.name.as_str()).collect();
    names.dedup();
    if !names.is_empty() {
        out.push(format!("      cold: {}", one_line(&names.join(", "))));
    }
}

/// Code by function: the lines that a call fetches on average.
fn code(out: &mut Vec<String>, region: &RegionExplanation, line_bytes: u64, top: usize) {
    let mut functions: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for line in &region.code {
        let (lines, fetched) = functions.entry(&line.function).or_default();
        (*lines, *fetched) = (*lines + 1, *fetched + line.calls);
    }
    let mut functions: Vec<(&str, (u64, u64))> = functions.into_iter().collect();
    functions.sort_by_key(|(name, (_, fetched))| (std::cmp::Reverse(*fetched), *name));
    if functions.is_empty() {
        return;
    }
    let (shown, all) = (top.min(functions.len()), functions.len());
    out.push(format!("  code lines of {line_bytes} bytes by function ({shown} of {all})"));
    out.push("    a call   any call  function".to_owned());
    for (name, (lines, fetched)) in functions.iter().take(top) {
        let per_call = *fetched as f64 / region.calls.max(1) as f64;
        out.push(format!("    {per_call:>6.2} {lines:>10}  {}", one_line(name)));
    }
}

fn shared(out: &mut Vec<String>, lines: &[SharedLine], threads: u64, top: usize) {
    if threads < 2 {
        return out.push(ONE_THREAD.to_owned());
    }
    out.push(format!("lines passed between {threads} threads ({} of {})", lines.len().min(top), lines.len()));
    for line in lines.iter().take(top) {
        out.push(format!(
            "  {:#x}: {} handovers of the same bytes, {} of the line alone; written by {:?}, read by {:?}",
            line.address, line.true_handovers, line.false_handovers, line.writers, line.readers
        ));
        out.push(format!("    {}", one_line(&line.parts.join(", "))));
    }
}

#[cfg(test)]
mod tests {
    use super::offset_from;

    #[test]
    fn what_begins_before_its_line_has_a_negative_offset() {
        assert_eq!(offset_from(0x1000, 0x0ff8), -8);
        assert_eq!(offset_from(0x1000, 0x1010), 16);
        assert_eq!(offset_from(0, u64::MAX), i128::from(u64::MAX));
    }
}
