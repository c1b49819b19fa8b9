//! The best arrangement of gathered variables, and the lines it needs.

use crate::layout::data_model::{DataModel, counterpart};
use crate::layout::granules::Granules;
use crate::layout::placement::{self, Field, Lead};
use crate::layout::subject::{RecordedOffsets, members_in};
use crate::options::Options;
use crate::proposal::{RegionLines, SizeChange};
use crate::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::line::LineSize;
use lineup_model::types::{TypeId, Types};
use lineup_model::usage::VariableRef;

/// A variable that may be gathered.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) variable: VariableRef,
    pub(crate) ty: TypeId,
    /// New order of its type's members, when they are reordered as well.
    pub(crate) order: Option<Vec<usize>>,
}

/// Variables in an order, with its figures.
#[derive(Clone, Debug)]
pub(crate) struct Arrangement {
    pub(crate) order: Vec<Candidate>,
    /// Offset of each variable in the new struct, in bytes, per ABI.
    pub(crate) offsets: Vec<(Abi, Vec<u64>)>,
    pub(crate) lines: Vec<RegionLines>,
    pub(crate) sizes: Vec<SizeChange>,
    /// Weighted primary lines per call saved.
    pub(crate) gain: f64,
}

/// The arrangement with the fewest lines: largest alignment first, structs last or first.
pub(crate) fn best_arrangement(
    usage: &Usage,
    types: &Types,
    options: &Options,
    candidates: Vec<Candidate>,
) -> Option<Arrangement> {
    let mut orders = Vec::new();
    for structs_first in [false, true] {
        let mut order = candidates.clone();
        order.sort_by_key(|candidate| {
            let is_struct = types.aggregate(candidate.ty).is_some();
            (is_struct != structs_first, std::cmp::Reverse(candidate.variable.size_bytes.min(8)))
        });
        orders.push(order);
    }
    let arranged = orders.into_iter().filter_map(|order| arrange(usage, types, options, order));
    let cost = |arrangement: &Arrangement| -> (u64, u64, u64, u64) {
        let lines = |bytes: u64| -> f64 {
            arrangement.lines.iter().filter(|row| row.line_bytes == bytes).map(|row| row.after).sum()
        };
        let fixed = |lines: f64| (lines * 1024.0) as u64;
        let size = arrangement.sizes.iter().map(|size| size.after_bytes).sum();
        (fixed(lines(options.primary.bytes())), fixed(lines(32)), fixed(lines(128)), size)
    };
    arranged.min_by_key(cost)
}

/// One variable's type under one data model, members reordered when that is planned.
struct Placement {
    shape: Field,
    /// Offsets of its type's members, for aggregates.
    members_bits: Option<Vec<u64>>,
}

fn placement_of(data_model: &DataModel<'_>, types: &Types, candidate: &Candidate) -> Option<Placement> {
    let shape = data_model.shape(candidate.ty)?;
    let field = Field {
        size_bytes: shape.size_bytes,
        align_bytes: shape.align_bytes,
        bit_width: None,
        lead: Lead::None,
    };
    let Some((id, aggregate)) = types.aggregate(candidate.ty) else {
        return Some(Placement { shape: field, members_bits: None });
    };
    match &candidate.order {
        None => Some(Placement { shape: field, members_bits: Some(data_model.layout(id)?.offsets_bits) }),
        Some(order) => {
            let fields = data_model.fields(aggregate, 0)?;
            let placed = placement::place(&fields, order, shape.align_bytes)?;
            let shape = Field { size_bytes: placed.size_bytes, ..field };
            Some(Placement { shape, members_bits: Some(placed.offsets_bits) })
        }
    }
}

