//! Lines per call, per region, line size and data model.

use crate::layout::background_lines::{BackgroundLines, Ends};
use crate::layout::demand::{Demand, Model};
use crate::layout::granules::ONE;
use crate::layout::line_counts::expected_lines;
use crate::layout::placement::Placed;
use crate::layout::subject::Models;
use crate::proposal::{RegionLines, SizeChange};
use crate::usage::Usage;
use lineup_model::line::LineSize;
use lineup_model::region::RegionId;
use std::cmp::Reverse;

/// Expected lines of 32, 64 and 128 bytes per call of a region. A line that neighbours share counts once.
pub(crate) fn region_lines(demands: &[Demand], region: RegionId, layout: &Placed) -> [f64; 3] {
    let mut sums = [0.0; 3];
    for demand in demands.iter().filter(|demand| demand.region == region) {
        for (sum, lines) in sums.iter_mut().zip(expected_lines(demand, layout)) {
            *sum += lines;
        }
    }
    sums
}

/// Before and after, for every region that uses the type.
pub(crate) fn compare(
    usage: &Usage,
    models: &Models,
    before: &[Placed],
    after: &[Placed],
) -> Vec<RegionLines> {
    let mut rows = Vec::new();
    for (id, region) in usage.regions.iter() {
        for (((model, &data_model), before), after) in
            models.models.iter().zip(&models.names).zip(before).zip(after)
        {
            if !model.demands.iter().any(|demand| demand.region == id) {
                continue;
            }
            let old = region_lines(&model.demands, id, before);
            let new = region_lines(&model.demands, id, after);
            for ((line, before), after) in LineSize::ALL.into_iter().zip(old).zip(new) {
                let (region, line_bytes) = (region.name.clone(), line.bytes());
                rows.push(RegionLines { id, region, data_model, line_bytes, before: Some(before), after });
            }
        }
    }
    rows
}

pub(crate) fn sizes(models: &Models, before: &[Placed], after: &[Placed]) -> Vec<SizeChange> {
    let pairs = models.names.iter().zip(before).zip(after);
    pairs
        .map(|((&data_model, before), after)| SizeChange {
            data_model,
            before_bytes: before.size_bytes,
            after_bytes: after.size_bytes,
        })
        .collect()
}

/// Lines per call in the layout, and the fewest that the touched bytes need: their number over the line size, for each
/// object apart. No layout can undercut it, because an object's lines hold no more bytes than they have.
pub(crate) fn against_least(usage: &Usage, models: &Models, now: &[Placed]) -> Vec<RegionLines> {
    let mut rows = compare(usage, models, now, now);
    for row in &mut rows {
        let model = models.names.iter().position(|name| *name == row.data_model);
        let Some(model) = model.and_then(|model| models.models.get(model)) else { continue };
        let of_region = model.demands.iter().filter(|demand| demand.region == row.id);
        let size = LineSize::place_in_all(row.line_bytes).unwrap_or(0);
        row.after = of_region.map(|demand| least_lines(model, demand, size)).sum();
    }
    rows
}

/// The lines per call that the bytes of a demand fill when nothing else lies between them. An object that has a
/// neighbour may share its lines and needs the part of them that it fills, if its ends are not on background lines.
/// `size` is the line size's place among 32, 64 and 128 bytes.
fn least_lines(model: &Model, demand: &Demand, size: usize) -> f64 {
    let line_bytes = LineSize::ALL[size].bytes();
    let bytes = touched_bits(model, demand).div_ceil(8);
    let alone = demand.alone_per_call();
    let lines_alone = demand.alone_anyway().least_cost(size, alone, bytes.div_ceil(line_bytes), true);
    let beside = |(_, per_call, anyway): &(_, u64, BackgroundLines)| {
        let lines = *per_call as f64 * (bytes as f64 / line_bytes as f64);
        (lines - anyway.lines(size, Ends::BOTH) as f64).max(0.0)
    };
    (lines_alone as f64 + demand.neighbours.iter().map(beside).sum::<f64>()) / ONE as f64
}

