//! The page of `lineup threads`: findings, a map of each line by who reads and writes its bytes, and who made whom
//! wait.

use super::report::ThreadsReport;
use super::task_page::{calls, tasks};
use super::words::{self, notes, remedy};
use crate::html::{NAME_CHARACTERS, Section, name, page, scroll};
use crate::visible::shortened;
use lineup_explain::threads::{
    BesideHot, BetweenThreads, FalseSharing, LineBetween, LockReport, LockWait, Matrix, NeededData, Of,
    PairBetween, PartBetween, TaskBetween, UseOf, Waits, WaitsByOrder,
};
use lineup_model::figure::whole;
use maud::{Markup, html};
use std::collections::BTreeSet;

/// Maps beyond this many are left out.
const MOST_MAPS: usize = 40;
/// Bytes in a row of a map.
const ROW_BYTES: u64 = 16;
/// The most data named that came over while a lock was held.
const NEEDED: usize = 5;
/// The most data named beside written data.
const MOST_NAMED: usize = 8;
/// Patterns that threads take turns in.
const LOOKS: usize = 6;

/// The page, with at most `top` proposals in words of each kind.
pub fn threads_page(report: &ThreadsReport<'_>, top: usize) -> String {
    let between = report.between;
    let in_words = words::in_words(between, top);
    let sections = [
        Section { anchor: "findings", heading: "Lines shared without need", body: findings(between) },
        Section { anchor: "maps", heading: "Who reads and writes each byte", body: maps(between) },
        Section {
            anchor: "matrix",
            heading: "Who made whom wait",
            body: html! { (matrix(between)) (tasks(between)) (calls(between)) },
        },
        Section {
            anchor: "locks",
            heading: "Locks",
            body: html! {
                (locks(between))
                @if !in_words.is_empty() { h3 { "In words" } ul { @for one in &in_words { li { (one) } } } }
            },
        },
        Section { anchor: "orders", heading: "Other orders, places and lines", body: orders(between) },
        Section {
            anchor: "not-seen",
            heading: "Not in these figures",
            body: html! {
                ul { @for note in notes(report) { li { (note) } } }
            },
        },
    ];
    let lead = html! { p.lead {
        (between.threads.len()) " " (between.of.one()) "s, " (whole(between.accesses)) " accesses; lines of " (between.line_bytes)
        " bytes that several threads use and one writes: " (between.lines.len()) "."
    } };
    page("threads", &shortened(&report.recording, NAME_CHARACTERS), &lead, &sections)
}

fn findings(between: &BetweenThreads) -> Markup {
    html! {
        @if between.false_sharing.is_empty() && between.beside_hot.is_empty() { p { "No lines are shared without need by as much as is worth a change." } }
        @for (number, found) in between.false_sharing.iter().enumerate() {
            (finding(number + 1, found, &remedy(&found.remedy, between.line_bytes)))
        }
        @for found in &between.beside_hot { (beside_hot(found, between.of.one())) }
    }
}

/// Data that nobody writes beside data that threads write.
fn beside_hot(found: &BesideHot, one: &str) -> Markup {
    let named = |all: &[NeededData]| {
        html! {
            @for (index, data) in all.iter().take(MOST_NAMED).enumerate() {
                @if index > 0 { ", " } (name(&data.name)) " (" (whole(data.waits)) ")"
            }
            @if all.len() > MOST_NAMED { ", " (all.len() - MOST_NAMED) " more" }
        }
    };
    html! {
        div.proposal {
            h3 { (name(&found.owner)) " beside written data" }
            p {
                (format!("{:.1}", found.per_thousand_accesses)) " waits in a thousand accesses for data that no " (one)
                " writes; on " (found.lines) @if found.lines == 1 { " line." } @else { " lines." }
            }
            p { "Read: " (named(&found.read)) ". The line went to writes of " (named(&found.written)) "." }
            p { b { "Would part them: " } "the read members on a line without the written ones." }
        }
    }
}

