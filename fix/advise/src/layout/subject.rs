//! One type of a usage: its layouts, and the demands of calls and threads on its objects.

use crate::constraints::constraint::{Binding, Constraint};
use crate::layout::background_lines::BackgroundLines;
use crate::layout::data_model::{DataModel, Unexplained, counterpart};
use crate::layout::demand::{Demand, Model, Traffic};
use crate::layout::granules::{ONE, Span};
use crate::layout::neighbour::Neighbour;
use crate::layout::placement;
use crate::usage::Usage;
use lineup_explain::slabs::SlabCache;
use lineup_model::region::RegionId;
use lineup_model::types::{Aggregate, TypeId, TypeKind, Types};
use lineup_model::usage::{Owner, Sharing, TypeUse};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// One type of one usage, with the facts that a search for an order needs.
pub(crate) struct Subject<'a> {
    pub(crate) types: &'a Types,
    pub(crate) id: TypeId,
    pub(crate) aggregate: &'a Aggregate,
    /// Its uses by regions.
    pub(crate) uses: Vec<&'a TypeUse>,
    pub(crate) usage: &'a Usage,
}

/// Objects' places are known within lines of this size.
const LARGEST_LINE: u64 = 128;

/// Region, base and spans: demands with equal keys are one.
type DemandKey = (RegionId, u64, Vec<Span>);

/// The sums of joined demands, per call.
#[derive(Default)]
struct Sums {
    occurrences: f64,
    weight: f64,
    neighbours: BTreeMap<Neighbour, (f64, BackgroundLines)>,
    anyway: BackgroundLines,
}

