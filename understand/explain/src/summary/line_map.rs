//! Lines with their touched and untouched parts.

use crate::explanation::{ColdPart, LineUse, PartUse};
use crate::naming::namer::Namer;
use crate::naming::owner::{block_part, variable_ref, with_path};
use crate::summary::byte_patterns::Counted;
use crate::summary::tally::{ObjectPlace, RegionTally, VariableKey};
use crate::types::catalog::Ty;
use crate::types::fields::leaves;
use lineup_model::line::LineSize;
use lineup_model::usage::ByteUse;
use std::collections::{BTreeMap, BTreeSet};

/// The type's name if the object is a thread's block of thread-local variables.
pub(crate) const THREAD_LOCAL: &str = "(thread-local)";

/// Sums for one line.
#[derive(Default)]
struct Sums {
    needed: u64,
    loads: u64,
    stores: u64,
    bytes: u64,
    parts: BTreeMap<(u64, u64, String), (u64, u64)>,
    touched: BTreeSet<(u64, u64)>,
}

impl Sums {
    /// Adds the part of a pattern that lies on the line whose first byte is at `start`.
    fn add(
        &mut self,
        counted: &Counted,
        start: i64,
        line: LineSize,
        name: &mut dyn FnMut(u64, u64) -> String,
    ) {
        let end = start + line.bytes() as i64;
        let mut any = false;
        for run in &counted.bytes {
            let (from, to) = (run.offset as i64, (run.offset + run.size_bytes) as i64);
            let on_line = to.min(end) - from.max(start);
            if on_line <= 0 {
                continue;
            }
            any = true;
            self.loads += run.loads;
            self.stores += run.stores;
            self.bytes += on_line as u64 * counted.occurrences;
            self.touched.insert((run.offset, run.size_bytes));
            let part =
                self.parts.entry((run.offset, run.size_bytes, name(run.offset, run.size_bytes))).or_default();
            part.0 += run.loads;
            part.1 += run.stores;
        }
        self.needed += u64::from(any) * counted.occurrences;
    }

    fn finish(self, calls: u64) -> LineUse {
        let per_call = |count: u64| count as f64 / calls.max(1) as f64;
        LineUse {
            type_name: None,
            base_in_line: None,
            line: 0,
            needed_per_call: per_call(self.needed),
            loads_per_call: per_call(self.loads),
            stores_per_call: per_call(self.stores),
            bytes_used: self.bytes as f64 / self.needed.max(1) as f64,
            parts: self
                .parts
                .into_iter()
                .map(|((offset, size_bytes, name), (loads, stores))| PartUse {
                    name,
                    offset,
                    size_bytes,
                    loads_per_call: per_call(loads),
                    stores_per_call: per_call(stores),
                })
                .collect(),
            cold: Vec::new(),
            is_shared: false,
        }
    }
}

/// The lines of objects that a region touches, per type and place of the object in its line.
pub(crate) fn object_lines(namer: &mut Namer<'_>, tally: &RegionTally, line: LineSize) -> Vec<LineUse> {
    let mut sums: BTreeMap<(Ty, u64, u64), Sums> = BTreeMap::new();
    for (ObjectPlace { ty, base, .. }, counted) in tally.objects.sorted() {
        let base = u64::from(base) % line.bytes();
        let catalog = namer.catalog();
        let mut name =
            |offset, size| catalog.field(ty, offset, size).map_or(String::new(), |field| field.path.clone());
        let lines: BTreeSet<u64> =
            counted.bytes.iter().flat_map(|run| line.lines(base + run.offset, run.size_bytes)).collect();
        for number in lines {
            let start = (number * line.bytes()) as i64 - base as i64;
            sums.entry((ty, base, number)).or_default().add(&counted, start, line, &mut name);
        }
    }
    let mut out = Vec::new();
    for ((ty, base, number), sums) in sums {
        let start = (number * line.bytes()) as i64 - base as i64;
        let cold = cold_members(namer, ty, &sums.touched, start, start + line.bytes() as i64);
        let use_ = sums.finish(tally.calls);
        out.push(LineUse {
            type_name: Some(namer.catalog().name(ty)),
            base_in_line: Some(base),
            line: number,
            cold,
            ..use_
        });
    }
    out
}

/// The lines of threads' blocks that a region touches, per image and place of the block in its line.
pub(crate) fn block_lines(namer: &mut Namer<'_>, tally: &RegionTally, line: LineSize) -> Vec<LineUse> {
    let mut sums: BTreeMap<(usize, u64, u64), Sums> = BTreeMap::new();
    for ((image, base), counted) in tally.blocks.sorted() {
        let base = u64::from(base) % line.bytes();
        let mut name = |offset, size| block_part(namer, image, offset, size);
        let lines: BTreeSet<u64> =
            counted.bytes.iter().flat_map(|run| line.lines(base + run.offset, run.size_bytes)).collect();
        for number in lines {
            let start = (number * line.bytes()) as i64 - base as i64;
            sums.entry((image, base, number)).or_default().add(&counted, start, line, &mut name);
        }
    }
    let mut out = Vec::new();
    for ((image, base, number), sums) in sums {
        let start = (number * line.bytes()) as i64 - base as i64;
        let cold = cold_thread_locals(namer, image, &sums.touched, start, start + line.bytes() as i64);
        let type_name = Some(THREAD_LOCAL.to_owned());
        let use_ = sums.finish(tally.calls);
        out.push(LineUse { type_name, base_in_line: Some(base), line: number, cold, ..use_ });
    }
    out
}