fn finding(number: usize, found: &FalseSharing, remedy: &str) -> Markup {
    html! {
        div.proposal {
            h3 { (number) ". " @for (index, owner) in found.owners.iter().enumerate() { @if index > 0 { ", " } (name(owner)) } }
            p {
                (format!("{:.1}", found.per_thousand_accesses)) " waits in a thousand accesses as recorded, up to "
                (format!("{:.1}", found.per_thousand_accesses_at_most)) " in other orders; on " (found.lines)
                @if found.lines == 1 { " line." } @else { " lines." }
            }
            p { b { "Would part them: " } (remedy) "." }
        }
    }
}

fn maps(between: &BetweenThreads) -> Markup {
    html! {
        p.muted {
            "One box per line, sixteen bytes a row. R and W name the threads that read and write; a pattern stands for the one thread that "
            "writes the bytes, ⇄ for bytes that several threads use and one writes."
            @if between.threads.len() > LOOKS { " There are " (LOOKS) " patterns: of " (between.of.one()) "s with the \
                                                 same pattern differ by their numbers." }
        }
        ul.legend aria-label="Threads" {
            @for thread in &between.threads {
                li { span class={ "swatch " (look(thread.thread)) } {} (between.of.one()) " " (thread.thread) " in " (name(&thread.region)) }
            }
            li { span class="swatch shared" {} "several threads, one of them writes" }
            li { span class="swatch cold" {} "read only" }
        }
        div.maps { @for line in between.lines.iter().take(MOST_MAPS) { (map(line, between.line_bytes, between.of)) } }
        @if between.lines.len() > MOST_MAPS { p.muted { (between.lines.len() - MOST_MAPS) " more lines are in the JSON form." } }
    }
}

fn look(thread: u32) -> String {
    format!("thread{}", thread as usize % LOOKS)
}

/// Bytes that the same threads use, under one name.
#[derive(Clone, PartialEq, Eq, Default)]
struct Run {
    from: u64,
    to: u64,
    names: BTreeSet<String>,
    readers: BTreeSet<u32>,
    writers: BTreeSet<u32>,
}

impl Run {
    fn class(&self) -> String {
        let users: BTreeSet<u32> = self.readers.union(&self.writers).copied().collect();
        match (self.writers.first(), users.len()) {
            (None, 0) => "padding".to_owned(),
            (None, _) => "cold".to_owned(),
            (Some(writer), 1) => look(*writer),
            _ => "shared".to_owned(),
        }
    }

    fn uses(&self) -> String {
        let list = |threads: &BTreeSet<u32>| threads.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        let of = |letter: &str, threads: &BTreeSet<u32>| match threads.is_empty() {
            true => String::new(),
            false => format!("{letter} {}", list(threads)),
        };
        [of("R", &self.readers), of("W", &self.writers)].join(" ").trim().to_owned()
    }

    fn name(&self) -> String {
        let all: Vec<&str> = self.names.iter().map(String::as_str).collect();
        shortened(&all.join(", "), NAME_CHARACTERS)
    }
}

/// The line's bytes from the first to the last.
fn runs(parts: &[PartBetween], line_bytes: u64) -> Vec<Run> {
    let mut all: Vec<Run> = Vec::new();
    for byte in 0..line_bytes {
        let mut run = Run { from: byte, to: byte + 1, ..Run::default() };
        for part in parts.iter().filter(|part| (part.offset..part.offset + part.size_bytes).contains(&byte)) {
            run.names.insert(part.name.clone());
            run.readers.extend(&part.readers);
            run.writers.extend(&part.writers);
        }
        match all.last_mut() {
            Some(last)
                if (&last.names, &last.readers, &last.writers)
                    == (&run.names, &run.readers, &run.writers) =>
            {
                last.to = run.to;
            }
            _ => all.push(run),
        }
    }
    all
}

