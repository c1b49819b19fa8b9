//! Lines per call, per region, line size and data model.

use crate::problem::Models;
use crate::proposal::{RegionLines, SizeChange};
use crate::score::{Demand, Model, ONE, demand_lines};
use crate::usage::Usage;
use lineup_model::line::LineSize;
use lineup_model::region::RegionId;

/// Offsets of one data model and the size they end in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) offsets_bits: Vec<u64>,
    pub(crate) size_bytes: u64,
}

/// Expected lines of 32, 64 and 128 bytes per call of a region.
pub(crate) fn region_lines(demands: &[Demand], region: RegionId, offsets_bits: &[u64]) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for demand in demands.iter().filter(|demand| demand.region == region) {
        for (sum, count) in sums.iter_mut().zip(demand_lines(demand, offsets_bits)) {
            *sum += demand.per_call as f64 / ONE as f64 * count as f64;
        }
    }
    sums
}

/// Before and after, for every region that uses the type.
pub(crate) fn compare(
    usage: &Usage,
    models: &Models,
    before: &[Layout],
    after: &[Layout],
) -> Vec<RegionLines> {
    let mut rows = Vec::new();
    for (id, region) in usage.regions.iter() {
        for (((model, &data_model), before), after) in
            models.models.iter().zip(&models.names).zip(before).zip(after)
        {
            if !model.demands.iter().any(|demand| demand.region == id) {
                continue;
            }
            let old = region_lines(&model.demands, id, &before.offsets_bits);
            let new = region_lines(&model.demands, id, &after.offsets_bits);
            for ((line, before), after) in LineSize::ALL.into_iter().zip(old).zip(new) {
                let (region, line_bytes) = (region.name.clone(), line.bytes());
                rows.push(RegionLines { region, data_model, line_bytes, before: Some(before), after });
            }
        }
    }
    rows
}

pub(crate) fn sizes(models: &Models, before: &[Layout], after: &[Layout]) -> Vec<SizeChange> {
    let pairs = models.names.iter().zip(before).zip(after);
    pairs
        .map(|((&data_model, before), after)| SizeChange {
            data_model,
            before_bytes: before.size_bytes,
            after_bytes: after.size_bytes,
        })
        .collect()
}

/// Weighted lines at the primary size that no layout can undercut: touched bytes over line size.
pub(crate) fn least_offsets(model: &Model) -> Vec<u64> {
    let mut next = 0;
    let is_hot =
        |field: usize| model.demands.iter().any(|demand| demand.spans.iter().any(|span| span.0 == field));
    let mut offsets = vec![0; model.fields.len()];
    for hot in [true, false] {
        for (field, offset) in offsets.iter_mut().enumerate().filter(|(field, _)| is_hot(*field) == hot) {
            *offset = next;
            next += match model.fields[field].bit_width {
                Some(width) => u64::from(width),
                None => model.fields[field].size_bytes.saturating_mul(8),
            };
        }
    }
    offsets
}