/// The data models that could be worked out, and the members they could not place.
pub(crate) struct Models {
    pub(crate) models: Vec<Model>,
    /// `LP64` or `ILP32`, one per model.
    pub(crate) names: Vec<&'static str>,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(types: &'a Types, id: TypeId, usage: &'a Usage) -> Option<Self> {
        let (id, aggregate) = types.aggregate(id)?;
        let uses = usage.types.iter().filter(|used| types.aggregate(used.ty).map(|(id, _)| id) == Some(id));
        Some(Subject { types, id, aggregate, uses: uses.collect(), usage })
    }

    /// True when threads contend for its objects.
    pub(crate) fn is_fought_over(&self) -> bool {
        let fought = &self.usage.fought_over;
        fought.iter().any(|one| self.types.aggregate(one.ty).map(|(id, _)| id) == Some(self.id))
    }

    /// The recorded data model, and the other one when every member's size there is known.
    ///
    /// # Errors
    /// When the recorded layout cannot be reproduced.
    pub(crate) fn models(&self) -> Result<Models, Binding> {
        let recorded = DataModel::new(self.types, self.usage.abi, self.usage.abi);
        let mut models = vec![self.recorded_model(&recorded)?];
        let mut names = vec![self.usage.abi.data_model()];
        let other = DataModel::new(self.types, self.usage.abi, counterpart(self.usage.abi));
        if let Some(model) = self.other_model(&other, &models[0]) {
            models.push(model);
            names.push(other.target().data_model());
        }
        Ok(Models { models, names })
    }

    fn recorded_model(&self, data_model: &DataModel<'_>) -> Result<Model, Binding> {
        let refuse = |name: Option<&str>| {
            Binding::new(Constraint::LayoutNotReproduced).on([name.unwrap_or("(unnamed)").to_string()])
        };
        let laid = data_model.layout(self.id).ok_or_else(|| refuse(None))?;
        let fields = data_model.explained(self.aggregate, 0).map_err(|unexplained| {
            let name = |index: usize| self.aggregate.members[index].name.as_deref();
            match unexplained {
                Unexplained::Unknown => refuse(None).because("a member's size is not known"),
                Unexplained::Packed(index) => packed(name(index)),
                Unexplained::Misplaced(index) => refuse(name(index)),
            }
        })?;
        let order: Vec<usize> = (0..fields.len()).collect();
        let placed = placement::place(&fields, &order, laid.shape.align_bytes);
        let align_bytes = laid.shape.align_bytes;
        if placed.map(|placed| placed.size_bytes) != Some(laid.shape.size_bytes) {
            return Err(refuse(None).because("the size does not follow from the members"));
        }
        let demands = self.demands(data_model, &laid.offsets_bits, align_bytes);
        Ok(Model { fields, align_bytes, demands, fixed_bits: Vec::new(), head_bits: 0 })
    }

    fn other_model(&self, data_model: &DataModel<'_>, recorded: &Model) -> Option<Model> {
        let laid = data_model.layout(self.id)?;
        let mut fields = data_model.fields(self.aggregate, 0)?;
        let natural = DataModel::new(self.types, self.usage.abi, self.usage.abi).fields(self.aggregate, 0)?;
        for ((field, recorded), natural) in fields.iter_mut().zip(&recorded.fields).zip(&natural) {
            if recorded.align_bytes > natural.align_bytes {
                field.align_bytes = field.align_bytes.max(recorded.align_bytes);
            }
            field.lead = recorded.lead;
        }
        let declared = self.types.layout_offsets(self.id)?;
        let demands = self.demands(data_model, &declared, laid.shape.align_bytes);
        Some(Model {
            fields,
            align_bytes: laid.shape.align_bytes,
            demands,
            fixed_bits: Vec::new(),
            head_bits: 0,
        })
    }

    /// The demands of calls under a data model; equal demands are added up.
    fn demands(&self, data_model: &DataModel<'_>, recorded_bits: &[u64], align_bytes: u64) -> Vec<Demand> {
        let mut merged: BTreeMap<DemandKey, Sums> = BTreeMap::new();
        let recorded_bytes = self.types.size_bytes(self.id).unwrap_or(0);
        let phases = self.phases();
        for used in &self.uses {
            let Some(region) = self.usage.regions.get(used.region) else { continue };
            for pattern in &used.patterns {
                let bytes = pattern
                    .bytes
                    .iter()
                    .map(|bytes| bytes.offset..bytes.offset.saturating_add(bytes.size_bytes));
                let spans = self.spans(data_model, recorded_bits, bytes);
                let distance = pattern.neighbour_distance_bytes;
                let neighbour = distance.and_then(|distance| Neighbour::new(distance, recorded_bytes));
                let per_call = pattern.occurrences as f64 / used.calls.max(1) as f64;
                let places = places(&phases, u64::from(pattern.base_in_line));
                for (place, share) in &places {
                    let base = base_in_line(*place, align_bytes);
                    let per_call = per_call * share;
                    let sums = merged.entry((used.region, base, spans.clone())).or_default();
                    sums.occurrences += per_call;
                    sums.weight += per_call * region.weight;
                    let of_neighbour = neighbour.map(|one| sums.neighbours.entry(one).or_default());
                    // The bytes beside an object are known at the recorded place alone.
                    let anyway = Some(&pattern.needed_anyway).filter(|_| places.len() == 1);
                    if let Some((share, theirs)) = of_neighbour {
                        *share += per_call;
                        anyway.into_iter().for_each(|anyway| theirs.add(anyway, used.calls));
                    }
                    anyway.into_iter().for_each(|anyway| sums.anyway.add(anyway, used.calls));
                }
            }
        }
        let fixed_point = |value: f64| (value * ONE as f64).round() as u64;
        merged
            .into_iter()
            .filter(|((_, _, spans), _)| !spans.is_empty())
            .map(|((region, base, spans), sums)| {
                let (per_call, weight) = (fixed_point(sums.occurrences), fixed_point(sums.weight));
                let neighbours = sums.neighbours.into_iter();
                let neighbours = neighbours
                    .map(|(neighbour, (share, anyway))| (neighbour, fixed_point(share), anyway))
                    .collect();
                let anyway = sums.anyway;
                Demand { region, base, per_call, weight, spans, neighbours, recorded_bytes, anyway }
            })
            .collect()
    }

    fn slab_cache(&self) -> Option<&'a SlabCache> {
        let is_own = |ty: &TypeId| self.types.aggregate(*ty).map(|(id, _)| id) == Some(self.id);
        self.usage.slabs.iter().find(|(ty, _)| is_own(ty)).map(|(_, cache)| cache)
    }

    /// The places in 128 bytes where the slab cache puts objects, each with the number of objects of a slab.
    fn phases(&self) -> BTreeMap<u64, usize> {
        let mut phases = BTreeMap::new();
        for place in self.slab_cache().into_iter().flat_map(|cache| cache.phases(LARGEST_LINE)) {
            *phases.entry(place).or_default() += 1;
        }
        phases
    }

    /// The places of objects in lines over which figures are averaged, where a slab cache gives several.
    pub(crate) fn averaged(&self, line_bytes: u64) -> Option<String> {
        let cache = self.slab_cache()?;
        let places: BTreeSet<u64> = cache.phases(line_bytes).into_iter().collect();
        (places.len() > 1).then(|| {
            format!(
                "averaged over the {} places in a line where its slab cache puts objects, {} bytes apart",
                places.len(),
                cache.stride_bytes
            )
        })
    }

    /// The parts of members that recorded byte ranges cover.
    fn spans(
        &self,
        data_model: &DataModel<'_>,
        recorded_bits: &[u64],
        ranges: impl Iterator<Item = Range<u64>>,
    ) -> Vec<Span> {
        let mut spans = Vec::new();
        for range in ranges {
            for (field, part) in members_in(self.types, self.aggregate, recorded_bits, &range) {
                let member = &self.aggregate.members[field];
                if member.bit_size.is_some() {
                    spans.push((field, 0, part.end - part.start));
                    continue;
                }
                let inner = data_model.translate(member.ty, part.start, part.end - part.start);
                spans.extend(inner.into_iter().map(|(offset, size)| (field, offset, size)));
            }
        }
        merge_spans(spans)
    }

    /// The threads' use of each member.
    pub(crate) fn traffic(&self) -> Vec<Traffic> {
        let offsets = self.types.layout_offsets(self.id).unwrap_or_default();
        let of_type = |sharing: &&Sharing| match sharing.owner {
            Owner::Type(ty) => self.types.aggregate(ty).map(|(id, _)| id) == Some(self.id),
            Owner::Variable(_) => false,
        };
        let objects: u64 =
            self.uses.iter().flat_map(|used| &used.patterns).map(|pattern| pattern.occurrences).sum();
        let mut all = vec![Traffic::default(); self.aggregate.members.len()];
        let mut written = vec![false; all.len()];
        for sharing in self.usage.sharing.iter().filter(of_type) {
            let range = sharing.offset..sharing.offset.saturating_add(sharing.size_bytes);
            let is_shared = is_write_shared(sharing, objects);
            for (field, _) in members_in(self.types, self.aggregate, &offsets, &range) {
                all[field].is_write_shared |= is_shared;
                all[field].is_read_mostly |= sharing.writers.is_empty() && !sharing.readers.is_empty();
                written[field] |= !sharing.writers.is_empty();
            }
        }
        for (traffic, written) in all.iter_mut().zip(written) {
            traffic.is_read_mostly &= !written;
        }
        all
    }
}

