//! Advice without an edit: counters that threads could each have a copy of, and better places for locks.

use super::report::{Beside, LockPlaces, LockReport, SharedCounter, Waits};
use crate::threads::process::{Process, all_waits};
use lineup_coherence::Lines;
use lineup_model::line::LineSize;
use std::collections::{BTreeMap, BTreeSet};

/// Fewer waits are nothing to act on.
const LEAST_WAITS: u64 = 100;
/// Waits that are rarer than one in this number of accesses are nothing to act on either.
const ACCESSES_PER_WAIT: u64 = 1000;
/// An address far from all of a program's data.
const APART: u64 = 0xf0 << 56;

/// The users of some bytes.
#[derive(Default)]
struct Bytes {
    threads: BTreeSet<u32>,
    tags: BTreeSet<u32>,
    /// Some use only reads them, or only writes.
    is_other_than_added_to: bool,
}

/// Counters: several threads add to them by one instruction, and nobody only reads or writes them in the recorded
/// calls. Each thread could have its own, if only the sum is needed. Locks' words are excluded.
pub(super) fn shared_counters(
    (processes, line): (&[Process], LineSize),
    accesses: u64,
    locks: &[LockReport],
    name: &mut dyn FnMut(u32) -> String,
) -> Vec<SharedCounter> {
    let mut found: BTreeMap<String, SharedCounter> = BTreeMap::new();
    for process in processes {
        let mut all: BTreeMap<(u64, u64), Bytes> = BTreeMap::new();
        for (number, touched) in &process.touched {
            for ((offset, size, tag, thread), (reads, writes)) in touched {
                let one = all.entry((number * line.bytes() + offset, *size)).or_default();
                one.threads.insert(*thread);
                one.tags.insert(*tag);
                one.is_other_than_added_to |= !(*reads && *writes);
            }
        }
        for ((address, _), Bytes { threads, tags, is_other_than_added_to }) in all {
            let is_lock =
                || locks.iter().any(|lock| address.wrapping_sub(lock.address) < lock.kind.own_bytes());
            let recorded = &process.outcomes.recorded.waits;
            let waits: u64 =
                tags.iter().filter_map(|tag| recorded.get(tag)).map(|counts| counts.of_same_bytes).sum();
            let is_much = waits >= LEAST_WAITS.max(accesses / ACCESSES_PER_WAIT);
            let Some(tag) = tags
                .first()
                .filter(|_| !is_other_than_added_to && threads.len() > 1 && is_much && !is_lock())
            else {
                continue;
            };
            let name = name(*tag);
            let new = SharedCounter { name: name.clone(), threads: 0, waits: 0 };
            let known = found.entry(name).or_insert(new);
            known.threads = known.threads.max(threads.len() as u64);
            known.waits += waits;
        }
    }
    let mut found: Vec<SharedCounter> = found.into_values().collect();
    found.sort_by_key(|one| std::cmp::Reverse(one.waits));
    found
}

/// All waits of a process in the recorded order for three places of a lock: the present one, its word alone on a line,
/// and its word on a line with the data most waited for while it is held. `None` where few wait for either.
pub(super) fn lock_places(
    process: &Process,
    (word, own_bytes): (u64, u64),
    needed: &[(u32, Waits)],
    line: LineSize,
    name: &mut dyn FnMut(u32) -> String,
) -> Option<LockPlaces> {
    let recorded = &process.outcomes.recorded;
    let of_line = recorded.lines.get(&line.line_of(word)).map_or(0, |line| {
        let (same, alone) = line.events();
        same + alone
    });
    let of_needed: u64 = needed.iter().map(|(_, waits)| waits.all()).sum();
    if of_line + of_needed < LEAST_WAITS {
        return None;
    }
    let shape = Lines::of(line.bytes());
    let own = |address: u64| Some(address.wrapping_sub(word)).filter(|offset| *offset < own_bytes);
    let alone =
        process.orders.recorded_at(shape, &|address| own(address).map_or(address, |offset| APART + offset));
    let data = needed
        .iter()
        .max_by_key(|(_, waits)| waits.all())
        .and_then(|(tag, _)| Some((*tag, bytes_of(process, *tag, line)?)));
    let fits = |(_, (at, size)): &(u32, (u64, u64))| own(*at).is_none() && size + own_bytes <= line.bytes();
    let beside = data.filter(fits).map(|(tag, (at, size))| {
        let place = |address: u64| match (own(address), address.wrapping_sub(at)) {
            (Some(offset), _) => APART + offset,
            (None, offset) if offset < size => APART + line.bytes() - size + offset,
            _ => address,
        };
        let waits = all_waits(&process.orders.recorded_at(shape, &place));
        Beside { name: name(tag), waits }
    });
    Some(LockPlaces { as_it_lies: all_waits(recorded), alone: all_waits(&alone), beside })
}

