//! What would help but is left to the user: types to split, variables that deserve an immediate value.

use crate::member_order::spelling;
use crate::options::Options;
use crate::problem::{Subject, merge_spans};
use crate::proposal::{ImmediateAdvice, SplitAdvice};
use crate::reasons::member_name;
use crate::usage::Usage;
use lineup_model::types::{TypeId, Types};
use lineup_model::usage::{ByteUse, Owner, VariableRef};
use std::collections::BTreeSet;

/// Types of more than two primary lines of which the regions touch less than a quarter, in several
/// objects per call: only then does a split save lines that an order cannot.
pub(crate) fn splits(usage: &Usage, types: &Types, options: &Options) -> Vec<SplitAdvice> {
    let ids: BTreeSet<TypeId> =
        usage.types.iter().filter_map(|used| types.aggregate(used.ty).map(|(id, _)| id)).collect();
    ids.into_iter().filter_map(|id| split(usage, types, id, options)).collect()
}

fn split(usage: &Usage, types: &Types, id: TypeId, options: &Options) -> Option<SplitAdvice> {
    let subject = Subject::new(types, id, usage)?;
    let size_bytes = types.size_bytes(id)?;
    let line_bytes = options.primary.bytes();
    let models = subject.models().ok()?;
    let demands = &models.models.first()?.demands;
    let spans = demands.iter().flat_map(|demand| &demand.spans).filter(|(_, _, size)| *size > 0);
    let touched = merge_spans(spans.map(|&(field, at, size)| (field, at, size.min(size_bytes))).collect());
    let hot_bytes = touched.iter().fold(0_u64, |sum, (_, _, size)| sum.saturating_add(*size));
    let fields: BTreeSet<usize> = touched.into_iter().map(|(field, ..)| field).collect();
    let objects_per_call: f64 =
        demands.iter().map(|demand| demand.per_call as f64 / crate::score::ONE as f64).sum();
    let worth =
        size_bytes > 2 * line_bytes && hot_bytes.saturating_mul(4) < size_bytes && objects_per_call >= 2.0;
    (worth && hot_bytes > 0 && hot_bytes <= line_bytes / 2).then(|| SplitAdvice {
        type_name: spelling(types, id).map_or("(anonymous)".to_string(), |spelling| spelling.name),
        hot: fields.into_iter().map(|field| member_name(subject.aggregate, field)).collect(),
        hot_bytes,
        size_bytes,
        objects_per_call,
        hot_parts_per_line: line_bytes / hot_bytes,
    })
}

/// Scalar-sized variables that regions load and that no thread was seen to write.
pub(crate) fn immediates(usage: &Usage, types: &Types) -> Vec<ImmediateAdvice> {
    let written = |variable: &VariableRef| {
        let by_threads = usage
            .sharing
            .iter()
            .any(|sharing| sharing.owner == Owner::Variable(variable.clone()) && !sharing.writers.is_empty());
        let in_regions = usage.variables.iter().flat_map(|used| &used.patterns).any(|pattern| {
            let of_variable = pattern.variables.iter().filter(|(known, _)| known == variable);
            of_variable.flat_map(|(_, bytes)| bytes).any(|bytes| bytes.stores > 0)
        });
        by_threads || in_regions
    };
    let is_aggregate = |variable: &VariableRef| {
        usage
            .variable_types
            .iter()
            .any(|known| known.variable == *variable && types.aggregate(known.ty).is_some())
    };
    let mut advice = Vec::new();
    for used in &usage.variables {
        let Some(region) = usage.regions.get(used.region) else { continue };
        let variables: BTreeSet<&VariableRef> = used
            .patterns
            .iter()
            .flat_map(|pattern| pattern.variables.iter().map(|(variable, _)| variable))
            .collect();
        for variable in variables {
            if variable.size_bytes > 8 || is_aggregate(variable) || written(variable) {
                continue;
            }
            let loads: u64 = used
                .patterns
                .iter()
                .flat_map(|pattern| pattern.variables.iter().filter(|(known, _)| known == variable))
                .flat_map(|(_, bytes): &(VariableRef, Vec<ByteUse>)| bytes)
                .map(|bytes| bytes.loads)
                .sum();
            advice.push(ImmediateAdvice {
                variable: variable.name.clone(),
                region: region.name.clone(),
                loads_per_call: loads as f64 / used.calls.max(1) as f64,
                size_bytes: variable.size_bytes,
            });
        }
    }
    advice
}
