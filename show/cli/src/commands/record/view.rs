//! The summary for people.

use super::report::{Report, UnfollowedProgram};
use crate::whole_program::function_table::functions_text;
use lineup_explain::process_summary::ProcessSummary;
use lineup_explain::quantiles::Quantiles;
use lineup_explain::region_summary::RegionSummary;
use lineup_model::figure;
use lineup_model::figure::{counted, whole};
use lineup_report::text::{Align, Table, TextStyle};
use std::fmt::Write;

/// Tables, with at most `top` functions.
pub(crate) fn text(report: &Report, top: usize, style: TextStyle) -> String {
    let mut out = String::new();
    for region in &report.regions {
        region_text(&mut out, region, report.line_bytes, style);
    }
    if !report.functions.is_empty() {
        functions_text(&mut out, &report.functions, top, style);
        let _ = writeln!(out, "caches: {}", report.caches.join(" "));
    }
    if let Some(instructions) = report.total_instructions {
        let _ = writeln!(out, "instructions of the whole program: {}", whole(instructions));
    }
    // Calls in forked processes are always recorded where such processes are known.
    let counted = match report.functions.is_empty() {
        true => report.forks,
        false => report.processes.iter().filter(|process| process.origin == "forked").count() as u64,
    };
    let verb = if report.functions.is_empty() { "recorded" } else { "counted" };
    for (number, what) in [
        (report.threads, "threads".to_owned()),
        (counted, format!("processes forked off, {verb} as well")),
        (report.forks.saturating_sub(counted), "processes forked off, not counted".to_owned()),
    ] {
        if number > 0 {
            let _ = writeln!(out, "{what}: {}", whole(number));
        }
    }
    match report.functions.is_empty() {
        true => processes_text(&mut out, &report.processes, style),
        false => counted_processes_text(&mut out, &report.processes, top, style),
    }
    for UnfollowedProgram { program, why, times } in &report.unfollowed {
        let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
        let _ = writeln!(out, "not recorded: {program}, started {times}: it {why}");
    }
    for note in &report.notes {
        let _ = writeln!(out, "note: {note}");
    }
    if let Some(status) = report.exit_status.filter(|status| *status != 0) {
        let _ = writeln!(out, "the program exited with status {status}");
    }
    let _ = writeln!(out, "recording: {}, by {}", report.file, report.recorder);
    out
}

fn region_text(out: &mut String, region: &RegionSummary, line_bytes: u64, style: TextStyle) {
    let made = region.seen.map_or_else(|| "an unknown number".to_owned(), whole);
    let _ = writeln!(out, "{}: {} recorded of {made} made", region.name, counted(region.recorded, "call"));
    by_thread_text(out, &region.recorded_by_thread);
    let notes = [
        (Some(region.abandoned), "left by longjmp, an exception or a switch of stacks: recorded until then"),
        (Some(region.thread_ended), "ended with their thread inside them"),
        (Some(region.process_ended), "ended their process"),
        (Some(region.unfinished), "had not ended when the recording did; not in the table"),
        (region.truncated, "cut: more accesses than are kept per call"),
        (region.in_handlers, "not recorded: inside a signal handler that interrupted a recorded call"),
        (Some(region.missed_blocks), "blocks entered whose accesses were not recorded"),
    ];
    for (number, what) in notes {
        if let Some(number) = number.filter(|number| *number > 0) {
            let _ = writeln!(out, "  {} {what}", whole(number));
        }
    }
    if region.binding_calls > 0 {
        let (calls, instructions) = (whole(region.binding_calls), whole(region.binding_instructions));
        let what = if region.binding_calls == 1 { "call includes" } else { "calls include" };
        let _ = writeln!(
            out,
            "  {calls} {what} lazy binding: {instructions} instructions of the dynamic linker, not in the table"
        );
    }
    let columns = ["min", "median", "p99", "max"].map(|name| (name, Align::Right));
    let mut table = Table::new([("per call", Align::Left)].into_iter().chain(columns));
    let rows = [
        ("instructions".to_owned(), region.instructions),
        (format!("{line_bytes}-byte lines of data"), region.data_lines),
        (format!("{line_bytes}-byte lines of code"), region.code_lines),
    ];
    for (name, spread) in rows {
        if let Some(Quantiles { min, median, p99, max, .. }) = spread {
            table.row([name, whole(min), whole(median), whole(p99), whole(max)]);
        }
    }
    if !table.is_empty() {
        out.push_str(&table.render(style));
    }
    if let Some(all) = &region.all_calls {
        let (calls, median, mean) = (whole(all.calls), whole(all.median), figure::grouped(all.mean, 0));
        let _ = writeln!(out, "  over all {calls} calls: median {median} instructions, mean {mean}");
        if let Some(kept) = region.instructions.filter(|_| all.differs) {
            let (median, mean) = (whole(kept.median), figure::grouped(kept.mean, 0));
            let _ = writeln!(
                out,
                "  warning: the recorded calls are not like the rest: median {median}, mean {mean}; record more of them"
            );
        }
    }
}

