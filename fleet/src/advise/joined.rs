//! All recordings of one type joined: patterns by service and function, at the offsets of one build.

use super::reference::{Layout, Layouts};
use crate::engine::Engine;
use crate::error::Result;
use crate::rows::quoted;
use lineup_model::usage::{ByteUse, NeededAnyway, ObjectPattern};
use std::collections::BTreeMap;

/// A service and a function of it.
pub(super) type Key = (String, String);

/// A function's uses of the type, over all recordings of its service.
#[derive(Default)]
pub(super) struct Used {
    /// Recorded calls.
    pub(super) calls: u64,
    pub(super) patterns: Vec<ObjectPattern>,
}

/// The rows read from the store.
#[derive(Default)]
pub(super) struct Joined {
    pub(super) by_key: BTreeMap<Key, Used>,
    pub(super) recordings: u64,
    /// Runs of bytes of members that the newest build does not have.
    pub(super) gone: u64,
    /// Recordings whose layout of the type is not in the store, or of another machine.
    pub(super) unplaced: u64,
}

/// A row of `patterns`.
struct Row {
    key: Key,
    run: String,
    build: String,
    pattern: i64,
    numbers: [Option<i64>; 11],
}

impl Joined {
    /// Everything in the store about the type, at the offsets of `reference`.
    pub(super) fn of(
        engine: &Engine,
        type_name: &str,
        layouts: &Layouts,
        reference: &Layout,
    ) -> Result<Joined> {
        let mut joined = Joined::default();
        let mut run = String::new();
        let rows = rows(engine, type_name)?;
        for group in rows.chunk_by(|a, b| (&a.run, a.pattern) == (&b.run, b.pattern)) {
            let Some(first) = group.first() else { continue };
            let own = layouts.by_build.get(&first.build).filter(|own| own.machine == reference.machine);
            let is_new = run != first.run;
            run.clone_from(&first.run);
            match own {
                Some(own) => {
                    joined.recordings += u64::from(is_new);
                    joined.add(group, own, reference);
                }
                None => joined.unplaced += u64::from(is_new),
            }
        }
        joined.count_calls(engine, type_name, layouts, reference)?;
        Ok(joined)
    }

    fn add(&mut self, group: &[Row], own: &Layout, reference: &Layout) {
        let Some(first) = group.first() else { return };
        let [_, occurrences, base, neighbour, at_first, at_last, at_both, ..] = first.numbers.map(whole);
        // In another build other data may lie after the object, and another object before it.
        let is_same_build = own == reference;
        let mut bytes = Vec::new();
        for row in group {
            let [.., offset, size, loads, stores] = row.numbers.map(whole);
            let (places, gone) = moved(own, reference, (offset, size));
            self.gone += u64::from(gone);
            bytes.extend(places.into_iter().map(|(offset, size_bytes)| ByteUse {
                offset,
                size_bytes,
                loads,
                stores,
            }));
        }
        if bytes.is_empty() {
            return;
        }
        let needed_anyway =
            NeededAnyway { first: needed(at_first), last: needed(at_last), both: needed(at_both) };
        let pattern = ObjectPattern {
            neighbour_distance_bytes: first.numbers[3].map(|_| neighbour).filter(|_| is_same_build),
            needed_anyway: if is_same_build { needed_anyway } else { NeededAnyway::default() },
            ..ObjectPattern::alone((base % 128) as u8, without_overlaps(bytes), occurrences)
        };
        self.by_key.entry(first.key.clone()).or_default().patterns.push(pattern);
    }