/// Bytes that change hands less often than once in this many uses of an object are not worth parting from their
/// neighbours: a clock's parameters, updated every few seconds, belong next to the data it reads.
const USES_PER_HANDOVER: u64 = 50;

/// True when a thread writes bytes that another touches, often enough to matter among `uses` recorded uses.
pub(crate) fn is_write_shared(sharing: &Sharing, uses: u64) -> bool {
    let touching = sharing.readers.union(&sharing.writers).count();
    !sharing.writers.is_empty() && touching > 1 && sharing.handovers.saturating_mul(USES_PER_HANDOVER) >= uses
}

fn packed(name: Option<&str>) -> Binding {
    Binding::new(Constraint::Packed).on([name.unwrap_or("(unnamed)").to_string()])
}

/// The places of an object's start in 128 bytes, each with its share: those that its slab cache gives, whichever the run
/// used. An object elsewhere keeps its place.
fn places(phases: &BTreeMap<u64, usize>, recorded: u64) -> Vec<(u64, f64)> {
    if !phases.contains_key(&(recorded % LARGEST_LINE)) {
        return vec![(recorded, 1.0)];
    }
    let objects: usize = phases.values().sum();
    phases.iter().map(|(place, count)| (*place, *count as f64 / objects as f64)).collect()
}

