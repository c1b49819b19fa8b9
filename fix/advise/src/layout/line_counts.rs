//! The lines that calls need of the objects of a layout.

use crate::layout::background_lines::{BackgroundLines, Ends};
use crate::layout::demand::Demand;
use crate::layout::granules::{Granules, ONE};
use crate::layout::neighbour::Neighbour;
use crate::layout::placement::Placed;

/// Types of more bytes than any program has are no neighbours: only hostile debug information has such.
const FARTHEST_BYTES: u64 = 1 << 40;

/// Lines of 32, 64 and 128 bytes that one demand touches.
pub(crate) fn demand_lines(demand: &Demand, offsets_bits: &[u64]) -> [u64; 3] {
    Granules::of(demand.base, &demand.spans, offsets_bits).counts()
}

/// Lines of 32, 64 and 128 bytes per call that one demand needs and nothing else does, in units of 2^-20. Objects count
/// alone, whether or not they have neighbours.
pub(crate) fn lines_per_call(demand: &Demand, layout: &Placed) -> [u64; 3] {
    lines_of(demand, layout, (demand.per_call, &demand.anyway))
}

/// The lines of `per_call` objects of a demand per call, with their part of the background lines.
pub(crate) fn lines_of(
    demand: &Demand,
    layout: &Placed,
    (per_call, anyway): (u64, &BackgroundLines),
) -> [u64; 3] {
    let mut touched = Granules::of(demand.base, &demand.spans, &layout.offsets_bits);
    let mut lines = touched.counts().map(|lines| per_call.saturating_mul(lines));
    if !anyway.is_none() {
        let sizes = (layout.size_bytes, demand.recorded_bytes);
        let ends = Ends::of(demand.base, sizes, |line, number| touched.touches(line, number));
        for (size, lines) in lines.iter_mut().enumerate() {
            *lines = lines.saturating_sub(anyway.lines(size, ends[size]));
        }
    }
    lines
}

/// Lines per call that objects touch and that the neighbour of each does not, without background lines. `None` if
/// they are too far apart.
fn added_lines(
    neighbour: Neighbour,
    demand: &Demand,
    layout: &Placed,
    (occurrences, anyway): (u64, &BackgroundLines),
) -> Option<[f64; 3]> {
    let distance =
        Some(neighbour.distance(layout.size_bytes)).filter(|distance| *distance <= FARTHEST_BYTES)?;
    let step = neighbour.step(layout.size_bytes);
    let places = 128 / step;
    let mut sums = [0.0; 3];
    for place in 0..places {
        // The neighbour lies in front, so the object is moved up by whole lines.
        let base = (demand.base + place * step) % 128 + distance.next_multiple_of(128);
        let mut theirs = Granules::of(base - distance, &demand.spans, &layout.offsets_bits);
        let own = Granules::of(base, &demand.spans, &layout.offsets_bits);
        let mut all = theirs.clone();
        all.add_spans(base, &demand.spans, &layout.offsets_bits);
        // Bytes that lay next to elements at the recorded places are not known to lie next to moved ones.
        let is_where_it_was = layout.size_bytes == neighbour.size_bytes;
        let ends = Ends::of(base, (layout.size_bytes, demand.recorded_bytes), |line, number| {
            is_where_it_was && own.touches(line, number) && !theirs.touches(line, number)
        });
        let counts = all.counts().into_iter().zip(theirs.counts());
        for (size, (count, before)) in counts.enumerate() {
            let lines = occurrences.saturating_mul(count - before);
            let costing = lines.saturating_sub(anyway.lines(size, ends[size]));
            sums[size] += costing as f64 / ONE as f64 / places as f64;
        }
    }
    Some(sums)
}

