//! Threads and locks in words, for the terminal, the page and a study's facts.

use super::report::ThreadsReport;
use crate::visible::one_line;
use lineup_explain::threads::{BetweenThreads, LockPlaces, LockReport, Of, Remedy, Serialising};
use lineup_model::figure::{self, share, whole};

/// Names listed one by one.
pub(super) const MOST_LISTED: usize = 8;

pub(super) fn shortened_list(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST_LISTED);
    let listed = names.iter().take(MOST_LISTED).cloned();
    listed.chain((more > 0).then(|| format!("{more} more"))).collect::<Vec<_>>().join(", ")
}

/// The effect of a lock that keeps threads from running side by side.
pub fn serialising_sentence(one: &Serialising<'_>) -> String {
    let most = one.most_threads().map_or_else(String::new, |most| {
        format!("; no more than {} of them can work at once", figure::grouped(most, 1))
    });
    format!(
        "{} serialises the threads: {} take it, hold it for {} of the time of their calls and wait for it for {}{most}",
        one_line(&one.lock.name),
        figure::counted(one.lock.threads, "thread"),
        share(one.held),
        share(one.asked)
    )
}

/// The change that parts data of different threads, in words.
pub(super) fn remedy(remedy: &Remedy, line_bytes: u64) -> String {
    match remedy {
        Remedy::PartMembers { ty, .. } => {
            format!("members of {} that different threads use, on lines of their own", one_line(ty))
        }
        Remedy::AlignObjects { ty, size_bytes, aligned_bytes, .. } if size_bytes == aligned_bytes => {
            format!("objects of {} that begin lines of {line_bytes} bytes, which they fill", one_line(ty))
        }
        Remedy::AlignObjects { ty, size_bytes, .. } => format!(
            "room behind each {} ({size_bytes} bytes now), so that objects of different threads share no line of {line_bytes} bytes",
            one_line(ty)
        ),
        Remedy::SpreadArray { variable, .. } => format!(
            "an array of structs of {line_bytes} bytes in place of {}, or indices that are {line_bytes} bytes apart",
            one_line(variable)
        ),
        Remedy::AlignVariables { variables, .. } => {
            let names: Vec<_> = variables.iter().map(|name| one_line(name)).collect();
            format!("{} each aligned to {line_bytes} bytes", names.join(" and "))
        }
        Remedy::AlignAllocations => {
            format!(
                "memory for each thread that is allocated at multiples of {line_bytes} bytes, and rounded up to them"
            )
        }
    }
}

/// The proposals in words: they are not turned into edits.
pub(super) fn in_words(between: &BetweenThreads, top: usize) -> Vec<String> {
    let counters = between
        .counters
        .iter()
        .take(top)
        .map(|counter| format!("{}: {}", one_line(&counter.name), counter.in_words(between.of)));
    let locks =
        between.locks.iter().take(top).filter_map(|lock| Some(lock_place(lock, lock.places.as_ref()?)));
    counters.chain(locks).collect()
}

/// A better place for a lock.
fn lock_place(lock: &LockReport, places: &LockPlaces) -> String {
    let (now, alone) = (places.as_it_lies.all(), places.alone.all());
    let beside = places.beside.as_ref().map(|beside| (one_line(&beside.name), beside.waits.all()));
    let best = places.best();
    let advice = match &beside {
        _ if !places.are_better() => "leave it where it lies".to_owned(),
        Some((name, waits)) if *waits == best => {
            format!("move it next to {name}, away from what else is there")
        }
        _ => "move it away from its neighbours".to_owned(),
    };
    let together = beside.as_ref().map_or(String::new(), |(name, waits)| {
        format!(", {} with it and {name} on a line of their own", whole(*waits))
    });
    format!(
        "{}: {} in all as it lies, {} with its word alone on a line{together}: {advice}.",
        one_line(&lock.name),
        figure::counted(now, "wait"),
        whole(alone)
    )
}

/// Facts that the figures do not show, a sentence each.
pub(super) fn notes(page: &ThreadsReport<'_>) -> Vec<String> {
    let mut all = vec![
        match page.between.of {
            Of::Threads => {
                "threads were slower while they were recorded, so that at their own speed the order differs; waits are counted in a \
                 model in which each thread has a cache of its own that holds everything"
            }
            Of::Cpus => {
                "the order is that of the emulator's virtual CPUs, which another machine's differ from; waits are counted in a model \
                 in which each CPU has a cache of its own that holds everything; what the kernel accesses of programs' memory and of \
                 devices is left out"
            }
        }
        .to_owned(),
    ];
    if page.between.is_without_overlap() {
        let waits = page.between.waits.recorded.all();
        let handed_over = match waits {
            0 => String::new(),
            waits => format!(
                ": the {} above {} data that one call left and a later one of another thread used",
                figure::counted(waits, "wait"),
                if waits == 1 { "is for" } else { "are for" }
            ),
        };
        all.push(format!(
            "no recorded call ran while one of another thread did{handed_over}. What threads do to each other at once was not \
             observed; record the function that the threads run all the time, or more calls"
        ));
    }
    if let Some(cut) = page.calls_cut.filter(|cut| *cut > 0) {
        all.push(format!("of {} only a part of the accesses was recorded", figure::counted(cut, "call")));
    }
    let left_out = page.between.not_seen.accesses_left_out;
    if left_out > 0 {
        all.push(format!("{} more accesses were left out", whole(left_out)));
    }
    all
}