/// The place of an object's start in its line, as far as its alignment lets it vary.
fn base_in_line(recorded: u64, align_bytes: u64) -> u64 {
    recorded % 128 / align_bytes.min(128) * align_bytes.min(128)
}

/// The members that a recorded byte range touches, with the range inside each.
pub(crate) fn members_in(
    types: &Types,
    aggregate: &Aggregate,
    offsets_bits: &[u64],
    range: &Range<u64>,
) -> Vec<(usize, Range<u64>)> {
    let mut found = Vec::new();
    for (index, (member, bits)) in aggregate.members.iter().zip(offsets_bits).enumerate() {
        let start = bits / 8;
        let size = match member.bit_size {
            Some(width) => (bits % 8 + u64::from(width)).div_ceil(8),
            None if index + 1 == aggregate.members.len() => {
                member_bytes(types, member.ty, range.end.saturating_sub(start))
            }
            None => types.size_bytes(member.ty).unwrap_or(0),
        };
        let (from, to) = (range.start.max(start), range.end.min(start.saturating_add(size)));
        if from < to {
            found.push((index, from - start..to - start));
        }
    }
    found
}

/// The size of a member; a trailing array of unknown length reaches as far as it was touched.
fn member_bytes(types: &Types, id: TypeId, touched: u64) -> u64 {
    let is_open = types.strip(id).and_then(|id| types.get(id)).is_some_and(
        |ty| matches!(&ty.kind, TypeKind::Array { counts, .. } if counts.iter().any(|count| count.unwrap_or(0) == 0)),
    );
    if is_open { touched } else { types.size_bytes(id).unwrap_or(0) }
}

/// Sorts spans and joins those of one field that touch or overlap.
pub(crate) fn merge_spans(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::new();
    for (field, offset, size) in spans {
        match merged.last_mut() {
            Some((last, start, length)) if *last == field && start.saturating_add(*length) >= offset => {
                *length = (*length).max(offset.saturating_add(size) - *start);
            }
            _ => merged.push((field, offset, size)),
        }
    }
    merged
}

/// Offsets of members as debug info records them.
pub(crate) trait RecordedOffsets {
    /// Offset of each member in bits; `None` when one is not fixed.
    fn layout_offsets(&self, id: TypeId) -> Option<Vec<u64>>;
}

impl RecordedOffsets for Types {
    fn layout_offsets(&self, id: TypeId) -> Option<Vec<u64>> {
        self.aggregate(id)?.1.members.iter().map(|member| member.offset_bits).collect()
    }
}

/// A member's name; `(anonymous)` for those without, `(base class)` for bases.
pub(crate) fn member_name(aggregate: &Aggregate, field: usize) -> String {
    let name = aggregate.members.get(field).and_then(|member| member.name.as_deref());
    name.unwrap_or("(anonymous)").to_string()
}

/// The names of the members that have one.
pub(crate) fn member_names<'s>(subject: &Subject<'s>) -> Vec<&'s str> {
    subject.aggregate.members.iter().filter_map(|member| member.name.as_deref()).collect()
}

/// True when all members are of one type.
pub(crate) fn has_one_type(subject: &Subject<'_>) -> bool {
    let members = &subject.aggregate.members;
    members.windows(2).all(|pair| pair[0].ty == pair[1].ty)
}
