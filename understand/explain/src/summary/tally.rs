//! Counts of one region, call by call.

use crate::explanation::{Coverage, LinesPerCall};
use crate::naming::name::{Class, VariableId};
use crate::naming::namer::NamedRange;
use crate::naming::owner::{OwnerKey, Part};
use crate::summary::byte_patterns::{Patterns, Touches};
use crate::summary::byte_sums::ByteSums;
use crate::summary::quantiles::{Quantiles, bars};
use crate::summary::touched_bytes::{TouchedBytes, Use, granules};
use crate::types::catalog::Ty;
use lineup_model::access::{Access, AccessKind, CODE_GRANULE_BYTES, Call, CallEnd};
use lineup_model::line::LineSize;
use lineup_model::usage::{ByteUse, NeededAnyway};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Distinct footprints kept for the cache model.
const MAX_FOOTPRINTS: usize = 1000;

/// A variable of an image, by the image's index.
pub(crate) type VariableKey = (usize, VariableId);

/// An object's type and where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct ObjectPlace {
    /// Its type.
    pub ty: Ty,
    /// Its start in a line of 128 bytes.
    pub base: u8,
    /// See [`lineup_model::usage::ObjectPattern`].
    pub neighbour_distance_bytes: Option<u64>,
}

/// Variables one call touched together, each with the bytes touched.
pub(crate) type VariableSet = Vec<(VariableKey, Vec<(u64, u64)>)>;

/// The tally of one region.
#[derive(Default, Debug)]
pub(crate) struct RegionTally {
    pub(crate) calls: u64,
    pub(crate) unfinished: u64,
    pub(crate) abandoned: u64,
    pub(crate) missed_blocks: u64,
    pub(crate) instructions: Vec<u64>,
    data_lines: [Vec<u64>; 3],
    code_lines: [Vec<u64>; 3],
    /// Calls by the code granules that they fetched.
    pub(crate) code: HashMap<u64, u64>,
    pub(crate) coverage: Coverage,
    /// Unnamed accesses by program counter.
    pub(crate) unnamed: HashMap<u64, u64>,
    /// Objects that no variable is or holds.
    pub(crate) objects: Patterns<ObjectPlace>,
    /// The same of objects in variables. Their bytes are those of [`RegionTally::together`] and
    /// [`RegionTally::blocks`].
    pub(crate) objects_in_variables: Patterns<ObjectPlace>,
    /// The same of threads' blocks of thread-local variables, by image.
    pub(crate) blocks: Patterns<(usize, u8)>,
    /// The addresses of each type's objects.
    pub(crate) placed: BTreeSet<(Ty, u64)>,
    /// Per combination of variables, to group them.
    pub(crate) together: HashMap<VariableSet, (u64, BTreeMap<VariableKey, ByteSums>)>,
    pub(crate) folded_together: u64,
    pub(crate) footprints: HashMap<Footprint, u64>,
}

/// The granules of data and code that a call used, each sorted: numbers of 32-byte lines.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Footprint {
    /// Data.
    pub data: Vec<u64>,
    /// Code.
    pub code: Vec<u64>,
}

/// One call while it is read.
#[derive(Default, Debug)]
pub(crate) struct CallTally {
    /// Lines of 32 bytes, each with the bytes of it that are of no object, the lowest bit the first.
    granules: HashMap<u64, u32>,
    parts: BTreeMap<OwnerKey, Touches>,
    /// Objects whose bytes are a variable's.
    in_variables: HashSet<OwnerKey>,
}

impl CallTally {
    /// Counts the lines of bytes from `address` on that an access touched, and whose they are.
    pub(crate) fn add(&mut self, kind: AccessKind, (address, size_bytes): (u64, u64), parts: &[Part]) {
        let is_of_object = parts.iter().any(|part| matches!(part.owner, OwnerKey::Object(..)));
        for (granule, bytes) in granules(address, size_bytes) {
            *self.granules.entry(granule).or_default() |= if is_of_object { 0 } else { bytes };
        }
        for part in parts {
            let touches = self.parts.entry(part.owner).or_default();
            touches.add(part.offset, part.size_bytes, kind == AccessKind::Store);
            if part.is_in_variable {
                self.in_variables.insert(part.owner);
            }
        }
    }
}