fn arrange(usage: &Usage, types: &Types, options: &Options, order: Vec<Candidate>) -> Option<Arrangement> {
    let mut lines = Vec::new();
    let mut sizes = Vec::new();
    let mut offsets = Vec::new();
    let mut gain = 0.0;
    for abi in [usage.abi, counterpart(usage.abi)] {
        let data_model = DataModel::new(types, usage.abi, abi);
        let placements: Option<Vec<Placement>> =
            order.iter().map(|candidate| placement_of(&data_model, types, candidate)).collect();
        let Some(placements) = placements else {
            if abi == usage.abi {
                return None;
            }
            continue;
        };
        let fields: Vec<Field> = placements.iter().map(|placement| placement.shape).collect();
        let identity: Vec<usize> = (0..fields.len()).collect();
        let align = fields.iter().map(|field| field.align_bytes).max()?.max(options.primary.bytes());
        let placed = placement::place(&fields, &identity, align)?;
        let bases: Vec<u64> = placed.offsets_bits.iter().map(|bits| bits / 8).collect();
        let gathered = Gathered {
            types,
            data_model: &data_model,
            order: &order,
            placements: &placements,
            bases: &bases,
        };
        for row in gathered.rows(usage, abi) {
            let is_primary = abi == usage.abi && row.line_bytes == options.primary.bytes();
            let weight = usage.regions.get(row.id).map_or(0.0, |region| region.weight);
            gain += if is_primary { row.gain() * weight } else { 0.0 };
            lines.push(row);
        }
        let before_bytes = order.iter().map(|candidate| candidate.variable.size_bytes).sum();
        sizes.push(SizeChange { data_model: abi.data_model(), before_bytes, after_bytes: placed.size_bytes });
        offsets.push((abi, bases));
    }
    Some(Arrangement { order, offsets, lines, sizes, gain })
}

struct Gathered<'g> {
    types: &'g Types,
    data_model: &'g DataModel<'g>,
    order: &'g [Candidate],
    placements: &'g [Placement],
    bases: &'g [u64],
}

impl Gathered<'_> {
    /// Lines per call of each region; the number before is known for the recorded ABI only.
    fn rows(&self, usage: &Usage, abi: Abi) -> Vec<RegionLines> {
        let mut rows = Vec::new();
        for used in &usage.variables {
            let Some(region) = usage.regions.get(used.region) else { continue };
            let (mut before, mut after) = ([0.0; 3], [0.0; 3]);
            for pattern in &used.patterns {
                let per_call = pattern.occurrences as f64 / used.calls.max(1) as f64;
                let (mut old, mut new) = (Granules::default(), Granules::default());
                for (variable, bytes) in &pattern.variables {
                    let Some(index) = self.order.iter().position(|known| known.variable == *variable) else {
                        continue;
                    };
                    for part in bytes {
                        old.add(variable.address.saturating_add(part.offset), part.size_bytes);
                        self.add(&mut new, index, part.offset, part.size_bytes);
                    }
                }
                for ((sum, other), (old, new)) in
                    before.iter_mut().zip(after.iter_mut()).zip(old.counts().into_iter().zip(new.counts()))
                {
                    *sum += per_call * old as f64;
                    *other += per_call * new as f64;
                }
            }
            for ((line, before), after) in LineSize::ALL.into_iter().zip(before).zip(after) {
                rows.push(RegionLines {
                    id: used.region,
                    region: region.name.clone(),
                    data_model: abi.data_model(),
                    line_bytes: line.bytes(),
                    before: (abi == usage.abi).then_some(before),
                    after,
                });
            }
        }
        rows
    }

    /// Adds the bytes of one variable at their new place.
    fn add(&self, granules: &mut Granules, index: usize, offset: u64, size_bytes: u64) {
        let (candidate, base) = (&self.order[index], self.bases[index]);
        let Some(members_bits) = &self.placements[index].members_bits else {
            for (offset, size) in self.data_model.translate(candidate.ty, offset, size_bytes) {
                granules.add(base.saturating_add(offset), size);
            }
            return;
        };
        let Some((id, aggregate)) = self.types.aggregate(candidate.ty) else { return };
        let recorded = self.types.layout_offsets(id).unwrap_or_default();
        for (field, part) in
            members_in(self.types, aggregate, &recorded, &(offset..offset.saturating_add(size_bytes)))
        {
            let at = base.saturating_add(members_bits.get(field).map_or(0, |bits| bits / 8));
            for (offset, size) in
                self.data_model.translate(aggregate.members[field].ty, part.start, part.end - part.start)
            {
                granules.add(at.saturating_add(offset), size);
            }
        }
    }
}