    /// Recorded calls of each function that used the type, each recording once.
    fn count_calls(
        &mut self,
        engine: &Engine,
        type_name: &str,
        layouts: &Layouts,
        reference: &Layout,
    ) -> Result<()> {
        let answer = engine.ask(&format!(
            "SELECT r.service, p.region, COALESCE(p.build_id, p.run), p.run, MAX(p.calls)
             FROM patterns p JOIN runs r ON r.run = p.run WHERE p.type_name = {}
             GROUP BY r.service, p.region, COALESCE(p.build_id, p.run), p.run",
            quoted(type_name)
        ))?;
        let (services, regions, builds) = (answer.texts(0)?, answer.texts(1)?, answer.texts(2)?);
        for (at, calls) in answer.wholes(4)?.into_iter().enumerate() {
            let own = builds[at].as_ref().and_then(|build| layouts.by_build.get(build));
            let key = (text(&services[at]), text(&regions[at]));
            if own.is_some_and(|own| own.machine == reference.machine)
                && let Some(used) = self.by_key.get_mut(&key)
            {
                used.calls = used.calls.saturating_add(whole(calls));
            }
        }
        Ok(())
    }
}

fn rows(engine: &Engine, type_name: &str) -> Result<Vec<Row>> {
    let answer = engine.ask(&format!(
        "SELECT r.service, p.region, p.run, COALESCE(p.build_id, p.run), p.pattern, p.calls, p.occurrences,
           p.base_in_line, p.neighbour_distance_bytes, p.first_line_needed, p.last_line_needed,
           p.both_lines_needed, p.offset_bytes, p.size_bytes, p.loads, p.stores
         FROM patterns p JOIN runs r ON r.run = p.run WHERE p.type_name = {}
         ORDER BY p.run, p.pattern, p.offset_bytes",
        quoted(type_name)
    ))?;
    let (services, regions) = (answer.texts(0)?, answer.texts(1)?);
    let (runs, builds, patterns) = (answer.texts(2)?, answer.texts(3)?, answer.wholes(4)?);
    let mut columns = Vec::new();
    for at in 5..16 {
        columns.push(answer.wholes(at)?);
    }
    let row = |at: usize| Row {
        key: (text(&services[at]), text(&regions[at])),
        run: text(&runs[at]),
        build: text(&builds[at]),
        pattern: patterns[at].unwrap_or(0),
        numbers: std::array::from_fn(|column| columns[column][at]),
    };
    Ok((0..runs.len()).map(row).collect())
}

/// Needed lines of 32, 64 and 128 bytes from those of 64, when the store has only these. A needed line of 64 bytes
/// makes that of 128 needed; the lines of 32 stay unknown.
fn needed(of_64: u64) -> [u64; 3] {
    [0, of_64, of_64]
}

fn text(value: &Option<String>) -> String {
    value.clone().unwrap_or_default()
}

fn whole(value: Option<i64>) -> u64 {
    value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0)
}

/// Bytes of one build's object in another build's, member by member; true when part of them is of no member there.
fn moved(own: &Layout, reference: &Layout, (offset, size): (u64, u64)) -> (Vec<(u64, u64)>, bool) {
    let end = offset.saturating_add(size);
    if own == reference {
        return (vec![(offset, size)], false);
    }
    let (mut places, mut gone) = (Vec::new(), false);
    for member in &own.members {
        let (start, stop) = member.bytes();
        let (from, to) = (offset.max(start), end.min(stop));
        if from >= to {
            continue;
        }
        match reference.members.iter().find(|other| other.name == member.name) {
            Some(other) => {
                let (begin, behind) = other.bytes();
                let place = begin.saturating_add(from - start);
                let size = (to - from).min(behind.saturating_sub(place));
                places.extend((size > 0).then_some((place, size)));
            }
            None => gone = true,
        }
    }
    (places, gone)
}

/// Sorted by offset, each byte once: parts of members that now overlap are one.
fn without_overlaps(mut bytes: Vec<ByteUse>) -> Vec<ByteUse> {
    bytes.sort_unstable();
    let mut all: Vec<ByteUse> = Vec::new();
    for one in bytes {
        match all.last_mut() {
            Some(last) if last.offset.saturating_add(last.size_bytes) > one.offset => {
                let end = one
                    .offset
                    .saturating_add(one.size_bytes)
                    .max(last.offset.saturating_add(last.size_bytes));
                last.size_bytes = end - last.offset;
                last.loads = last.loads.saturating_add(one.loads);
                last.stores = last.stores.saturating_add(one.stores);
            }
            _ => all.push(one),
        }
    }
    all
}