/// The bits of an object that a demand touches, each once.
fn touched_bits(model: &Model, demand: &Demand) -> u64 {
    let bits =
        |&(field, _, size_bytes): &(usize, u64, u64)| match model.fields.get(field).and_then(|f| f.bit_width)
        {
            Some(width) => u64::from(width).min(size_bytes.saturating_mul(8)),
            None => size_bytes.saturating_mul(8),
        };
    demand.spans.iter().map(bits).fold(0, u64::saturating_add)
}

/// Offsets with the members packed in the order of how often they are touched, as if nothing forbade it and nothing
/// were aligned: a limit that an order can approach.
pub(crate) fn packed_offsets(model: &Model) -> Vec<u64> {
    let touched = |field: usize| {
        let touching = model.demands.iter().filter(|demand| demand.spans.iter().any(|span| span.0 == field));
        touching.fold(0, |sum: u64, demand| sum.saturating_add(demand.weight))
    };
    let mut order: Vec<usize> = (0..model.fields.len()).collect();
    order.sort_by_cached_key(|field| Reverse(touched(*field)));
    let mut next = 0;
    let mut offsets = vec![0; model.fields.len()];
    for field in order {
        offsets[field] = next;
        next += match model.fields[field].bit_width {
            Some(width) => u64::from(width),
            None => model.fields[field].size_bytes.saturating_mul(8),
        };
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::line_counts::demand_lines;
    use crate::layout::placement::{self, Field, Lead};
    use proptest::prelude::*;

    fn model() -> impl Strategy<Value = Model> {
        let field = (0u32..4, 1u64..24, any::<bool>()).prop_map(|(shift, count, is_bits)| Field {
            size_bytes: if is_bits { 4 } else { count << shift },
            align_bytes: if is_bits { 4 } else { 1 << shift },
            bit_width: is_bits.then(|| u32::try_from(count).unwrap_or(1)),
            lead: Lead::None,
        });
        let spans = proptest::collection::btree_set(0usize..12, 1..12);
        (proptest::collection::vec(field, 12), spans, 0u64..16, 0u64..8).prop_map(
            |(fields, hot, base, skipped)| {
                let span = |field: usize| {
                    let size = fields[field]
                        .bit_width
                        .map_or(fields[field].size_bytes, |bits| u64::from(bits).div_ceil(8));
                    let from = if fields[field].bit_width.is_some() { 0 } else { skipped.min(size - 1) };
                    (field, from, size - from)
                };
                let spans = hot.into_iter().map(span).collect();
                let demand = Demand {
                    region: RegionId(0),
                    base: base * 8,
                    neighbours: Vec::new(),
                    recorded_bytes: 128,
                    anyway: BackgroundLines::default(),
                    per_call: ONE,
                    weight: ONE,
                    spans,
                };
                Model { fields, align_bytes: 8, demands: vec![demand], fixed_bits: Vec::new(), head_bits: 0 }
            },
        )
    }

    #[test]
    fn what_is_touched_most_is_packed_first() {
        let field = |size_bytes| Field { size_bytes, align_bytes: 8, bit_width: None, lead: Lead::None };
        let demand = |weight, touched: &[usize]| Demand {
            region: RegionId(0),
            base: 0,
            neighbours: Vec::new(),
            recorded_bytes: 144,
            anyway: BackgroundLines::default(),
            per_call: weight,
            weight,
            spans: touched.iter().map(|field| (*field, 0, 8)).collect(),
        };
        let model = Model {
            fields: vec![field(8), field(120), field(8), field(8)],
            align_bytes: 8,
            demands: vec![demand(10 * ONE, &[0, 2]), demand(ONE, &[0, 1, 2])],
            fixed_bits: Vec::new(),
            head_bits: 0,
        };
        assert_eq!(packed_offsets(&model), [0, 128, 64, 128 + 960]);
    }

    proptest! {
        #[test]
        fn no_order_needs_fewer_lines_than_the_least(model in model(), order in Just((0..12).collect::<Vec<usize>>()).prop_shuffle()) {
            let placed = placement::place(&model.fields, &order, 8).expect("small");
            let demand = &model.demands[0];
            for (size, lines) in demand_lines(demand, &placed.offsets_bits).into_iter().enumerate() {
                prop_assert!(least_lines(&model, demand, size) <= lines as f64);
            }
        }
    }
}
