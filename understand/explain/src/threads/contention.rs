//! Orders of the collected accesses through the model, and the results by line, code and thread.

use crate::naming::namer::Namer;
use crate::threads::access_log::{Log, Use};
use crate::threads::call_waits::calls_in_windows;
use crate::threads::collector::Collector;
use crate::threads::false_sharing::findings;
use crate::threads::layout_waits::Replay;
use crate::threads::lock_advice::{lock_places, shared_counters};
use crate::threads::locked_objects::LockedObjects;
use crate::threads::locks::{Lines as LinesOfLocks, Locks};
use crate::threads::process::{Outcomes, Process, all_waits, line_waits, process, waits_of};
use crate::threads::report::{
    BetweenThreads, LineBetween, LockReport, Matrix, Needed, NotSeen, PairBetween, PartBetween, Placement,
    ThreadSeen, UseOf, Waits, WaitsByOrder,
};
use crate::threads::task_contention::between_tasks;
use crate::threads::unwritten_data::beside_hot;
use crate::threads::use_names::{Names, owners};
use lineup_coherence::Outcome;
use lineup_model::access::{ProcessId, ThreadId};
use lineup_model::line::LineSize;
use lineup_model::region::Regions;
use std::collections::{BTreeMap, BTreeSet};

/// Pairs of code places listed with a line at most.
const MOST_PAIRS: usize = 20;

/// The name of data whose name is unknown.
const UNNAMED: &str = "(unnamed)";

/// The threads that read, and the threads that write.
type Users = (BTreeSet<u32>, BTreeSet<u32>);

impl Collector {
    /// Contention between threads, and the data needed to try other layouts; `None` when fewer than two threads have
    /// calls with times.
    pub(crate) fn work_out(
        self,
        namer: &mut Namer<'_>,
        regions: &Regions,
        line: LineSize,
    ) -> Option<(BetweenThreads, Replay)> {
        let Collector { logs, uses, locks, calls_without_times, of, tasks, reaches, .. } = self;
        let threads: Vec<ThreadSeen> = logs
            .values()
            .flat_map(|of_process| {
                let beside = |thread| time_beside(of_process, thread);
                of_process.iter().map(move |(thread, log)| seen(*thread, log, beside(*thread), regions))
            })
            .collect();
        if threads.len() < 2 {
            return None;
        }
        let accesses_left_out = logs.values().flatten().map(|(_, log)| log.left_out).sum();
        let processes: Vec<Process> = logs.into_iter().map(|(id, logs)| process(id, logs, line)).collect();
        let mut names = Names::new(&uses);
        let mut lines: Vec<LineBetween> = Vec::new();
        for process in &processes {
            lines.extend(
                process.touched.keys().map(|number| of_line(process, *number, line, &mut names, namer)),
            );
        }
        lines.retain(|line| is_shared(&line.parts));
        let total = |of: fn(&Outcomes) -> &Outcome| {
            processes
                .iter()
                .map(|process| all_waits(of(&process.outcomes)))
                .fold(Waits::default(), Waits::plus)
        };
        let accesses = threads.iter().map(|thread| thread.accesses).sum();
        let beside_hot = beside_hot(&processes, accesses, &mut names, namer);
        let false_sharing = findings(&processes, &lines, (&uses, accesses), (line, namer));
        lines.sort_by_key(|line| {
            let WaitsByOrder { recorded, most, .. } = line.waits;
            (std::cmp::Reverse((recorded.all().max(most.all()), recorded.all())), line.process, line.address)
        });
        let (tasks, task_matrix, places) = between_tasks(&processes, &uses, &tasks);
        let calls_in_windows = calls_in_windows(&reaches, &processes, &uses, regions, namer);
        let mut locks = lock_reports(locks, &processes, &uses, line, namer);
        by_places_of_tasks(&mut locks, &places);
        let mut name = |tag| names.part(tag, namer);
        let counters = shared_counters((&processes, line), accesses, &locks, &mut name);
        let between = BetweenThreads {
            counters,
            line_bytes: line.bytes(),
            of,
            accesses,
            waits: WaitsByOrder {
                recorded: total(|of| &of.recorded),
                fewest: total(|of| &of.fewest),
                most: total(|of| &of.most),
            },
            false_sharing,
            beside_hot,
            tasks,
            task_matrix,
            calls_in_windows,
            locks,
            matrix: matrix(&processes),
            placements: placements(&processes),
            in_pairs_of_lines: processes
                .iter()
                .map(|process| process.in_pairs)
                .fold(Waits::default(), Waits::plus),
            not_seen: NotSeen {
                // Calls inside others carry none when others do.
                calls_without_times: if threads.iter().any(|thread| thread.calls > 0) {
                    0
                } else {
                    calls_without_times
                },
                accesses_left_out,
            },
            threads,
            lines,
        };
        let replay = Replay::new(processes, &uses, (between.waits, accesses), line, namer);
        Some((between, replay))
    }
}