impl RegionTally {
    /// Counts an access by its name. One with several counts by the first, or as unnamed when one of them is missing.
    pub(crate) fn name(&mut self, access: &Access, ranges: &[NamedRange]) {
        let nameless = ranges.iter().find(|range| range.named.class() == Class::Unnamed);
        let Some(range) = nameless.or(ranges.first()) else { return };
        let class = range.named.class();
        self.coverage.add(class, range.named.evidence, 1);
        if class == Class::Unnamed {
            *self.unnamed.entry(access.pc).or_default() += 1;
        }
    }

    /// Ends a call. `size_of` gives the bytes of a type.
    pub(crate) fn end(&mut self, call: &Call, tally: CallTally, size_of: &dyn Fn(Ty) -> Option<u64>) {
        self.calls += 1;
        self.abandoned += u64::from(call.end == CallEnd::Abandoned);
        self.missed_blocks += call.missed_blocks;
        self.instructions.push(call.instructions);
        for granule in &call.code_granules {
            *self.code.entry(*granule).or_default() += 1;
        }
        let footprint = footprint(call, &tally);
        for (index, size) in LineSize::ALL.iter().enumerate() {
            let shrink = size.bytes() / LineSize::B32.bytes();
            if let (Some(data), Some(code)) = (self.data_lines.get_mut(index), self.code_lines.get_mut(index))
            {
                data.push(distinct(&footprint.data, shrink));
                code.push(distinct(&footprint.code, shrink));
            }
        }
        self.add_patterns(tally, size_of);
        let is_room = self.footprints.len() < MAX_FOOTPRINTS;
        match self.footprints.get_mut(&footprint) {
            Some(calls) => *calls += 1,
            None if is_room => {
                self.footprints.insert(footprint, 1);
            }
            None => {}
        }
    }

    fn add_patterns(&mut self, tally: CallTally, size_of: &dyn Fn(Ty) -> Option<u64>) {
        let mut variables: BTreeMap<VariableKey, Vec<ByteUse>> = BTreeMap::new();
        let parts: Vec<_> = tally.parts.into_iter().map(|(owner, touches)| (owner, touches.runs())).collect();
        let uses = uses(&parts);
        let touched = touched(&tally.granules, &parts, &uses);
        // The parts are in order, so that the object before is the nearest one of the type.
        let mut before: Option<(Option<Use>, u64)> = None;
        for ((owner, runs), used) in parts.into_iter().zip(uses) {
            match owner {
                OwnerKey::Object(ty, start) => {
                    self.placed.insert((ty, start));
                    let is_in_variable = tally.in_variables.contains(&owner);
                    let objects =
                        if is_in_variable { &mut self.objects_in_variables } else { &mut self.objects };
                    let neighbour_distance_bytes = before
                        .filter(|(other, _)| *other == used)
                        .map(|(_, other)| start - other)
                        .filter(|distance| *distance <= size_of(ty).unwrap_or(0).saturating_add(128));
                    let size = size_of(ty).unwrap_or(0);
                    let anyway =
                        used.map(|used| touched.needed_anyway(used, start, size)).unwrap_or_default();
                    let base = (start % 128) as u8;
                    objects.add(&ObjectPlace { ty, base, neighbour_distance_bytes }, &runs, &anyway);
                    before = Some((used, start));
                }
                OwnerKey::Block(image, start) => {
                    self.blocks.add(&(image, (start % 128) as u8), &runs, &NeededAnyway::default());
                }
                OwnerKey::Variable(image, variable) => {
                    variables.insert((image, variable), runs);
                }
            }
        }
        let bytes = |runs: &[ByteUse]| runs.iter().map(|run| (run.offset, run.size_bytes)).collect();
        let mut key: VariableSet =
            variables.iter().map(|(variable, runs)| (*variable, bytes(runs))).collect();
        if key.is_empty() {
            return;
        }
        if self.together.len() >= MAX_FOOTPRINTS && !self.together.contains_key(&key) {
            self.folded_together += 1;
            key = variables.keys().map(|variable| (*variable, Vec::new())).collect();
        }
        let (occurrences, sums) = self.together.entry(key).or_default();
        *occurrences += 1;
        for (variable, runs) in variables {
            sums.entry(variable).or_default().extend(&runs);
        }
    }

    /// Lines per call for every line size.
    pub(crate) fn lines(&self) -> Vec<LinesPerCall> {
        let sizes = LineSize::ALL.iter().zip(self.data_lines.iter().zip(&self.code_lines));
        sizes
            .map(|(size, (data, code))| LinesPerCall {
                line_bytes: size.bytes(),
                data: Quantiles::of(data),
                code: Quantiles::of(code),
                data_distribution: bars(data),
                code_distribution: bars(code),
            })
            .collect()
    }
}