/// Calls recorded by thread, where each has as many.
fn by_thread_text(out: &mut String, calls: &[u64]) {
    const MOST: usize = 16;
    let Some((least, most)) = calls.iter().min().zip(calls.iter().max()) else { return };
    let listed = || calls.iter().map(|calls| whole(*calls)).collect::<Vec<_>>().join(", ");
    let _ = match calls.len() <= MOST {
        true => writeln!(out, "  recorded by thread: {}", listed()),
        false => writeln!(
            out,
            "  recorded by thread: {} to {} in each of {}",
            whole(*least),
            whole(*most),
            calls.len()
        ),
    };
}

/// The origin of a process.
fn came_from(process: &ProcessSummary) -> String {
    match process.parent {
        Some(parent) => format!("{parent} {}", process.origin),
        None => process.origin.to_owned(),
    }
}

/// The counts of each process, when there is more than one; at most `top`, with the most instructions first.
fn counted_processes_text(out: &mut String, processes: &[ProcessSummary], top: usize, style: TextStyle) {
    if processes.len() < 2 {
        return;
    }
    let figures = ["instructions", "process", "pid"].map(|name| (name, Align::Right));
    let names = ["came from", "program"].map(|name| (name, Align::Left));
    let mut table = Table::new(figures.into_iter().chain(names));
    let mut sorted: Vec<&ProcessSummary> = processes.iter().collect();
    sorted.sort_by_key(|process| std::cmp::Reverse(process.instructions));
    for process in sorted.iter().take(top) {
        table.row([
            process.instructions.map_or("unknown".to_owned(), whole),
            process.number.to_string(),
            process.pid.to_string(),
            came_from(process),
            process.program.clone(),
        ]);
    }
    out.push_str(&table.render(style));
    if processes.len() > top {
        let _ = writeln!(out, "{} more processes; --top shows more, --json all", processes.len() - top);
    }
}

/// The processes with calls, when there is more than one process.
fn processes_text(out: &mut String, processes: &[ProcessSummary], style: TextStyle) {
    if processes.len() < 2 {
        return;
    }
    let names = [("process", Align::Right), ("pid", Align::Right), ("came from", Align::Left)];
    let rest = [("calls made", Align::Right), ("recorded", Align::Right), ("region", Align::Left)];
    let all = names.into_iter().chain(rest).chain([("program", Align::Left)]);
    let mut table = Table::new(all);
    for process in processes.iter().filter(|process| process.has_calls()) {
        let from = came_from(process);
        for region in process.regions.iter().filter(|region| region.recorded > 0 || region.seen > Some(0)) {
            table.row([
                process.number.to_string(),
                process.pid.to_string(),
                from.clone(),
                region.seen.map_or("unknown".to_owned(), whole),
                whole(region.recorded),
                region.name.clone(),
                process.program.clone(),
            ]);
        }
    }
    if !table.is_empty() {
        out.push_str(&table.render(style));
    }
    let silent = processes.iter().filter(|process| !process.has_calls()).count() as u64;
    if silent > 0 {
        let _ = writeln!(out, "processes without calls of these regions: {}", whole(silent));
    }
}
