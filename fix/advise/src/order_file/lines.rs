//! Lines that calls need of a type's objects, as they lie and in an order; and how calls use a type that lies in
//! others.

use super::Arrangement;
use crate::layout::figures::compare;
use crate::layout::placement::{Placed, place};
use crate::layout::subject::{Models, Subject};
use crate::proposal::RegionLines;
use crate::usage::Usage;
use lineup_explain::what_if::places_in;
use lineup_model::types::{TypeId, Types};
use lineup_model::usage::{ByteUse, ObjectPattern, TypeUse};

impl Arrangement {
    /// Lines per call of the type's objects, those that lie in others among them, before and in this order. Objects at
    /// places that a new alignment does not allow count as if they began before. Nothing for a type that was not used,
    /// or whose layout does not follow from its members.
    pub fn lines(&self, types: &Types, usage: &Usage, id: TypeId) -> Vec<RegionLines> {
        self.compared(types, &with_those_in_others(types, usage, id), id).unwrap_or_default()
    }

    fn compared(&self, types: &Types, usage: &Usage, id: TypeId) -> Option<Vec<RegionLines>> {
        let models = Subject::new(types, id, usage)?.models().ok()?;
        let present: Vec<usize> = (0..models.models.first()?.fields.len()).collect();
        let mut aligned =
            models.models.iter().map(|model| self.aligned(model)).collect::<Option<Vec<_>>>()?;
        for model in &mut aligned {
            let align_bytes = model.align_bytes.clamp(1, 128);
            for demand in &mut model.demands {
                *demand = demand.moved_to(demand.base - demand.base % align_bytes);
            }
        }
        let aligned = Models { models: aligned, names: models.names.clone() };
        let placed = |models: &Models, order: &[usize]| -> Option<Vec<Placed>> {
            models.models.iter().map(|model| place(&model.fields, order, model.align_bytes)).collect()
        };
        let (now, new) = (placed(&models, &present)?, placed(&aligned, &self.order)?);
        let before = compare(usage, &models, &now, &now);
        let after = compare(usage, &aligned, &new, &new);
        let rows = before.into_iter().zip(after);
        Some(rows.map(|(before, after)| RegionLines { after: after.after, ..before }).collect())
    }
}

/// Uses of a type by calls. Uses of its objects inside other types' objects, recorded as uses of the outermost, are
/// included.
pub(super) fn with_those_in_others(types: &Types, usage: &Usage, id: TypeId) -> Usage {
    let mut usage = usage.clone();
    let (Some((id, _)), Some(size_bytes)) = (types.aggregate(id), types.size_bytes(id)) else { return usage };
    let mut inside = Vec::new();
    for outer in &usage.types {
        if types.aggregate(outer.ty).map(|(outer, _)| outer) == Some(id) {
            continue;
        }
        let patterns: Vec<ObjectPattern> = places_in(types, outer.ty, id)
            .into_iter()
            .flat_map(|at| outer.patterns.iter().filter_map(move |pattern| part(pattern, at, size_bytes)))
            .collect();
        if !patterns.is_empty() {
            inside.push(TypeUse { ty: id, patterns, ..outer.clone() });
        }
    }
    usage.types.extend(inside);
    usage
}

/// A call's use of the object that lies at an offset of another.
fn part(pattern: &ObjectPattern, at: u64, size_bytes: u64) -> Option<ObjectPattern> {
    let end = at.checked_add(size_bytes)?;
    let within = |bytes: &ByteUse| {
        let (from, to) = (bytes.offset.max(at), bytes.offset.saturating_add(bytes.size_bytes).min(end));
        (from < to).then(|| ByteUse { offset: from - at, size_bytes: to - from, ..*bytes })
    };
    let bytes: Vec<ByteUse> = pattern.bytes.iter().filter_map(within).collect();
    let base_in_line = ((u64::from(pattern.base_in_line) + at % 128) % 128) as u8;
    (!bytes.is_empty()).then(|| ObjectPattern::alone(base_in_line, bytes, pattern.occurrences))
}
