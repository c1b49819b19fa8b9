//! The guard's groups for proposed layouts, and for layouts that are good already.

use crate::guard::lock::{Group, Lock, Why};
use crate::layout::data_model::DataModel;
use crate::layout::placement::Placed;
use crate::layout::spelling::spelling;
use crate::layout::subject::{RecordedOffsets, Subject};
use crate::layout::{figures, thread_groups};
use crate::options::Options;
use crate::proposal::{OrderProposal, RegionLines};
use lineup_model::line::LineSize;
use lineup_model::types::{Member, TypeId, TypeKind, Types};
use std::collections::{BTreeMap, BTreeSet};

/// Guards the order that a proposal gives, at the offsets that were checked, room between members included.
pub(crate) fn add_order(lock: &mut Lock, subject: &Subject<'_>, proposal: &OrderProposal, options: &Options) {
    let model = subject.usage.abi.data_model();
    let why = reasons(&proposal.lines, model, options);
    let mut offsets_bits = vec![0; proposal.field_order.len()];
    for (&field, &bits) in proposal.field_order.iter().zip(&proposal.new_offsets_bits) {
        if let Some(offset) = offsets_bits.get_mut(field) {
            *offset = bits;
        }
    }
    let groups = proposal.parted.as_ref().map_or_else(Vec::new, |_| thread_groups::groups(subject));
    let laid = Laid { name: &proposal.type_name, offsets_bits: &offsets_bits, groups: &groups };
    add_groups(lock, subject, &laid, why, options);
}

/// Whether an object of the type holds one of a type whose size a proposal changes, so that its members will move.
pub(crate) fn holds_resized(types: &Types, id: TypeId, orders: &[OrderProposal]) -> bool {
    let resized =
        |order: &&OrderProposal| order.sizes.iter().any(|size| size.before_bytes != size.after_bytes);
    let names: BTreeSet<&str> = orders.iter().filter(resized).map(|order| order.type_name.as_str()).collect();
    !names.is_empty() && holds_one_of(types, id, &names, 0)
}

fn holds_one_of(types: &Types, id: TypeId, names: &BTreeSet<&str>, depth: u32) -> bool {
    let Some(id) = types.strip(id).filter(|_| depth < MOST_DEPTH) else { return false };
    match types.get(id).map(|ty| &ty.kind) {
        Some(TypeKind::Array { element, .. }) => holds_one_of(types, *element, names, depth + 1),
        Some(TypeKind::Aggregate(aggregate)) => {
            let is_one = spelling(types, id).is_some_and(|spelling| names.contains(spelling.name.as_str()));
            is_one || aggregate.members.iter().any(|member| holds_one_of(types, member.ty, names, depth + 1))
        }
        _ => false,
    }
}

/// Types within types that are looked into.
const MOST_DEPTH: u32 = 16;

/// Guards the order that is there.
pub(crate) fn add_present(lock: &mut Lock, subject: &Subject<'_>, name: &str, options: &Options) {
    let Ok(models) = subject.models() else { return };
    let Some(offsets_bits) = subject.types.layout_offsets(subject.id) else { return };
    let Some(size_bytes) = subject.types.size_bytes(subject.id) else { return };
    let present = Placed { offsets_bits, size_bytes };
    let demands = models.models.first().map_or(&[][..], |model| &model.demands);
    let mut why = Vec::new();
    for (id, region) in subject.usage.regions.iter() {
        let size = LineSize::place_in_all(options.primary.bytes()).unwrap_or(1);
        let lines = figures::region_lines(demands, id, &present)[size];
        if lines > 0.0 {
            why.push(Why { region: region.name.clone(), lines_per_call: rounded(lines) });
        }
    }
    let laid = Laid { name, offsets_bits: &present.offsets_bits, groups: &[] };
    add_groups(lock, subject, &laid, why, options);
}

fn rounded(lines: f64) -> f64 {
    (lines * 100.0).round() / 100.0
}

fn reasons(lines: &[RegionLines], data_model: &str, options: &Options) -> Vec<Why> {
    lines
        .iter()
        .filter(|row| row.data_model == data_model && row.line_bytes == options.primary.bytes())
        .map(|row| Why { region: row.region.clone(), lines_per_call: rounded(row.after) })
        .collect()
}

/// The type's members where they are guarded.
struct Laid<'l> {
    name: &'l str,
    /// By member.
    offsets_bits: &'l [u64],
    /// The group of threads' members that each member is in; empty unless the groups were parted.
    groups: &'l [Option<usize>],
}

impl Laid<'_> {
    /// Whether another group of threads than that of these members uses the member.
    fn is_parted(&self, members: &[usize], other: usize) -> bool {
        let group = |member: usize| self.groups.get(member).copied().flatten();
        let is_other = |of: usize| members.iter().all(|&member| group(member).is_some_and(|own| own != of));
        group(other).is_some_and(is_other)
    }
}

/// One group per line that holds two or more touched members, or that members of other threads stay off.
fn add_groups(lock: &mut Lock, subject: &Subject<'_>, laid: &Laid<'_>, why: Vec<Why>, options: &Options) {
    let line = options.primary;
    let shapes = DataModel::new(subject.types, subject.usage.abi, subject.usage.abi);
    let touched = touched_fields(subject);
    let traffic = subject.traffic();
    let lines_of = |field: usize| {
        let size = size_bytes(&shapes, &subject.aggregate.members[field]);
        line.lines(laid.offsets_bits.get(field).map_or(0, |bits| bits / 8), size)
    };
    let mut by_line: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for &field in &touched {
        let lines = lines_of(field);
        if lines.start() == lines.end() && subject.aggregate.members[field].name.is_some() {
            by_line.entry(*lines.start()).or_default().push(field);
        }
    }
    let names = |fields: &[usize]| -> Vec<String> {
        fields
            .iter()
            .filter_map(|&field| Some(subject.aggregate.members[field].name.as_deref()?.to_string()))
            .collect()
    };
    for (home, mut fields) in by_line {
        fields.sort_by_key(|&field| laid.offsets_bits.get(field));
        let is_read_mostly = fields.iter().any(|&field| traffic[field].is_read_mostly);
        let apart: Vec<usize> = (0..traffic.len())
            .filter(|&field| {
                let is_written = is_read_mostly && traffic[field].is_write_shared;
                (is_written || laid.is_parted(&fields, field)) && !lines_of(field).contains(&home)
            })
            .collect();
        if fields.len() > 1 || !apart.is_empty() {
            lock.groups.push(Group {
                type_name: laid.name.to_string(),
                line_bytes: u32::try_from(line.bytes()).unwrap_or(64),
                data_model: subject.usage.abi.data_model().to_string(),
                members: names(&fields),
                apart: names(&apart),
                why: why.clone(),
            });
        }
    }
}

fn size_bytes(shapes: &DataModel<'_>, member: &Member) -> u64 {
    match (member.bit_size, member.offset_bits) {
        (Some(width), Some(bits)) => (bits % 8 + u64::from(width)).div_ceil(8),
        _ => shapes.shape(member.ty).map_or(0, |shape| shape.size_bytes),
    }
}

/// Members that a region touches.
fn touched_fields(subject: &Subject<'_>) -> BTreeSet<usize> {
    let Ok(models) = subject.models() else { return BTreeSet::new() };
    let demands = models.models.first().map_or(&[][..], |model| &model.demands);
    demands.iter().flat_map(|demand| demand.spans.iter().map(|span| span.0)).collect()
}
