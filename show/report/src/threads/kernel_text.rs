//! Texts for kernels alone: tasks, and the waits of functions' calls.

use super::words::shortened_list;
use crate::text::{Align, Table, TextStyle};
use crate::visible::one_line;
use lineup_explain::threads::{BetweenThreads, CallWaits, CallsInWindows, TaskBetween, Waits};
use lineup_model::figure;
use lineup_model::figure::whole;
use std::fmt::Write;

/// The number of tasks listed with the task whose lines they took.
const NAMED: usize = 3;

/// The tasks that waited most or made others wait most, each with those that took lines from it.
pub(super) fn tasks(out: &mut String, between: &BetweenThreads, top: usize, style: TextStyle) {
    let mut table = Table::new([
        ("task", Align::Left),
        ("CPUs", Align::Left),
        ("accesses", Align::Right),
        ("its waits", Align::Right),
        ("line alone", Align::Right),
        ("made wait", Align::Right),
        ("who took lines from it (waits)", Align::Left),
    ]);
    for (place, task) in between.tasks.iter().enumerate().take(top) {
        let cpus: Vec<String> = task.cpus.iter().map(u32::to_string).collect();
        table.row([
            one_line(&task.name).into_owned(),
            cpus.join(" "),
            whole(task.accesses_to_shared_lines),
            whole(task.needed.all()),
            whole(task.needed.of_line_alone),
            whole(task.took.all()),
            takers(between, place, task),
        ]);
    }
    if table.is_empty() {
        return;
    }
    let _ = writeln!(out, "tasks, by waits in the recorded order:\n{}", table.render(style));
    let more = between.tasks.len().saturating_sub(top);
    if more > 0 {
        let _ = writeln!(out, "{} in the JSON form\n", figure::counted(more as u64, "more task"));
    }
}

fn takers(between: &BetweenThreads, place: usize, task: &TaskBetween) -> String {
    let rows = between.task_matrix.iter().filter(|row| row.needed_by == place);
    let named = rows.take(NAMED).filter_map(|row| {
        let by = between.tasks.get(row.taken_by)?;
        let name = if row.taken_by == place { "itself, elsewhere".into() } else { one_line(&by.name) };
        Some(format!("{name} ({})", whole(row.waits.all())))
    });
    let named: Vec<String> = named.collect();
    if task.needed.all() == 0 { String::new() } else { named.join(", ") }
}

/// The waits of functions' calls, usual ones and those of the tail.
pub(super) fn calls(out: &mut String, between: &BetweenThreads, wait_cycles: u64, style: TextStyle) {
    for calls in &between.calls_in_windows {
        one(out, calls, wait_cycles, style);
    }
}

fn one(out: &mut String, calls: &CallsInWindows, wait_cycles: u64, style: TextStyle) {
    let CallsInWindows { region, above_instructions, usual, tail, data } = calls;
    let _ = writeln!(
        out,
        "{}: {} in the windows, of which {} execute more than {} instructions",
        one_line(region),
        figure::counted(usual.calls + tail.calls, "whole call"),
        whole(tail.calls),
        figure::grouped(*above_instructions, 0)
    );
    let mut table = Table::new([
        ("waits for lines, a call", Align::Left),
        ("recorded", Align::Right),
        ("fewest", Align::Right),
        ("most", Align::Right),
        ("line alone, recorded", Align::Right),
        ("cycles", Align::Right),
    ]);
    for (what, calls) in [("usual", usual), ("tail", tail)].into_iter().filter(|(_, calls)| calls.calls > 0) {
        table.row(row(what, calls, wait_cycles));
    }
    out.push_str(&table.render(style));
    let a_call = |waits: Waits, calls: &CallWaits| waits.all() as f64 / calls.calls.max(1) as f64;
    let told = data.iter().map(|data| {
        let (usual, tail) = (a_call(data.usual, usual), a_call(data.tail, tail));
        format!("{} ({}, {})", one_line(&data.name), figure::grouped(usual, 2), figure::grouped(tail, 2))
    });
    let told: Vec<String> = told.collect();
    let _ = writeln!(out, "waits for what, a usual call and one of the tail: {}\n", shortened_list(&told));
}

fn row(what: &str, calls: &CallWaits, wait_cycles: u64) -> [String; 6] {
    let a_call = |waits: u64| waits as f64 / calls.calls as f64;
    let orders =
        [calls.waits.recorded, calls.waits.fewest, calls.waits.most].map(|waits| a_call(waits.all()));
    let cycles = |waits: f64| figure::grouped(waits * wait_cycles as f64, 0);
    let least = orders.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = orders.iter().copied().fold(0.0, f64::max);
    let [recorded, fewest, most] = orders.map(|waits| figure::grouped(waits, 2));
    [
        what.to_owned(),
        recorded,
        fewest,
        most,
        figure::grouped(a_call(calls.waits.recorded.of_line_alone), 2),
        format!("{}, {} to {} in other orders", cycles(orders[0]), cycles(least), cycles(largest)),
    ]
}
