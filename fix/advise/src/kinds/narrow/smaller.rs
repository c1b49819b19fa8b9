//! A struct with fewer or smaller members, and its use by recorded calls: what a search for an order needs.

use crate::layout::demand::Demand;
use crate::layout::figures;
use crate::layout::placement::{self, Placed};
use crate::layout::subject::{Models, RecordedOffsets, Subject, members_in, merge_spans};
use crate::proposal::RegionLines;
use crate::usage::Usage;
use lineup_model::types::{ScalarKind, Type, TypeId, TypeKind, Types};
use lineup_model::usage::{ByteUse, ObjectPattern, Owner};
use std::collections::{BTreeMap, BTreeSet};
use std::slice::from_ref;

/// The members that leave a struct, and those that get other sizes in bytes, by their number.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Change {
    pub(crate) removed: BTreeSet<usize>,
    pub(crate) sizes: BTreeMap<usize, u64>,
}

impl Change {
    /// The numbers of the members that stay.
    pub(crate) fn kept(&self, members: usize) -> Vec<usize> {
        (0..members).filter(|field| !self.removed.contains(field)).collect()
    }
}

/// The changed struct, and its use.
pub(crate) struct Smaller {
    pub(crate) types: Types,
    pub(crate) usage: Usage,
}

impl Smaller {
    /// `None` where the layout does not follow from the members.
    pub(crate) fn of(subject: &Subject<'_>, change: &Change) -> Option<Smaller> {
        let models = subject.models().ok()?;
        let kept = change.kept(subject.aggregate.members.len());
        let mut fields = models.models.first()?.fields.clone();
        for (&field, &size) in &change.sizes {
            let field = fields.get_mut(field)?;
            (field.size_bytes, field.align_bytes) = (size, size);
        }
        let fields: Vec<_> = kept.iter().map(|&field| fields[field]).collect();
        let align_bytes = fields.iter().map(|field| field.align_bytes).max()?;
        let order: Vec<usize> = (0..fields.len()).collect();
        let placed = placement::place(&fields, &order, align_bytes)?;
        let types = types_with(subject, change, &kept, &placed)?;
        let usage = usage_with(subject, change, &kept, &placed);
        Some(Smaller { types, usage })
    }
}

fn types_with(subject: &Subject<'_>, change: &Change, kept: &[usize], placed: &Placed) -> Option<Types> {
    let mut types = subject.types.clone();
    let mut members = Vec::new();
    for (&field, offset_bits) in kept.iter().zip(&placed.offsets_bits) {
        let mut member = subject.aggregate.members[field].clone();
        member.offset_bits = Some(*offset_bits);
        if let Some(&size) = change.sizes.get(&field) {
            let base = types.get(subject.id)?;
            let integer = Type {
                name: Some(format!("int of {size}").into()),
                size_bytes: Some(size),
                declared_align: None,
                declared_at: None,
                unit: base.unit.clone(),
                language: base.language,
                kind: TypeKind::Scalar(ScalarKind::Integer { signed: false }),
            };
            member.ty = types.push(integer);
        }
        members.push(member);
    }
    let own = types.get_mut(subject.id)?;
    own.size_bytes = Some(placed.size_bytes);
    if let TypeKind::Aggregate(aggregate) = &mut own.kind {
        aggregate.members = members;
    }
    Some(types)
}

/// The use of the type alone, with each byte where its member would be.
fn usage_with(subject: &Subject<'_>, change: &Change, kept: &[usize], placed: &Placed) -> Usage {
    let (before, usage) = (subject.types, subject.usage);
    let is_own = |ty: TypeId| before.aggregate(ty).map(|(id, _)| id) == Some(subject.id);
    let offsets = before.layout_offsets(subject.id).unwrap_or_default();
    let size_before = before.size_bytes(subject.id).unwrap_or(0);
    let moved = |bytes: &ByteUse| -> Vec<ByteUse> {
        let range = bytes.offset..bytes.offset.saturating_add(bytes.size_bytes);
        let parts = members_in(before, subject.aggregate, &offsets, &range).into_iter();
        parts
            .filter_map(|(field, part)| {
                let place = kept.iter().position(|&one| one == field)?;
                let start = placed.offsets_bits[place] / 8;
                let (offset, size_bytes) = match change.sizes.get(&field) {
                    Some(&size) => (start, size),
                    None => (start + part.start, part.end - part.start),
                };
                Some(ByteUse { offset, size_bytes, ..*bytes })
            })
            .collect()
    };
    let pattern = |pattern: &ObjectPattern| {
        let mut bytes: Vec<ByteUse> = pattern.bytes.iter().flat_map(moved).collect();
        bytes.sort_by_key(|bytes| bytes.offset);
        bytes.dedup_by_key(|bytes| bytes.offset);
        let distance = pattern.neighbour_distance_bytes.map(|distance| match distance % size_before.max(1) {
            0 => distance / size_before.max(1) * placed.size_bytes,
            _ => distance,
        });
        ObjectPattern { bytes, neighbour_distance_bytes: distance, ..pattern.clone() }
    };
    let mut own = usage.clone();
    own.types.retain(|used| is_own(used.ty));
    for used in &mut own.types {
        used.patterns = used.patterns.iter().map(pattern).collect();
    }
    own.sharing.retain(|sharing| !matches!(sharing.owner, Owner::Type(ty) if is_own(ty)));
    own.locks.retain(|lock| !is_own(lock.ty));
    own.aligned_uses.retain(|used| !is_own(used.ty));
    own
}

/// Lines per call of the struct as it is, and of the changed one whose kept members have these offsets.
pub(crate) fn lines(
    subject: &Subject<'_>,
    change: &Change,
    (offsets_bits, size_bytes): (&BTreeMap<usize, u64>, u64),
) -> Vec<RegionLines> {
    let Ok(mut models) = subject.models() else { return Vec::new() };
    models.models.truncate(1);
    models.names.truncate(1);
    let Some(model) = models.models.first() else { return Vec::new() };
    let order: Vec<usize> = (0..model.fields.len()).collect();
    let Some(now) = placement::place(&model.fields, &order, model.align_bytes) else { return Vec::new() };
    let offsets_bits = order.iter().map(|field| offsets_bits.get(field).copied().unwrap_or(0)).collect();
    let after = Placed { offsets_bits, size_bytes };
    let mut rows = figures::compare(subject.usage, &models, from_ref(&now), from_ref(&now));
    let smaller = |demand: &Demand| {
        let spans = demand.spans.iter().filter(|(field, ..)| !change.removed.contains(field));
        let spans = spans.map(|&(field, offset, size)| match change.sizes.get(&field) {
            Some(&size) => (field, 0, size),
            None => (field, offset, size),
        });
        Demand { spans: merge_spans(spans.collect()), ..demand.clone() }
    };
    let mut changed = Models { models: models.models.clone(), names: models.names.clone() };
    for model in &mut changed.models {
        model.demands = model.demands.iter().map(smaller).filter(|demand| !demand.spans.is_empty()).collect();
    }
    let found = figures::compare(subject.usage, &changed, from_ref(&after), from_ref(&after));
    for row in &mut rows {
        let is_same = |one: &&RegionLines| one.id == row.id && one.line_bytes == row.line_bytes;
        row.after = found.iter().find(is_same).map_or(0.0, |one| one.after);
    }
    rows
}