/// Untouched thread-local variables on a line, and untouched members of touched ones.
fn cold_thread_locals(
    namer: &mut Namer<'_>,
    image: usize,
    touched: &BTreeSet<(u64, u64)>,
    start: i64,
    end: i64,
) -> Vec<ColdPart> {
    let is_touched = |from: u64, to: u64| touched.iter().any(|(at, count)| *at < to && from < at + count);
    let mut cold = Vec::new();
    for (first, size, variable) in namer.thread_locals(image) {
        let Some((reference, ty)) = variable_ref(namer, image, variable) else { continue };
        let described = ty.and_then(|ty| namer.catalog().table(ty));
        let parts = match described.filter(|_| is_touched(first, first + size)) {
            Some((types, described)) => leaves(types, described.id),
            None => vec![(String::new(), 0, size)],
        };
        for (path, within, size_bytes) in parts {
            let offset = first + within;
            let is_on_line = (offset as i64) < end && (offset + size_bytes) as i64 > start;
            if is_on_line && !is_touched(offset, offset + size_bytes) {
                cold.push(ColdPart { name: with_path(&reference.name, &path), offset, size_bytes });
            }
        }
    }
    cold
}

fn cold_members(
    namer: &mut Namer<'_>,
    ty: Ty,
    touched: &BTreeSet<(u64, u64)>,
    start: i64,
    end: i64,
) -> Vec<ColdPart> {
    let Some((types, described)) = namer.catalog().table(ty) else { return Vec::new() };
    leaves(types, described.id)
        .into_iter()
        .filter(|(_, offset, size)| {
            let (from, to) = (*offset as i64, (*offset + *size) as i64);
            from < end
                && to > start
                && !touched.iter().any(|(at, count)| at < &(offset + size) && *offset < at + count)
        })
        .map(|(name, offset, size_bytes)| ColdPart { name, offset, size_bytes })
        .collect()
}

/// The lines of variables that a region touches, by link address.
pub(crate) fn variable_lines(namer: &mut Namer<'_>, tally: &RegionTally, line: LineSize) -> Vec<LineUse> {
    let mut by_line: BTreeMap<(usize, u64), VariableSums> = BTreeMap::new();
    for (occurrences, variables) in tally.together.values() {
        let mut needed: BTreeSet<(usize, u64)> = BTreeSet::new();
        for (variable, runs) in variables {
            let Some((reference, ty)) = variable_ref(namer, variable.0, variable.1) else { continue };
            for run in &runs.runs() {
                let at = reference.address + run.offset;
                let path = ty.and_then(|ty| namer.catalog().field(ty, run.offset, run.size_bytes));
                let name = with_path(&reference.name, path.as_ref().map_or("", |field| &field.path));
                for number in line.lines(at, run.size_bytes) {
                    let key = (variable.0, number);
                    needed.insert(key);
                    let sums = by_line.entry(key).or_default();
                    sums.add(*variable, (at, run.size_bytes, name.clone()), run, *occurrences, line, number);
                }
            }
        }
        for key in needed {
            by_line.entry(key).or_default().sums.needed += occurrences;
        }
    }
    let mut out = Vec::new();
    for ((image, number), of_line) in by_line {
        let cold = cold_variables(namer, image, &of_line, number * line.bytes(), (number + 1) * line.bytes());
        out.push(LineUse { line: number, cold, ..of_line.sums.finish(tally.calls) });
    }
    out
}

#[derive(Default)]
struct VariableSums {
    sums: Sums,
    variables: BTreeSet<VariableKey>,
}

impl VariableSums {
    fn add(
        &mut self,
        variable: VariableKey,
        (at, size_bytes, name): (u64, u64, String),
        run: &ByteUse,
        occurrences: u64,
        line: LineSize,
        number: u64,
    ) {
        let (start, end) = (number * line.bytes(), (number + 1) * line.bytes());
        self.variables.insert(variable);
        self.sums.loads += run.loads;
        self.sums.stores += run.stores;
        self.sums.bytes += (end.min(at + size_bytes) - start.max(at)) * occurrences;
        self.sums.touched.insert((at, size_bytes));
        let part = self.sums.parts.entry((at, size_bytes, name)).or_default();
        part.0 += run.loads;
        part.1 += run.stores;
    }
}

/// Untouched variables on a line, and untouched members of touched ones.
fn cold_variables(
    namer: &mut Namer<'_>,
    image: usize,
    of_line: &VariableSums,
    start: u64,
    end: u64,
) -> Vec<ColdPart> {
    let mut cold = Vec::new();
    for variable in namer.variables_within(image, start, end) {
        let Some((reference, ty)) = variable_ref(namer, image, variable) else { continue };
        let parts = match ty.and_then(|ty| namer.catalog().table(ty)) {
            Some((types, described)) if of_line.variables.contains(&(image, variable)) => {
                leaves(types, described.id)
            }
            _ => vec![(String::new(), 0, reference.size_bytes)],
        };
        for (path, offset, size_bytes) in parts {
            let from = reference.address.saturating_add(offset);
            let to = from.saturating_add(size_bytes);
            let is_touched = of_line.sums.touched.iter().any(|(at, count)| *at < to && from < at + count);
            if from < end && to > start && !is_touched {
                cold.push(ColdPart { name: with_path(&reference.name, &path), offset: from, size_bytes });
            }
        }
    }
    cold
}
