//! Objects that straddle lines because nothing aligns them.

use crate::error::AdviseError;
use crate::kind::{Description, FixKind, KindName, Task};
use crate::layout::data_model::DataModel;
use crate::layout::demand::Demand;
use crate::layout::figures;
use crate::layout::placement::Placed;
use crate::layout::spelling::spelling;
use crate::layout::subject::{RecordedOffsets, Subject};
use crate::options::Options;
use crate::proposal::{ALIGN, Advice, AlignmentAdvice, RegionLines};
use crate::usage::Usage;
use lineup_model::figure;
use lineup_model::types::{TypeId, TypeKind, Types};

/// Gains below this many lines per call are not reported.
const LEAST_GAIN_LINES: f64 = 0.05;

/// Types whose objects would need fewer lines if they started on one.
pub(crate) struct Alignments;

impl FixKind for Alignments {
    fn name(&self) -> KindName {
        ALIGN
    }

    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
        let (usage, types) = (task.usage, task.types);
        let ids = usage.aggregates(types).into_iter();
        advice.alignments.extend(ids.filter_map(|id| of_type(usage, types, id, task.options)));
        Ok(())
    }

    fn describe(&self, advice: &Advice) -> Vec<Description> {
        let described = |one: &AlignmentAdvice| Description {
            reasons: vec![format!(
                "{} of the recorded objects did not start on a line; an alignment of {} bytes would make them.",
                figure::share(one.unaligned_share),
                one.align_bytes
            )],
            lines: one.lines.clone(),
            ..Description::told(ALIGN, &one.owner, &one.how)
        };
        advice.alignments.iter().map(described).collect()
    }
}

/// True unless an alignment would cost more than it gives. Objects on stacks are placed anew in each call, small ones
/// would mostly be padding, and parts of others take those along. Without misses in the cache model there is nothing to
/// save.
fn can_pay(usage: &Usage, types: &Types, subject: &Subject<'_>, options: &Options) -> bool {
    let is_on_stack = subject.uses.iter().any(|used| usage.stack_types.contains(&used.ty));
    let is_small = types.size_bytes(subject.id).unwrap_or(0).saturating_mul(2) < options.primary.bytes();
    let misses = subject.uses.iter().any(|used| usage.scale(used.region).may_miss());
    !is_on_stack && !is_small && misses && !is_part_of_another(types, subject.id)
}

/// True when objects of the type lie inside those of another by value.
fn is_part_of_another(types: &Types, id: TypeId) -> bool {
    types.iter().any(|(other, _)| {
        types.aggregate(other).is_some_and(|(other, aggregate)| {
            other != id && aggregate.members.iter().any(|member| element(types, member.ty) == Some(id))
        })
    })
}

/// A type without typedefs and arrays around it.
fn element(types: &Types, id: TypeId) -> Option<TypeId> {
    let mut id = types.strip(id)?;
    for _ in 0..16 {
        match types.get(id).map(|ty| &ty.kind) {
            Some(TypeKind::Array { element, .. }) => id = types.strip(*element)?,
            _ => break,
        }
    }
    Some(id)
}

fn of_type(usage: &Usage, types: &Types, id: TypeId, options: &Options) -> Option<AlignmentAdvice> {
    let subject = Subject::new(types, id, usage)?;
    if !can_pay(usage, types, &subject, options) {
        return None;
    }
    let line_bytes = options.primary.bytes();
    let align = DataModel::new(types, usage.abi, usage.abi).shape(id)?.align_bytes;
    if align >= line_bytes {
        return None;
    }
    let offsets_bits = types.layout_offsets(subject.id)?;
    let size_bytes = types.size_bytes(subject.id)?;
    let now = Placed { offsets_bits: offsets_bits.clone(), size_bytes };
    let grown = Placed { offsets_bits, size_bytes: size_bytes.checked_next_multiple_of(line_bytes)? };
    let models = subject.models().ok()?;
    let demands = &models.models.first()?.demands;
    let aligned: Vec<Demand> =
        demands.iter().map(|demand| demand.moved_to(demand.base / line_bytes * line_bytes)).collect();
    let mut lines = Vec::new();
    for (id, region) in usage.regions.iter() {
        let old = figures::region_lines(demands, id, &now);
        let new = figures::region_lines(&aligned, id, &grown);
        for ((bytes, before), after) in [32, 64, 128].into_iter().zip(old).zip(new) {
            if before > 0.0 && bytes <= line_bytes {
                let (region, data_model) = (region.name.clone(), usage.abi.data_model());
                let before = Some(before);
                lines.push(RegionLines { id, region, data_model, line_bytes: bytes, before, after });
            }
        }
    }
    let gain: f64 = lines.iter().filter(|row| row.line_bytes == line_bytes).map(RegionLines::gain).sum();
    let objects = |wanted: fn(u64) -> bool| -> u64 {
        let demands = demands.iter().filter(|demand| wanted(demand.base % 64));
        demands.map(|demand| demand.per_call).sum()
    };
    let (unaligned, all) = (objects(|base| base != 0), objects(|_| true));
    (gain > LEAST_GAIN_LINES).then(|| AlignmentAdvice {
        owner: spelling(types, id).map_or("(anonymous)".to_string(), |spelling| spelling.name),
        align_bytes: line_bytes,
        lines,
        unaligned_share: unaligned as f64 / all.max(1) as f64,
        how: format!(
            "__attribute__((aligned({line_bytes}))) (C), alignas({line_bytes}) (C++) on the type or the variable; \
             it does not reach memory from malloc, which needs aligned_alloc({line_bytes}, size)"
        ),
    })
}
