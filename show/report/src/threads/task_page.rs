//! The parts of the page of `lineup threads` for kernels alone: tasks, and the waits of functions' calls.

use crate::html::{name, scroll};
use lineup_explain::threads::{BetweenThreads, CallsInWindows, Waits};
use lineup_model::figure::whole;
use maud::{Markup, html};

/// Tasks in the matrix: those that waited and made wait most.
const MOST_TASKS: usize = 12;
/// Tasks listed.
const MOST_LISTED: usize = 60;

/// The tasks that made others wait, and each one's waits.
pub(super) fn tasks(between: &BetweenThreads) -> Markup {
    let first: Vec<_> = between.tasks.iter().enumerate().take(MOST_TASKS).collect();
    let waits = |taken_by: usize, needed_by: usize| {
        let found =
            between.task_matrix.iter().find(|row| (row.taken_by, row.needed_by) == (taken_by, needed_by));
        found.map(|row| row.waits).unwrap_or_default()
    };
    let matrix = html! { table {
        thead { tr { th scope="col" { "taken by, needed by" } @for (_, task) in &first { th.n scope="col" { (name(&task.name)) } } } }
        tbody { @for (row, task) in &first { tr {
            th scope="row" { (name(&task.name)) }
            @for (column, _) in &first { (cell(waits(*row, *column))) }
        } } }
    } };
    let list = html! { table {
        thead { tr { th { "task" } th { "CPUs" } th.n { "accesses" } th.n { "its waits" } th.n { "line alone" } th.n { "made wait" } } }
        tbody { @for task in between.tasks.iter().take(MOST_LISTED) { tr {
            td { (name(&task.name)) } td { @for cpu in &task.cpus { (cpu) " " } }
            td.n { (whole(task.accesses_to_shared_lines)) } td.n { (whole(task.needed.all())) }
            td.n { (whole(task.needed.of_line_alone)) } td.n { (whole(task.took.all())) }
        } } }
    } };
    html! { @if !between.tasks.is_empty() {
        h3 { "Tasks" }
        p.muted { "The same by task. A task that continues on another CPU makes itself wait. Interrupts work for \
                   nobody." }
        (scroll("Waits between tasks", &matrix))
        (scroll("Tasks", &list))
        @if between.tasks.len() > MOST_LISTED { p.muted { (between.tasks.len() - MOST_LISTED) " more are in the JSON form." } }
    } }
}

fn cell(Waits { of_same_bytes, of_line_alone }: Waits) -> Markup {
    html! {
        td.n { @if of_same_bytes + of_line_alone > 0 { (whole(of_line_alone)) " + " (whole(of_same_bytes)) } @else { "–" } }
    }
}

/// The waits of each function's calls.
pub(super) fn calls(between: &BetweenThreads) -> Markup {
    html! { @for calls in &between.calls_in_windows { (of_function(calls)) } }
}

fn of_function(calls: &CallsInWindows) -> Markup {
    let a_call = |waits: Waits, calls: u64| format!("{:.2}", waits.all() as f64 / calls.max(1) as f64);
    let orders = html! { table {
        thead { tr { th { "calls" } th.n { "how many" } th.n { "waits a call, recorded" } th.n { "fewest" } th.n { "most" } } }
        tbody { @for (what, calls) in [("usual", &calls.usual), ("tail", &calls.tail)] { tr {
            th scope="row" { (what) } td.n { (whole(calls.calls)) }
            @for waits in [calls.waits.recorded, calls.waits.fewest, calls.waits.most] { td.n { (a_call(waits, calls.calls)) } }
        } } }
    } };
    let data = html! { table {
        thead { tr { th { "what" } th.n { "usual call" } th.n { "call of the tail" } } }
        tbody { @for data in &calls.data { tr {
            td { (name(&data.name)) } td.n { (a_call(data.usual, calls.usual.calls)) } td.n { (a_call(data.tail, calls.tail.calls)) }
        } } }
    } };
    html! {
        h3 { "Calls of " (name(&calls.region)) }
        p.muted { "Calls that lie wholly in the windows; of the tail are those with more than " (format!("{:.0}", calls.above_instructions)) " instructions." }
        (scroll("Waits of calls by order", &orders))
        (scroll("Data that calls waited for, in the recorded order", &data))
    }
}
