//! Objects of one type that lie side by side, as elements of an array do: they share lines.

use crate::layout::background_lines::{BackgroundLines, Ends, lines_of};
use crate::layout::placement::Placed;
use crate::search::score::{Demand, Granules, ONE};

/// Types of more bytes than any program has are no neighbours: only hostile debug information has such.
const FARTHEST_BYTES: u64 = 1 << 40;

/// The object before another one of its type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Neighbour {
    /// From its start to the start of the other, as recorded.
    distance_bytes: u64,
    /// The recorded size of the type.
    size_bytes: u64,
}

impl Neighbour {
    /// `None` for objects that overlap.
    pub(crate) fn new(distance_bytes: u64, size_bytes: u64) -> Option<Self> {
        (size_bytes > 0 && distance_bytes >= size_bytes).then_some(Neighbour { distance_bytes, size_bytes })
    }

    /// The distance between them when the type has another size: elements of one array keep the number of elements
    /// between them, others the bytes.
    fn distance(self, size_bytes: u64) -> u64 {
        match self.distance_bytes % self.size_bytes {
            0 => (self.distance_bytes / self.size_bytes).saturating_mul(size_bytes),
            _ => (self.distance_bytes - self.size_bytes).saturating_add(size_bytes),
        }
    }

    /// Steps between the places in 128 bytes where elements of this size start. With the recorded size, only the
    /// recorded place counts.
    fn step(self, size_bytes: u64) -> u64 {
        if size_bytes == self.size_bytes || size_bytes == 0 {
            128
        } else {
            1 << size_bytes.trailing_zeros().min(7)
        }
    }

    /// Lines per call that objects touch and that this neighbour of each does not, without background lines. `None` if
    /// they are too far apart.
    fn added_lines(
        self,
        demand: &Demand,
        layout: &Placed,
        (occurrences, anyway): (u64, &BackgroundLines),
    ) -> Option<[f64; 3]> {
        let distance =
            Some(self.distance(layout.size_bytes)).filter(|distance| *distance <= FARTHEST_BYTES)?;
        let step = self.step(layout.size_bytes);
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
            let is_where_it_was = layout.size_bytes == self.size_bytes;
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
        let added = neighbour.added_lines(demand, layout, objects).unwrap_or_else(|| apart(objects));
        for (sum, lines) in sums.iter_mut().zip(added) {
            *sum += lines;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::score::demand_lines;
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
    fn heap_objects_keep_the_bytes_between_them_and_overlapping_ones_are_no_neighbours() {
        assert_eq!(Neighbour::new(48, 40).map(|heap| heap.distance(24)), Some(32));
        assert_eq!(Neighbour::new(80, 40).map(|array| array.distance(24)), Some(48));
        assert_eq!(Neighbour::new(8, 40), None);
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