/// Expected lines of 32, 64 and 128 bytes per call of one demand. Lines that an object's neighbour touches already are
/// not counted, which gives the distinct lines of a whole array. Background lines are not counted either.
pub(crate) fn expected_lines(demand: &Demand, layout: &Placed) -> [f64; 3] {
    let apart = |objects: (u64, &BackgroundLines)| {
        lines_of(demand, layout, objects).map(|lines| lines as f64 / ONE as f64)
    };
    let mut sums = apart((demand.alone_per_call(), &demand.alone_anyway()));
    for (neighbour, per_call, anyway) in &demand.neighbours {
        let objects = (*per_call, anyway);
        let added = added_lines(*neighbour, demand, layout, objects).unwrap_or_else(|| apart(objects));
        for (sum, lines) in sums.iter_mut().zip(added) {
            *sum += lines;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::region::RegionId;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn element(base: u64, neighbour: Option<Neighbour>, spans: &[(usize, u64, u64)]) -> Demand {
        let anyway = BackgroundLines::default();
        let neighbours = neighbour.map(|neighbour| (neighbour, ONE, anyway)).into_iter().collect();
        let spans = spans.to_vec();
        let (region, per_call, weight, recorded_bytes) = (RegionId(0), ONE, ONE, 128);
        Demand { region, base, per_call, weight, spans, neighbours, recorded_bytes, anyway }
    }

    fn lines(demand: &Demand, offsets_bits: &[u64], size_bytes: u64) -> [f64; 3] {
        expected_lines(demand, &Placed { offsets_bits: offsets_bits.to_vec(), size_bytes })
    }

    #[test]
    fn a_line_that_two_elements_share_is_counted_once() {
        let beside = Neighbour::new(128, 128);
        // A member on each of the lines 0 and 1, and one that reaches into the element behind.
        let spans = [(0, 0, 8), (1, 0, 4), (2, 0, 8)];
        let offsets = [64, 76 * 8, 120 * 8];
        assert_eq!(demand_lines(&element(16, None, &spans), &offsets)[1], 3);
        assert_eq!(lines(&element(16, beside, &spans), &offsets, 128)[1], 2.0);
        assert_eq!(lines(&element(16, None, &spans), &offsets, 128)[1], 3.0);
    }

    #[test]
    fn elements_that_shrink_start_at_other_places() {
        let one = element(0, Neighbour::new(128, 128), &[(0, 0, 8)]);
        assert_eq!(lines(&one, &[0], 128), [1.0; 3]);
        // Two elements of 32 bytes lie on a line of 64 and four on one of 128.
        assert_eq!(lines(&one, &[0], 32), [1.0, 0.5, 0.25]);
    }

    #[test]
    fn types_larger_than_any_memory_have_no_neighbours() {
        let one = element(0, Neighbour::new(u64::MAX, u64::MAX), &[(0, 0, 8)]);
        assert_eq!(lines(&one, &[0], u64::MAX), [1.0; 3]);
    }

    #[test]
    fn a_demand_counts_distinct_lines_from_its_base() {
        let demand = Demand {
            region: RegionId(0),
            base: 56,
            neighbours: Vec::new(),
            recorded_bytes: 16,
            anyway: BackgroundLines::default(),
            per_call: ONE,
            weight: ONE,
            spans: vec![(0, 0, 8), (1, 0, 8)],
        };
        assert_eq!(demand_lines(&demand, &[0, 64]), [2, 2, 1]);
        assert_eq!(demand_lines(&Demand { base: 0, ..demand }, &[0, 64]), [1, 1, 1]);
    }

    proptest! {
        #[test]
        fn an_array_needs_the_lines_that_its_elements_add_up_to(
            start in 0u64..16, units in 1u64..40, members in proptest::collection::btree_set(0u64..40, 1..6),
        ) {
            let (size, count) = (units * 8, 50);
            let spans: Vec<(usize, u64, u64)> =
                members.iter().filter(|unit| **unit < units).map(|unit| (0, unit * 8, 8)).collect();
            prop_assume!(!spans.is_empty());
            let base = start * 8;
            let mut distinct = BTreeSet::new();
            let mut expected = 0.0;
            for index in 0..count {
                let at = base + index * size;
                distinct.extend(spans.iter().map(|(_, offset, _)| (at + offset) / 64));
                let neighbour = Neighbour::new(size, size).filter(|_| index > 0);
                expected += lines(&element(at % 128, neighbour, &spans), &[0], size)[1];
            }
            prop_assert_eq!(expected, distinct.len() as f64);
        }
    }
}
