//! The threads of a process: their accesses in each order, through the model.

use super::access_log::Log;
use super::report::{Placement, Waits};
use lineup_coherence::{Line, Lines, Orders, Outcome, PairCounts};
use lineup_model::access::{ProcessId, ThreadId};
use lineup_model::line::LineSize;
use std::collections::BTreeMap;

/// The results of one process's threads in each order.
pub(super) struct Outcomes {
    pub(super) recorded: Outcome,
    pub(super) fewest: Outcome,
    pub(super) most: Outcome,
}

/// Bytes of a line that a thread used: where in it, how many, by which use and which thread; whether it reads and
/// writes.
type Touched = BTreeMap<(u64, u64, u32, u32), (bool, bool)>;

/// The threads of a process, by the numbers that the model knows them by.
pub(super) struct Process {
    pub(super) id: ProcessId,
    pub(super) threads: Vec<ThreadId>,
    pub(super) outcomes: Outcomes,
    /// By line.
    pub(super) touched: BTreeMap<u64, Touched>,
    /// Accesses by tag.
    pub(super) counts: BTreeMap<u32, u64>,
    pub(super) orders: Orders,
    pub(super) placements: Vec<Placement>,
    pub(super) in_pairs: Waits,
    /// The number of uses of shared lines by each thread, by tag.
    by_thread: BTreeMap<(u32, u32), u64>,
}

impl Process {
    /// Accesses to lines of several threads: the thread, how many, and their tag.
    pub(super) fn accesses_by_tag(&self) -> impl Iterator<Item = (u32, u64, u32)> {
        self.by_thread.iter().map(|((thread, tag), count)| (*thread, *count, *tag))
    }
}

pub(super) fn process(id: ProcessId, logs: BTreeMap<ThreadId, Log>, line: LineSize) -> Process {
    let threads: Vec<ThreadId> = logs.keys().copied().collect();
    let (mut all, mut spans) = (Vec::new(), Vec::new());
    for (number, mut log) in (0u16..).zip(logs.into_values()) {
        log.accesses.iter_mut().for_each(|timed| timed.access.thread = number);
        spans.extend(log.spans.into_iter().map(|span| lineup_coherence::Span { thread: number, ..span }));
        all.push(log.accesses);
    }
    let mut touched: BTreeMap<u64, Touched> = BTreeMap::new();
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    let mut by_thread: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for timed in all.iter().flatten() {
        let access = timed.access;
        *counts.entry(access.tag).or_default() += 1;
        let thread = threads.get(usize::from(access.thread)).map_or(0, |thread| thread.0);
        *by_thread.entry((thread, access.tag)).or_default() += 1;
        let end = access.address.saturating_add(u64::from(access.size_bytes));
        for number in line.lines(access.address, u64::from(access.size_bytes)) {
            let (from, to) = (number * line.bytes(), (number + 1).saturating_mul(line.bytes()));
            let (first, end) = (access.address.max(from), end.min(to));
            let key = (first - from, end - first, access.tag, u32::from(access.thread));
            let (reads, writes) = touched.entry(number).or_default().entry(key).or_default();
            *reads |= access.kind != lineup_coherence::Kind::Store;
            *writes |= access.kind.writes();
        }
    }
    let orders = Orders::new(all, &spans);
    let shape = Lines::of(line.bytes());
    let moved = |step| Placement {
        moved_by_bytes: 8 * step,
        waits: all_waits(&orders.recorded(shape.moved_by(8 * step))),
    };
    let placements: Vec<Placement> = (1..line.bytes() / 8).map(moved).collect();
    Process {
        id,
        threads,
        placements,
        in_pairs: all_waits(&orders.recorded(Lines::of(128))),
        outcomes: Outcomes {
            recorded: orders.recorded(shape),
            fewest: orders.fewest(shape),
            most: orders.most(shape),
        },
        touched,
        counts,
        by_thread,
        orders,
    }
}

/// Waits by the tag of the access that waited, of all processes in an order.
pub(super) fn all_tags(
    processes: &[Process],
    order: fn(&Process) -> &Outcome,
) -> impl Iterator<Item = (&u32, &PairCounts)> {
    processes.iter().flat_map(move |process| &order(process).waits)
}

pub(super) fn all_waits(outcome: &Outcome) -> Waits {
    let (of_same_bytes, of_line_alone) = outcome.events();
    Waits { of_same_bytes, of_line_alone }
}

pub(super) fn line_waits(outcome: &Outcome, line: u64) -> Waits {
    let (of_same_bytes, of_line_alone) = outcome.lines.get(&line).map(Line::events).unwrap_or_default();
    Waits { of_same_bytes, of_line_alone }
}

pub(super) fn waits_of(counts: &PairCounts) -> Waits {
    Waits { of_same_bytes: counts.of_same_bytes, of_line_alone: counts.of_line_alone }
}