fn map(line: &LineBetween, line_bytes: u64, of: Of) -> Markup {
    let runs = runs(&line.parts, line_bytes);
    let WaitsByOrder { recorded, .. } = line.waits;
    html! {
        div {
            div.line tabindex="0" role="group" aria-label=(in_words(line, &runs)) {
                div.line-head {
                    b { (format!("{:#x}", line.address)) }
                    span { (whole(recorded.of_same_bytes)) " waits for the same bytes, " (whole(recorded.of_line_alone)) " for the line alone" }
                }
                div.bytes { @for row in 0..line_bytes.div_ceil(ROW_BYTES) { (row_of(&runs, row)) } }
            }
            (parts(line, &runs))
            @if !line.pairs.is_empty() { (pairs(line, of)) }
        }
    }
}

/// The line's bytes with their names in full: on the drawing there may be no room for these.
fn parts(line: &LineBetween, runs: &[Run]) -> Markup {
    let table = html! { table {
        thead { tr { th.n { "bytes" } th { "what" } th { "read (R) and written (W) by" } } }
        tbody { @for run in runs.iter().filter(|run| !run.names.is_empty()) { tr {
            td.n { (run.from) " to " (run.to - 1) } td.name { (name(&run.name())) } td { (run.uses()) }
        } } }
    } };
    html! { details {
        summary { "Every part as a table" }
        (scroll(&format!("Parts of line {:#x}", line.address), &table))
    } }
}

fn in_words(line: &LineBetween, runs: &[Run]) -> String {
    let used = runs.iter().filter(|run| !run.names.is_empty());
    let words: Vec<String> = used
        .map(|run| format!("bytes {} to {}: {}, {}", run.from, run.to - 1, run.name(), run.uses()))
        .collect();
    format!("line {:#x}; {}", line.address, words.join("; "))
}

fn row_of(runs: &[Run], row: u64) -> Markup {
    let (from, to) = (row * ROW_BYTES, (row + 1) * ROW_BYTES);
    html! {
        div.at aria-hidden="true" { "+" (from) }
        @for run in runs.iter().filter(|run| run.from < to && run.to > from) {
            @let is_begun = run.from >= from;
            div class={ "cell " (run.class()) } style=(format!("grid-column:span {}", run.to.min(to) - run.from.max(from)))
                title={ (run.name()) ": " (run.uses()) } {
                span { @if run.class() == "shared" { "⇄ " } @if !is_begun && !run.names.is_empty() { "…" } (run.name()) }
                @if is_begun { span.use { (run.uses()) } }
            }
        }
    }
}

fn pairs(line: &LineBetween, of: Of) -> Markup {
    let used = |used: &UseOf| {
        html! {
            (of.one()) " " (used.thread) " in " (name(&used.function))
            @if let Some(place) = &used.place { " " span.muted { (shortened(place, NAME_CHARACTERS)) } }
            ", " (name(&used.part))
        }
    };
    let row = |pair: &PairBetween| {
        html! { tr {
            td { (used(&pair.taken_by)) } td { (used(&pair.needed_by)) }
            td.n { (whole(pair.waits.of_same_bytes)) } td.n { (whole(pair.waits.of_line_alone)) }
        } }
    };
    let table = html! { table {
        thead { tr { th { "the line was taken by" } th { "from" } th.n { "same bytes" } th.n { "line alone" } } }
        tbody { @for pair in &line.pairs { (row(pair)) } }
    } };
    html! { details { summary { "Which code" } (scroll("Transfers of the line between places in the code", &table)) } }
}

fn matrix(between: &BetweenThreads) -> Markup {
    let waits = |taken_by: u32, needed_by: u32| {
        let found = |row: &&Matrix| (row.taken_by, row.needed_by) == (taken_by, needed_by);
        between.matrix.iter().find(found).map(|row| row.waits).unwrap_or_default()
    };
    let cell = |Waits { of_same_bytes, of_line_alone }: Waits| {
        html! {
            td.n { @if of_same_bytes + of_line_alone > 0 { (whole(of_line_alone)) " + " (whole(of_same_bytes)) } @else { "–" } }
        }
    };
    let table = html! { table {
        thead { tr { th scope="col" { "taken by, needed by" } @for thread in &between.threads { th.n scope="col" { (between.of.one()) " " (thread.thread) } } } }
        tbody { @for row in &between.threads { tr {
            th scope="row" { (between.of.one()) " " (row.thread) }
            @for column in &between.threads { (cell(waits(row.thread, column.thread))) }
        } } }
    } };
    html! {
        p.muted { "Waits for the line alone + for the same bytes, in the recorded order: the row's thread took the line, the column's needed it." }
        (scroll("Who made whom wait", &table))
    }
}

