//! The guard's groups for what advice proposes, and for what is good already.

use crate::data_model::DataModel;
use crate::figures;
use crate::guard::{Group, Lock, Why};
use crate::options::Options;
use crate::placement::Placed;
use crate::problem::{RecordedOffsets, Subject};
use crate::proposal::{OrderProposal, RegionLines};
use lineup_model::line::LineSize;
use lineup_model::types::Member;
use std::collections::{BTreeMap, BTreeSet};

/// Guards the order that a proposal gives.
pub(crate) fn add_order(lock: &mut Lock, subject: &Subject<'_>, proposal: &OrderProposal, options: &Options) {
    let model = subject.usage.abi.data_model();
    let why = reasons(&proposal.lines, model, options);
    let Ok(models) = subject.models() else { return };
    let Some(recorded) = models.models.first() else { return };
    let Some(placed) = crate::placement::place(&recorded.fields, &proposal.field_order, recorded.align_bytes)
    else {
        return;
    };
    add_groups(lock, subject, (&proposal.type_name, &placed.offsets_bits), why, options);
}

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
    add_groups(lock, subject, (name, &present.offsets_bits), why, options);
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

/// One group per line that holds two or more touched members.
fn add_groups(
    lock: &mut Lock,
    subject: &Subject<'_>,
    (name, offsets): (&str, &[u64]),
    why: Vec<Why>,
    options: &Options,
) {
    let line = options.primary;
    let shapes = DataModel::new(subject.types, subject.usage.abi, subject.usage.abi);
    let touched = touched_fields(subject);
    let traffic = subject.traffic();
    let lines_of = |field: usize| {
        let size = size_bytes(&shapes, &subject.aggregate.members[field]);
        line.lines(offsets.get(field).map_or(0, |bits| bits / 8), size)
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
        fields.sort_by_key(|&field| offsets.get(field));
        let is_read_mostly = fields.iter().any(|&field| traffic[field].is_read_mostly);
        let apart: Vec<usize> = (0..traffic.len())
            .filter(|&field| {
                is_read_mostly && traffic[field].is_write_shared && !lines_of(field).contains(&home)
            })
            .collect();
        if fields.len() > 1 || !apart.is_empty() {
            lock.groups.push(Group {
                type_name: name.to_string(),
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
