//! Data that nobody writes beside data that threads write: a reader loses its line with each write. It is so even where
//! the reader's call needs the written data as well, later: the wait is at the data that is only read.

use crate::naming::namer::Namer;
use crate::threads::process::Process;
use crate::threads::report::{BesideHot, NeededData};
use crate::threads::use_names::{Names, owners};
use std::collections::{BTreeMap, BTreeSet};

/// Data with fewer such waits in a thousand accesses of the threads is dropped.
const LEAST_PER_THOUSAND: f64 = 1.0;

/// Data with fewer such waits in all is dropped.
const LEAST_WAITS: u64 = 100;

/// Waits of one owner's data.
#[derive(Default)]
struct OfOwner {
    lines: u64,
    read: BTreeMap<String, u64>,
    written: BTreeMap<String, u64>,
}

/// Waits of accesses to bytes that no thread writes, on lines that others write, by the type or variable of these
/// bytes. Waits that are for the line alone in any reading are among the findings of false sharing and not here.
pub(super) fn beside_hot(
    processes: &[Process],
    accesses: u64,
    names: &mut Names<'_>,
    namer: &mut Namer<'_>,
) -> Vec<BesideHot> {
    found(processes, accesses, &mut |tag| {
        let owner = names.of(tag).map(|used| owners(used, namer)).unwrap_or_default();
        (owner, names.part(tag, namer))
    })
}

/// The same; `name` gives the owner and the part that an access with a tag is to.
fn found(
    processes: &[Process],
    accesses: u64,
    name: &mut dyn FnMut(u32) -> (String, String),
) -> Vec<BesideHot> {
    let mut all: BTreeMap<String, OfOwner> = BTreeMap::new();
    for process in processes {
        for (number, touched) in &process.touched {
            let written: Vec<(u64, u64)> = touched
                .iter()
                .filter(|(_, (_, writes))| *writes)
                .map(|((offset, size, ..), _)| (*offset, offset + size))
                .collect();
            let is_written = |offset: u64, size: u64| {
                written.iter().any(|(from, to)| offset < *to && *from < offset + size)
            };
            let mut read_only: BTreeMap<u32, bool> = BTreeMap::new();
            for (offset, size, tag, _) in touched.keys() {
                *read_only.entry(*tag).or_insert(true) &= !is_written(*offset, *size);
            }
            let mut counted: BTreeSet<String> = BTreeSet::new();
            for (pair, counts) in process.outcomes.recorded.pairs_of(*number) {
                let is_read_only = read_only.get(&pair.other_tag).copied().unwrap_or(false);
                let waits = counts.of_same_bytes_later;
                if !is_read_only || waits == 0 {
                    continue;
                }
                let (owner, part) = name(pair.other_tag);
                let found = all.entry(owner.clone()).or_default();
                found.lines += u64::from(counted.insert(owner));
                *found.read.entry(part).or_default() += waits;
                *found.written.entry(name(pair.writer_tag).1).or_default() += waits;
            }
        }
    }
    let mut found: Vec<BesideHot> = all
        .into_iter()
        .map(|(owner, of_owner)| {
            let waits = of_owner.read.values().sum();
            BesideHot {
                owner,
                lines: of_owner.lines,
                waits,
                per_thousand_accesses: 1000.0 * waits as f64 / accesses.max(1) as f64,
                read: most_first(of_owner.read),
                written: most_first(of_owner.written),
            }
        })
        .filter(|found| found.waits >= LEAST_WAITS && found.per_thousand_accesses >= LEAST_PER_THOUSAND)
        .collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.waits));
    found
}

fn most_first(waits: BTreeMap<String, u64>) -> Vec<NeededData> {
    let mut all: Vec<NeededData> =
        waits.into_iter().map(|(name, waits)| NeededData { name, waits }).collect();
    all.sort_by(|a, b| (b.waits, &a.name).cmp(&(a.waits, &b.name)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::access_log::Log;
    use crate::threads::process::process;
    use lineup_coherence::{Access, Kind, Timed};
    use lineup_model::access::{ProcessId, ThreadId};
    use lineup_model::line::LineSize;

    /// An object on one line: a mode that is only read, and a count that every call changes.
    const MODE: u64 = 0x1000;
    const COUNT: u64 = 0x1020;
    const ELSEWHERE: u64 = 0x2000;

    /// Two threads in turn, each doing these accesses a thousand times; tags are places in the list.
    fn threads(each: &[(u64, Kind)]) -> Vec<BesideHot> {
        let mut logs: BTreeMap<ThreadId, Log> = BTreeMap::new();
        let mut at = 0;
        for turn in 0..2000 {
            for (tag, (address, kind)) in each.iter().enumerate() {
                at += 1;
                let access =
                    Access { thread: 0, address: *address, size_bytes: 8, kind: *kind, tag: tag as u32 };
                logs.entry(ThreadId(turn % 2)).or_default().accesses.push(Timed { access, at });
            }
        }
        let processes = [process(ProcessId(0), logs, LineSize::B64)];
        found(&processes, at, &mut |tag| ("file".into(), format!("part {tag}")))
    }

    #[test]
    fn a_member_that_is_only_read_beside_a_count_of_the_same_call_is_found() {
        let found = threads(&[(MODE, Kind::Load), (COUNT, Kind::Update)]);
        let [file] = found.as_slice() else { panic!("one: {found:?}") };
        assert_eq!((file.owner.as_str(), file.lines), ("file", 1));
        assert!(file.waits > 1990 && file.per_thousand_accesses > 490.0, "{file:?}");
        assert_eq!(file.read, [NeededData { name: "part 0".into(), waits: file.waits }]);
        assert_eq!(file.written, [NeededData { name: "part 1".into(), waits: file.waits }]);
    }

    #[test]
    fn nothing_is_found_where_the_read_member_lies_elsewhere_or_is_written_or_comes_later() {
        assert_eq!(threads(&[(ELSEWHERE, Kind::Load), (COUNT, Kind::Update)]), []);
        assert_eq!(threads(&[(MODE, Kind::Load), (COUNT, Kind::Update), (MODE, Kind::Store)]), []);
        assert_eq!(threads(&[(COUNT, Kind::Update), (MODE, Kind::Load)]), []);
    }
}