/// The bytes that a use accessed, where they are on one line.
fn bytes_of(process: &Process, tag: u32, line: LineSize) -> Option<(u64, u64)> {
    let places = process.touched.iter().flat_map(|(number, touched)| {
        let of_tag = touched.keys().filter(move |(_, _, known, _)| *known == tag);
        of_tag.map(move |(offset, size, ..)| (number * line.bytes() + offset, *size))
    });
    let places: BTreeSet<(u64, u64)> = places.collect();
    (places.len() == 1).then(|| places.first().copied()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::access_log::Log;
    use crate::threads::process::process;
    use lineup_coherence::{Access, Kind, Timed};
    use lineup_model::access::{ProcessId, ThreadId};

    /// Two threads that take turns, each doing these: address, kind, tag.
    fn in_turn(turns: u64, each: [&[(u64, Kind, u32)]; 2]) -> Process {
        let mut logs: BTreeMap<ThreadId, Log> = BTreeMap::new();
        let mut at = 0;
        for turn in 0..turns {
            let thread = (turn % 2) as u32;
            for (address, kind, tag) in each[thread as usize] {
                at += 1;
                let access = Access { thread: 0, address: *address, size_bytes: 8, kind: *kind, tag: *tag };
                logs.entry(ThreadId(thread)).or_default().accesses.push(Timed { access, at });
            }
        }
        process(ProcessId(0), logs, LineSize::B64)
    }

    const WORD: u64 = 0x1000;
    const TAKES: (u64, Kind, u32) = (WORD, Kind::Update, 0);

    #[test]
    fn a_lock_goes_away_from_what_others_read_and_next_to_what_it_guards() {
        let mut name = |tag: u32| format!("tag {tag}");
        // The second thread never takes the lock: it reads data next to the word.
        let read_beside = in_turn(1000, [&[TAKES], &[(WORD + 32, Kind::Load, 1)]]);
        let places = lock_places(&read_beside, (WORD, 4), &[], LineSize::B64, &mut name).expect("many wait");
        assert!(places.as_it_lies.of_line_alone > 900 && places.alone.all() == 0, "{places:?}");
        // Both take it and write data on another line.
        let guards: [(u64, Kind, u32); 2] = [TAKES, (0x2000, Kind::Update, 2)];
        let far = in_turn(1000, [&guards, &guards]);
        let waited = [(2, Waits { of_same_bytes: 999, of_line_alone: 0 })];
        let places = lock_places(&far, (WORD, 4), &waited, LineSize::B64, &mut name).expect("many wait");
        let beside = places.beside.expect("it fits");
        assert_eq!((places.as_it_lies.all(), places.alone.all()), (1996, 1996));
        assert_eq!((beside.name.as_str(), beside.waits.all()), ("tag 2", 998));
        // Few wait.
        let few = in_turn(20, [&guards, &guards]);
        assert_eq!(lock_places(&few, (WORD, 4), &[], LineSize::B64, &mut name), None);
    }

    #[test]
    fn what_threads_only_add_to_could_be_copied_and_what_one_reads_could_not() {
        let mut name = |tag: u32| format!("tag {tag}");
        let mut counters = |other: (u64, Kind, u32)| {
            let process = [in_turn(1000, [&[TAKES], &[other]])];
            shared_counters((&process, LineSize::B64), 1000, &[], &mut name)
        };
        let added = counters((WORD, Kind::Update, 1));
        assert_eq!((added.len(), added[0].name.as_str(), added[0].threads), (1, "tag 0", 2));
        assert!(added[0].waits > 900, "{added:?}");
        assert_eq!(counters((WORD, Kind::Load, 1)), []);
        assert_eq!(counters((WORD + 8, Kind::Update, 1)), [], "each has its own");
    }
}
