//! The effects of threads on each other's caches, for people.

use super::kernel_text::{calls, tasks};
use super::report::ThreadsReport;
use super::words::{MOST_LISTED, in_words, notes, remedy, serialising_sentence, shortened_list};
use crate::text::{Align, Table, TextStyle};
use crate::visible::one_line;
use lineup_explain::threads::{
    BesideHot, BetweenThreads, FalseSharing, LineBetween, LockReport, NeededData, Of, Remedy, UseOf,
    WaitsByOrder,
};
use lineup_model::figure;
use lineup_model::figure::whole;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Pairs of code places shown of a line.
const PAIRS: usize = 3;

/// Findings first, then lines, then who made whom wait.
pub fn threads_text(page: &ThreadsReport<'_>, top: usize, style: TextStyle) -> String {
    let between = page.between;
    let mut out = String::new();
    head(&mut out, page);
    serialising(&mut out, between);
    for (number, found) in between.false_sharing.iter().take(top).enumerate() {
        finding(&mut out, number + 1, found, page.wait_cycles);
        out.push_str(&parts(found, style));
        if let Some(line) = between.lines.iter().find(|line| line.parts == found.parts) {
            pairs(&mut out, line, between.of);
        }
        let _ = writeln!(out, "   would part them: {}", remedy(&found.remedy, between.line_bytes));
        let _ = writeln!(out, "   {}\n", who_edits(&found.remedy));
    }
    for found in between.beside_hot.iter().take(top) {
        beside_hot(&mut out, found, between.of);
    }
    if between.false_sharing.is_empty() && between.beside_hot.is_empty() {
        let _ = match between.is_without_overlap() {
            true => writeln!(
                out,
                "whether threads share lines without need was not observed: no calls of two threads ran at once\n"
            ),
            false => writeln!(out, "no lines are shared without need by as much as is worth a change\n"),
        };
    }
    lines(&mut out, between, top, style);
    matrix(&mut out, between, style);
    tasks(&mut out, between, top, style);
    calls(&mut out, between, page.wait_cycles, style);
    locks(&mut out, between, top, style);
    for sentence in in_words(between, top) {
        let _ = writeln!(out, "{sentence}");
    }
    for note in notes(page) {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn head(out: &mut String, page: &ThreadsReport<'_>) {
    let between = page.between;
    let calls: u64 = between.threads.iter().map(|thread| thread.calls).sum();
    let _ = writeln!(
        out,
        "{} with {} accesses in {}; {} of {} bytes that several use and one writes",
        figure::counted(between.threads.len() as u64, between.of.one()),
        whole(between.accesses),
        figure::counted(calls, if between.of == Of::Cpus { "piece" } else { "call" }),
        figure::counted(between.lines.len() as u64, "line"),
        between.line_bytes
    );
    let WaitsByOrder { recorded, fewest, most } = between.waits;
    let _ = writeln!(
        out,
        "waits for lines in the recorded order: {} for bytes of another {}, {} for the line alone",
        whole(recorded.of_same_bytes),
        between.of.one(),
        whole(recorded.of_line_alone)
    );
    let _ = writeln!(
        out,
        "in other orders that give every load what it found: {} to {} for the line alone",
        whole(fewest.of_line_alone.min(recorded.of_line_alone)),
        whole(most.of_line_alone.max(recorded.of_line_alone))
    );
    let placed = between.placements.iter().map(|placement| placement.waits.of_line_alone);
    let (least, largest) = (placed.clone().min().unwrap_or(0), placed.max().unwrap_or(0));
    let _ = writeln!(
        out,
        "for the line alone, recorded order: {} to {} if everything lay 8 to {} bytes further up, {} with lines of 128 bytes\n",
        whole(least),
        whole(largest),
        between.line_bytes - 8,
        whole(between.in_pairs_of_lines.of_line_alone)
    );
}

/// Locks that keep threads from running side by side.
fn serialising(out: &mut String, between: &BetweenThreads) {
    for one in between.serialising() {
        let _ = writeln!(out, "{}", serialising_sentence(&one));
    }
}

fn finding(out: &mut String, number: usize, found: &FalseSharing, wait_cycles: u64) {
    let names: Vec<_> = found.owners.iter().map(|name| one_line(name)).collect();
    let cycles = found.per_thousand_accesses * wait_cycles as f64;
    let _ = writeln!(
        out,
        "{number}. false sharing: {}, {}: {} waits in a thousand accesses, up to {} in other orders; \
         at {wait_cycles} cycles a wait {} to {} cycles",
        names.join(", "),
        figure::counted(found.lines, "line"),
        figure::grouped(found.per_thousand_accesses, 1),
        figure::grouped(found.per_thousand_accesses_at_most, 1),
        figure::grouped(cycles, 0),
        figure::grouped(found.per_thousand_accesses_at_most * wait_cycles as f64, 0),
    );
    let WaitsByOrder { recorded, fewest, most } = found.waits;
    let _ = writeln!(
        out,
        "   for the line alone: {} recorded, {} at fewest, {} at most; for the same bytes: {}",
        whole(recorded.of_line_alone),
        whole(fewest.of_line_alone),
        whole(most.of_line_alone),
        whole(recorded.of_same_bytes)
    );
}

/// Data that nobody writes beside data that threads write.
fn beside_hot(out: &mut String, found: &BesideHot, of: Of) {
    let named = |all: &[NeededData]| {
        let named =
            all.iter().take(MOST_LISTED).map(|one| format!("{} ({})", one_line(&one.name), whole(one.waits)));
        let more = all.len().saturating_sub(MOST_LISTED);
        let more = (more > 0).then(|| format!("{more} more"));
        named.chain(more).collect::<Vec<String>>().join(", ")
    };
    let _ = writeln!(
        out,
        "false sharing beside written data: {}, {}: {} waits in a thousand accesses for data that no {} writes\n   read: {}\n   \
         the line went to writes of: {}\n   would part them: the read members on a line without the written ones\n",
        one_line(&found.owner),
        figure::counted(found.lines, "line"),
        figure::grouped(found.per_thousand_accesses, 1),
        of.one(),
        named(&found.read),
        named(&found.written)
    );
}

/// The line with the most waits.
fn parts(found: &FalseSharing, style: TextStyle) -> String {
    let mut table = Table::new([
        ("   offset", Align::Right),
        ("bytes", Align::Right),
        ("read by", Align::Left),
        ("written by", Align::Left),
        ("what", Align::Left),
    ]);
    for part in &found.parts {
        table.row([
            part.offset.to_string(),
            part.size_bytes.to_string(),
            threads(&part.readers),
            threads(&part.writers),
            part.name.clone(),
        ]);
    }
    table.render(style)
}

fn threads(all: &[u32]) -> String {
    let listed: Vec<String> = all.iter().take(MOST_LISTED).map(u32::to_string).collect();
    match (all.len(), all.len().saturating_sub(MOST_LISTED)) {
        (0, _) => "–".to_owned(),
        (_, 0) => listed.join(" "),
        (_, more) => format!("{} and {more} more", listed.join(" ")),
    }
}

fn pairs(out: &mut String, line: &LineBetween, of: Of) {
    for pair in line.pairs.iter().filter(|pair| pair.waits.of_line_alone > 0).take(PAIRS) {
        let _ = writeln!(
            out,
            "   {}: {} took the line from {}",
            figure::counted(pair.waits.of_line_alone, "time"),
            used(&pair.taken_by, of),
            used(&pair.needed_by, of)
        );
    }
}

fn used(used: &UseOf, of: Of) -> String {
    let place = used.place.as_deref().map(|place| format!(" ({})", one_line(place))).unwrap_or_default();
    format!("{} {} in {}{place}", of.one(), used.thread, one_line(&used.function))
}

/// The author of the edit: `lineup study` can try those with an edit.
fn who_edits(remedy: &Remedy) -> &'static str {
    match remedy.has_edit() {
        true => {
            "a study of these regions with --allow-growth tries it, and says why where the sources do not allow it"
        }
        false => "that edit is yours: lineup study makes none of this kind",
    }
}

fn lines(out: &mut String, between: &BetweenThreads, top: usize, style: TextStyle) {
    let mut table = Table::new([
        ("line at", Align::Right),
        ("same bytes", Align::Right),
        ("line alone", Align::Right),
        ("fewest", Align::Right),
        ("most", Align::Right),
        ("copies lost", Align::Right),
        ("what is on it (* written)", Align::Left),
    ]);
    for line in between.lines.iter().take(top) {
        let written = |writers: &[u32]| if writers.is_empty() { "" } else { "*" };
        let names = line.parts.iter().map(|part| format!("{}{}", part.name, written(&part.writers)));
        let mut names: Vec<String> = names.collect();
        names.dedup();
        table.row([
            format!("{:#x}", line.address),
            whole(line.waits.recorded.of_same_bytes),
            whole(line.waits.recorded.of_line_alone),
            whole(line.waits.fewest.of_line_alone),
            whole(line.waits.most.of_line_alone),
            whole(line.invalidations),
            shortened_list(&names),
        ]);
    }
    if !table.is_empty() {
        let _ = writeln!(out, "lines that several {}s use:\n{}", between.of.one(), table.render(style));
    }
}

fn matrix(out: &mut String, between: &BetweenThreads, style: TextStyle) {
    let one = between.of.one();
    let (taken, needed) = (format!("taken by {one}"), format!("needed by {one}"));
    let mut table = Table::new([
        (taken.as_str(), Align::Right),
        (needed.as_str(), Align::Right),
        ("same bytes", Align::Right),
        ("line alone", Align::Right),
    ]);
    for row in &between.matrix {
        table.row([
            row.taken_by.to_string(),
            row.needed_by.to_string(),
            whole(row.waits.of_same_bytes),
            whole(row.waits.of_line_alone),
        ]);
    }
    if !table.is_empty() {
        let _ = writeln!(out, "who made whom wait, in the recorded order:\n{}", table.render(style));
    }
}

fn locks(out: &mut String, between: &BetweenThreads, top: usize, style: TextStyle) {
    let (one, unit) = (between.of.one(), between.of.time_unit());
    let (held, waited) = (format!("held, {unit}"), format!("waited, {unit}"));
    let who = format!("{one} waited for {one}");
    let mut table = Table::new([
        ("lock", Align::Left),
        ("taken", Align::Right),
        (&held, Align::Right),
        (&waited, Align::Right),
        ("longest wait", Align::Right),
        (&who, Align::Left),
        ("where others wait longest", Align::Left),
        ("waits for its line", Align::Right),
        ("data on its line", Align::Left),
    ]);
    for lock in between.locks.iter().take(top) {
        let waits = lock.waits.iter().take(MOST_LISTED).map(|wait| {
            let named = |number| holder(between, lock, number);
            format!(
                "{} {} ({})",
                named(wait.thread),
                named(wait.waits_for),
                figure::counted(wait.times, "time")
            )
        });
        let section = lock.sections.first().map(|section| {
            let place = section.place.as_deref().map(|place| format!(" ({place})")).unwrap_or_default();
            format!("{}{place}", section.function)
        });
        table.row([
            lock.name.clone(),
            whole(lock.taken),
            whole(lock.held_time),
            whole(lock.waited_time()),
            whole(lock.waits.iter().map(|wait| wait.longest_time).max().unwrap_or(0)),
            waits.collect::<Vec<_>>().join(", "),
            section.unwrap_or_default(),
            whole(lock.line_waits.all()),
            shortened_list(&lock.data_on_its_line),
        ]);
    }
    if !table.is_empty() {
        let kinds: BTreeSet<&str> = between.locks.iter().map(|lock| lock.kind.name()).collect();
        let kinds: Vec<&str> = kinds.into_iter().collect();
        let _ = writeln!(out, "locks ({}):\n{}", kinds.join("; "), table.render(style));
    }
    needed(out, between, top, style);
}

/// The holder or waiter of a lock: a thread by its number, a task by its name.
fn holder(between: &BetweenThreads, lock: &LockReport, number: u32) -> String {
    let task = between.tasks.get(number as usize).filter(|_| lock.kind.is_of_tasks());
    task.map_or_else(|| number.to_string(), |task| one_line(&task.name).into_owned())
}

/// The data that travels with locks.
fn needed(out: &mut String, between: &BetweenThreads, top: usize, style: TextStyle) {
    let a_time = "waits each time";
    let mut table = Table::new([
        ("lock", Align::Left),
        (a_time, Align::Right),
        ("same bytes", Align::Right),
        ("line alone", Align::Right),
        ("what came over (waits)", Align::Left),
    ]);
    let waits = |lock: &&LockReport| lock.waits_while_held().all();
    let mut locks: Vec<&LockReport> = between.locks.iter().filter(|lock| waits(lock) > 0).collect();
    locks.sort_by_key(|lock| std::cmp::Reverse(waits(lock)));
    for lock in locks.into_iter().take(top) {
        let all = lock.waits_while_held();
        let data = lock.needed_while_held.iter().take(MOST_LISTED);
        let data = data.map(|needed| format!("{} ({})", needed.name, whole(needed.waits.all())));
        table.row([
            lock.name.clone(),
            figure::grouped(all.all() as f64 / lock.taken.max(1) as f64, 2),
            whole(all.of_same_bytes),
            whole(all.of_line_alone),
            data.collect::<Vec<_>>().join(", "),
        ]);
    }
    if !table.is_empty() {
        let one = between.of.one();
        let _ = writeln!(
            out,
            "what came over from another {one}'s cache while a lock was held:\n{}",
            table.render(style)
        );
    }
}