fn seen(thread: ThreadId, log: &Log, time_beside_others: u64, regions: &Regions) -> ThreadSeen {
    let most = log.regions.iter().max_by_key(|(_, calls)| **calls).map(|(id, _)| *id);
    let region = regions.iter().find(|(id, _)| Some(*id) == most);
    ThreadSeen {
        thread: thread.0,
        calls: log.regions.values().sum(),
        accesses: log.all_accesses,
        accesses_to_shared_lines: log.accesses.len() as u64,
        time: log.time,
        time_beside_others,
        region: region.map(|(_, region)| lineup_debuginfo::spelled(&region.name)).unwrap_or_default(),
    }
}

/// The time during a thread's calls in which a call of another thread was under way.
fn time_beside(logs: &BTreeMap<ThreadId, Log>, thread: ThreadId) -> u64 {
    let spans = |log: &Log| -> Vec<(u64, u64)> {
        log.spans.iter().map(|span| (span.began_at, span.ended_at)).collect()
    };
    let others = logs.iter().filter(|(other, _)| **other != thread).flat_map(|(_, log)| spans(log));
    let mut others: Vec<(u64, u64)> = others.collect();
    others.sort_unstable();
    // Joined, so that no time counts twice.
    others.dedup_by(|next, run| {
        let meets = next.0 <= run.1;
        run.1 = if meets { run.1.max(next.1) } else { run.1 };
        meets
    });
    let own = logs.get(&thread).map(spans).unwrap_or_default();
    let common = |(began, ended): (u64, u64)| -> u64 {
        let first = others.partition_point(|run| run.1 <= began);
        let met = others[first..].iter().take_while(|run| run.0 < ended);
        met.map(|run| ended.min(run.1) - began.max(run.0)).sum()
    };
    own.into_iter().map(common).sum()
}

/// Identifies the tasks in waits for locks by their places.
fn by_places_of_tasks(locks: &mut [LockReport], places: &BTreeMap<u32, usize>) {
    let place = |number: u32| places.get(&number).and_then(|place| u32::try_from(*place).ok());
    for lock in locks.iter_mut().filter(|lock| lock.kind.is_of_tasks()) {
        lock.waits.retain_mut(|wait| match (place(wait.thread), place(wait.waits_for)) {
            (Some(thread), Some(waits_for)) => {
                (wait.thread, wait.waits_for) = (thread, waits_for);
                true
            }
            // Such a task used no line that another CPU used.
            _ => false,
        });
    }
}

fn lock_reports(
    locks: Locks,
    processes: &[Process],
    uses: &[Use],
    line: LineSize,
    namer: &mut Namer<'_>,
) -> Vec<LockReport> {
    let find = |process: ProcessId| processes.iter().find(|known| known.id == process);
    let tag = |process, address| find(process).and_then(|process| tag_at(process, uses, address, line));
    let needed = needed_under_locks(processes, uses);
    let objects: BTreeMap<ProcessId, LockedObjects> =
        processes.iter().map(|process| (process.id, LockedObjects::of(process, uses))).collect();
    let lines = LinesOfLocks {
        name: &|namer, process, address| {
            let tag = tag(process, address);
            tag.map_or_else(|| UNNAMED.to_owned(), |tag| Names::new(uses).part(tag, namer))
        },
        object: &|namer, process, address| {
            let tag = tag(process, address);
            tag.map_or_else(|| (UNNAMED.to_owned(), None), |tag| Names::new(uses).object(tag, namer))
        },
        waits: &|process, address| {
            let number = line.line_of(address);
            find(process).map_or_else(Waits::default, |known| line_waits(&known.outcomes.recorded, number))
        },
        within: &|process, word, lock| objects.get(&process)?.within(word, lock),
        places: &|namer, (process, word), own_bytes, lock| {
            let waited = needed.get(&lock).map_or(&[][..], Vec::as_slice);
            let mut name = |tag| Names::new(uses).part(tag, namer);
            lock_places(find(process)?, (word, own_bytes), waited, line, &mut name)
        },
        needed: &|namer, lock| {
            let mut names = Names::new(uses);
            let mut by_name: BTreeMap<String, Waits> = BTreeMap::new();
            for (tag, waits) in needed.get(&lock).into_iter().flatten() {
                let known = by_name.entry(names.part(*tag, namer)).or_default();
                *known = known.plus(*waits);
            }
            let mut all: Vec<Needed> =
                by_name.into_iter().map(|(name, waits)| Needed { name, waits }).collect();
            all.sort_by_key(|needed| std::cmp::Reverse(needed.waits.all()));
            all
        },
    };
    locks.report(namer, &lines)
}

/// Data that threads waited for while they had a lock, by the lock's number: the accesses' tags.
fn needed_under_locks(processes: &[Process], uses: &[Use]) -> BTreeMap<u32, Vec<(u32, Waits)>> {
    let mut all: BTreeMap<u32, Vec<(u32, Waits)>> = BTreeMap::new();
    for (tag, counts) in processes.iter().flat_map(|process| &process.outcomes.recorded.waits) {
        if let Some(lock) = uses.get(*tag as usize).and_then(|used| used.under) {
            all.entry(lock).or_default().push((*tag, waits_of(counts)));
        }
    }
    all
}

