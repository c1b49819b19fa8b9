//! Objects that straddle lines because nothing aligns them.

use crate::data_model::DataModel;
use crate::figures;
use crate::member_order::spelling;
use crate::options::Options;
use crate::problem::{RecordedOffsets, Subject};
use crate::proposal::{AlignmentAdvice, RegionLines};
use crate::score::Demand;
use crate::usage::Usage;
use lineup_model::types::{TypeId, Types};
use std::collections::BTreeSet;

/// Gains below this many lines per call are not reported.
const LEAST_GAIN_LINES: f64 = 0.05;

/// Types whose objects would need fewer lines if they started on one.
pub(crate) fn advise(usage: &Usage, types: &Types, options: &Options) -> Vec<AlignmentAdvice> {
    let ids: BTreeSet<TypeId> =
        usage.types.iter().filter_map(|used| types.aggregate(used.ty).map(|(id, _)| id)).collect();
    ids.into_iter().filter_map(|id| of_type(usage, types, id, options)).collect()
}

fn of_type(usage: &Usage, types: &Types, id: TypeId, options: &Options) -> Option<AlignmentAdvice> {
    let subject = Subject::new(types, id, usage)?;
    let line_bytes = options.primary.bytes();
    let align = DataModel::new(types, usage.abi, usage.abi).shape(id)?.align_bytes;
    if align >= line_bytes {
        return None;
    }
    let offsets = types.layout_offsets(subject.id)?;
    let models = subject.models().ok()?;
    let demands = &models.models.first()?.demands;
    let aligned: Vec<Demand> = demands
        .iter()
        .map(|demand| Demand { base: demand.base / line_bytes * line_bytes, ..demand.clone() })
        .collect();
    let mut lines = Vec::new();
    for (id, region) in usage.regions.iter() {
        let old = figures::region_lines(demands, id, &offsets);
        let new = figures::region_lines(&aligned, id, &offsets);
        for ((bytes, before), after) in [32, 64, 128].into_iter().zip(old).zip(new) {
            if before > 0.0 && bytes <= line_bytes {
                let (region, data_model) = (region.name.clone(), usage.abi.data_model());
                let before = Some(before);
                lines.push(RegionLines { region, data_model, line_bytes: bytes, before, after });
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