/// The uses of each object; `None` for parts that are no object. In the order of the parts.
fn uses(parts: &[(OwnerKey, Vec<ByteUse>)]) -> Vec<Option<Use>> {
    let mut numbers: BTreeMap<(Ty, Vec<(u64, u64)>), usize> = BTreeMap::new();
    let number = |(owner, runs): &(OwnerKey, Vec<ByteUse>)| {
        let OwnerKey::Object(ty, _) = *owner else { return None };
        let next = numbers.len();
        let bytes = runs.iter().map(|run| (run.offset, run.size_bytes)).collect();
        Some(Use { ty, number: *numbers.entry((ty, bytes)).or_insert(next) })
    };
    parts.iter().map(number).collect()
}

/// All that was touched, by the uses of the objects that it is of. `of_none` are granules with their bytes that are of
/// no object.
fn touched(
    of_none: &HashMap<u64, u32>,
    parts: &[(OwnerKey, Vec<ByteUse>)],
    uses: &[Option<Use>],
) -> TouchedBytes {
    let of_none = of_none.iter().filter(|(_, bytes)| **bytes != 0);
    let of_none = of_none.map(|(granule, bytes)| (*granule, None, *bytes));
    let objects = parts.iter().zip(uses).filter_map(|((owner, runs), used)| match owner {
        OwnerKey::Object(_, start) => Some((*start, runs, *used)),
        _ => None,
    });
    let of_objects = objects.flat_map(|(start, runs, used)| {
        let each =
            runs.iter().flat_map(move |run| granules(start.saturating_add(run.offset), run.size_bytes));
        each.map(move |(granule, bytes)| (granule, used, bytes))
    });
    of_none.chain(of_objects).collect()
}

fn footprint(call: &Call, tally: &CallTally) -> Footprint {
    let mut data: Vec<u64> = tally.granules.keys().copied().collect();
    data.sort_unstable();
    let mut code: Vec<u64> = call.code_granules.iter().map(|granule| granule / CODE_GRANULE_BYTES).collect();
    code.sort_unstable();
    code.dedup();
    Footprint { data, code }
}

/// The number of distinct lines that sorted granules lie on.
fn distinct(granules: &[u64], granules_per_line: u64) -> u64 {
    let mut count = 0;
    let mut last = None;
    for granule in granules {
        let line = granule / granules_per_line;
        count += u64::from(last != Some(line));
        last = Some(line);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One call that loads eight bytes at each offset of the objects that start there.
    fn patterns(objects: &[(Ty, u64, &[u64])]) -> Vec<(ObjectPlace, u64)> {
        let mut tally = CallTally::default();
        for (ty, start, offsets) in objects {
            let touches = tally.parts.entry(OwnerKey::Object(*ty, *start)).or_default();
            offsets.iter().for_each(|offset| touches.add(*offset, 8, false));
        }
        let mut region = RegionTally::default();
        region.add_patterns(tally, &|_| Some(48));
        region.objects.sorted().into_iter().map(|(place, counted)| (place, counted.occurrences)).collect()
    }

    #[test]
    fn elements_that_are_used_alike_and_may_share_a_line_are_neighbours() {
        let (item, other) = (Ty(0), Ty(1));
        let array: Vec<(Ty, u64, &[u64])> =
            (0..4).map(|index| (item, 1024 + 48 * index, &[0, 40][..])).collect();
        let distances = |objects: &[(Ty, u64, &[u64])]| -> Vec<Option<u64>> {
            patterns(objects).into_iter().map(|(place, _)| place.neighbour_distance_bytes).collect()
        };
        assert_eq!(distances(&array), [None, Some(48), Some(48), Some(48)]);
        assert_eq!(distances(&[(item, 1024, &[0]), (item, 1072, &[8])]), [None, None], "other bytes");
        assert_eq!(distances(&[(item, 1024, &[0]), (other, 1072, &[0])]), [None, None], "another type");
        assert_eq!(distances(&[(item, 1024, &[0]), (item, 1024 + 177, &[0])]), [None, None], "too far");
        assert_eq!(distances(&[(item, 1024, &[0]), (item, 1024 + 176, &[0])]), [None, Some(176)]);
    }
}