/// A use of the data at an address, if it is on a line that was kept: one that has a name, when there is one.
fn tag_at(process: &Process, uses: &[Use], address: u64, line: LineSize) -> Option<u32> {
    let touched = process.touched.get(&line.line_of(address))?;
    let at = address % line.bytes();
    let found = touched.keys().filter(|(offset, size, ..)| (*offset..offset + size).contains(&at));
    let tags = found.map(|(_, _, tag, _)| *tag);
    tags.max_by_key(|tag| uses.get(*tag as usize).is_some_and(|used| used.part.is_some()))
}

/// Whether several threads use the data and one writes. Lines next to such ones were kept, too.
fn is_shared(parts: &[PartBetween]) -> bool {
    let threads: BTreeSet<u32> =
        parts.iter().flat_map(|part| part.readers.iter().chain(&part.writers)).copied().collect();
    threads.len() > 1 && parts.iter().any(|part| !part.writers.is_empty())
}

fn of_line(
    process: &Process,
    number: u64,
    line: LineSize,
    names: &mut Names<'_>,
    namer: &mut Namer<'_>,
) -> LineBetween {
    let outcomes = &process.outcomes;
    let mut parts: BTreeMap<(u64, u64, String), Users> = BTreeMap::new();
    let mut all_owners = BTreeSet::new();
    for ((offset, size, tag, thread), (reads, writes)) in process.touched.get(&number).into_iter().flatten() {
        let thread = process.threads.get(*thread as usize).map_or(0, |thread| thread.0);
        let name = names.part(*tag, namer);
        all_owners.extend(names.of(*tag).map(|used| owners(used, namer)));
        let (readers, writers) = parts.entry((*offset, *size, name)).or_default();
        if *reads {
            readers.insert(thread);
        }
        if *writes {
            writers.insert(thread);
        }
    }
    let part =
        |((offset, size_bytes, name), (readers, writers)): (_, (BTreeSet<u32>, BTreeSet<u32>))| PartBetween {
            offset,
            size_bytes,
            name,
            readers: readers.into_iter().collect(),
            writers: writers.into_iter().collect(),
        };
    let counts = outcomes.recorded.lines.get(&number).copied().unwrap_or_default();
    LineBetween {
        process: process.id.0,
        address: number * line.bytes(),
        owners: all_owners.into_iter().collect(),
        waits: WaitsByOrder {
            recorded: line_waits(&outcomes.recorded, number),
            fewest: line_waits(&outcomes.fewest, number),
            most: line_waits(&outcomes.most, number),
        },
        invalidations: counts.invalidations,
        transfers: counts.transfers,
        parts: parts.into_iter().map(part).collect(),
        pairs: pairs(process, number, names, namer),
    }
}

fn pairs(process: &Process, number: u64, names: &mut Names<'_>, namer: &mut Namer<'_>) -> Vec<PairBetween> {
    let mut all: BTreeMap<(UseOf, UseOf), Waits> = BTreeMap::new();
    for (pair, counts) in process.outcomes.recorded.pairs_of(number) {
        let mut used = |thread: u16, tag| {
            let thread = process.threads.get(usize::from(thread)).map_or(0, |thread| thread.0);
            names.used(thread, tag, namer)
        };
        let key = (used(pair.writer, pair.writer_tag), used(pair.other, pair.other_tag));
        let known = all.entry(key).or_default();
        *known = known.plus(waits_of(counts));
    }
    let pair = |((taken_by, needed_by), waits)| PairBetween { taken_by, needed_by, waits };
    let mut all: Vec<PairBetween> = all.into_iter().map(pair).collect();
    all.sort_by_key(|pair| std::cmp::Reverse(pair.waits.all()));
    all.truncate(MOST_PAIRS);
    all
}

fn matrix(processes: &[Process]) -> Vec<Matrix> {
    let mut all: BTreeMap<(u32, u32), Waits> = BTreeMap::new();
    for process in processes {
        for (pair, counts) in &process.outcomes.recorded.pairs {
            let thread = |number: u16| process.threads.get(usize::from(number)).map_or(0, |thread| thread.0);
            let known = all.entry((thread(pair.writer), thread(pair.other))).or_default();
            *known = known.plus(waits_of(counts));
        }
    }
    let row = |((taken_by, needed_by), waits)| Matrix { taken_by, needed_by, waits };
    all.into_iter().map(row).collect()
}

fn placements(processes: &[Process]) -> Vec<Placement> {
    let mut all: BTreeMap<u64, Waits> = BTreeMap::new();
    for placement in processes.iter().flat_map(|process| &process.placements) {
        let known = all.entry(placement.moved_by_bytes).or_default();
        *known = known.plus(placement.waits);
    }
    all.into_iter().map(|(moved_by_bytes, waits)| Placement { moved_by_bytes, waits }).collect()
}