fn locks(between: &BetweenThreads) -> Markup {
    let (one, unit) = (between.of.one(), between.of.time_unit());
    let waits = |lock: &LockReport| {
        html! {
            @for (index, wait) in lock.waits.iter().enumerate() {
                @if index > 0 { ", " }
                @if let Some((task, other)) = tasks_of(between, lock, wait) { (name(&task.name)) " for " (name(&other.name)) ": " }
                @else { (one) " " (wait.thread) " for " (wait.waits_for) ": " }
                 (whole(wait.times)) " ×, " (whole(wait.time)) " " (unit)
            }
        }
    };
    let table = html! { table {
        thead { tr {
            th { "lock" } th.n { "taken" } th.n { "held, " (unit) } th.n { "waited, " (unit) } th { "who waited for whom" }
            th { "where others wait longest" } th.n { "waits for its line" } th { "data on its line" }
            th { "came over while it was held" }
        } }
        tbody { @for lock in &between.locks { tr {
            td.name { (name(&lock.name)) } td.n { (whole(lock.taken)) } td.n { (whole(lock.held_time)) }
            td.n { (whole(lock.waited_time())) } td.name { (waits(lock)) }
            td.name { @if let Some(section) = lock.sections.first() {
                (name(&section.function)) @if let Some(place) = &section.place { " " span.muted { (shortened(place, NAME_CHARACTERS)) } }
            } }
            td.n { (whole(lock.line_waits.all())) }
            td.name { @for (index, data) in lock.data_on_its_line.iter().enumerate() { @if index > 0 { ", " } (name(data)) } }
            td.name { @for (index, needed) in lock.needed_while_held.iter().take(NEEDED).enumerate() {
                @if index > 0 { ", " } (name(&needed.name)) " (" (whole(needed.waits.all())) ")"
            } }
        } } }
    } };
    html! {
        @if between.locks.is_empty() { p { "None was taken in the recorded calls." } }
        @else { (scroll("Locks", &table)) }
    }
}

/// Whom a wait is of where tasks have the lock: the one that waits, and the one that has it.
fn tasks_of<'b>(
    between: &'b BetweenThreads,
    lock: &LockReport,
    wait: &LockWait,
) -> Option<(&'b TaskBetween, &'b TaskBetween)> {
    let task = |number: u32| between.tasks.get(number as usize).filter(|_| lock.kind.is_of_tasks());
    Some((task(wait.thread)?, task(wait.waits_for)?))
}

fn orders(between: &BetweenThreads) -> Markup {
    let WaitsByOrder { recorded, fewest, most } = between.waits;
    let row = |what: &str, waits: Waits| {
        html! { tr {
            th scope="row" { (what) } td.n { (whole(waits.of_same_bytes)) } td.n { (whole(waits.of_line_alone)) }
        } }
    };
    let table = html! { table {
        thead { tr { th { "order, place" } th.n { "same bytes" } th.n { "line alone" } } }
        tbody {
            (row("as recorded", recorded))
            (row("few changes between threads", fewest))
            (row("many waits", most))
            (row("as recorded, lines of 128 bytes", between.in_pairs_of_lines))
            @for placement in &between.placements {
                (row(&format!("as recorded, everything {} bytes further up", placement.moved_by_bytes), placement.waits))
            }
        }
    } };
    html! {
        p.muted { "Other orders keep every thread's own, and every load finds what it found." }
        (scroll("Waits in other orders and places", &table))
    }
}
