//! A call's touched bytes outside an object: they decide which lines are background lines.

use crate::types::catalog::Ty;
use lineup_model::line::LineSize;
use lineup_model::usage::NeededAnyway;
use std::ops::RangeInclusive;

/// Granules of the lines of 128 bytes that advice is judged at the most.
const GRANULES: u64 = 4;

/// A type of objects, and which of the ways in which one call used them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Use {
    /// The type.
    pub(crate) ty: Ty,
    /// Objects of which the call touched the same bytes have the same number.
    pub(crate) number: usize,
}

/// The bytes that one call touched, by whose they are. A granule is a line of 32 bytes.
#[derive(Debug)]
pub(crate) struct TouchedBytes {
    /// In order: number of the granule, how the object that the bytes are of was used, which bytes (the lowest bit is
    /// the first).
    granules: Vec<(u64, Option<Use>, u32)>,
}

impl FromIterator<(u64, Option<Use>, u32)> for TouchedBytes {
    fn from_iter<I: IntoIterator<Item = (u64, Option<Use>, u32)>>(granules: I) -> Self {
        let mut granules: Vec<_> = granules.into_iter().collect();
        granules.sort_unstable();
        TouchedBytes { granules }
    }
}

impl TouchedBytes {
    /// The background lines at the ends of an object: lines that the call needed for bytes outside objects of its type.
    /// On lines where the object itself was touched, objects of its type that were used in another way count as well.
    /// Another order moves the latter too, so its saving is then a lower bound.
    pub(crate) fn needed_anyway(&self, used: Use, start: u64, size_bytes: u64) -> NeededAnyway {
        let Some(last) = size_bytes.checked_sub(1).and_then(|more| start.checked_add(more)) else {
            return NeededAnyway::default();
        };
        let seen = |is_meant: &dyn Fn(Option<Use>) -> bool| {
            let mask = |address: u64| self.mask(address, is_meant);
            NeededAnyway::seen(start, size_bytes, mask(start), mask(last))
        };
        let mut needed = seen(&|of| of.is_none_or(|of| of.ty != used.ty));
        let of_all_others = seen(&|of| of != Some(used));
        let touches = |line: LineSize, end: u64| {
            let first = line.line_of(end) * line.bytes();
            let own = first.max(start)..=(first + (line.bytes() - 1)).min(last);
            self.mask(end, &|of| of == Some(used)) & bits(&own) != 0
        };
        for (size, line) in LineSize::ALL.into_iter().enumerate() {
            if touches(line, start) {
                needed.first[size] = of_all_others.first[size];
            }
            if touches(line, last) {
                needed.last[size] = of_all_others.last[size];
            }
            needed.both[size] = needed.first[size] * needed.last[size];
        }
        needed
    }

    /// The bytes of an address's 128-byte line that belong to uses for which `is_meant` holds.
    fn mask(&self, address: u64, is_meant: &dyn Fn(Option<Use>) -> bool) -> u128 {
        let first = LineSize::B128.line_of(address) * GRANULES;
        let from = self.granules.partition_point(|(granule, ..)| *granule < first);
        let of_line = self.granules[from..].iter().take_while(|(granule, ..)| *granule < first + GRANULES);
        let meant = of_line.filter(|(_, of, _)| is_meant(*of));
        meant.fold(0, |mask, (granule, _, bytes)| mask | u128::from(*bytes) << ((granule - first) * 32))
    }
}

/// Bytes of one 128-byte line by their addresses.
fn bits(addresses: &RangeInclusive<u64>) -> u128 {
    let (from, to) = (addresses.start() % 128, addresses.end() % 128);
    (u128::MAX >> (127 - (to - from))) << from
}

/// The granules that some bytes lie on, each with which of its bytes they are.
pub(crate) fn granules(address: u64, size_bytes: u64) -> impl Iterator<Item = (u64, u32)> {
    let granule_bytes = LineSize::B32.bytes();
    let last = address.saturating_add(size_bytes.max(1) - 1);
    LineSize::B32.lines(address, size_bytes).map(move |granule| {
        let start = granule * granule_bytes;
        let from = address.saturating_sub(start);
        let to = (last - start).min(granule_bytes - 1) + 1;
        let below = |bits: u64| ((1_u64 << bits) - 1) as u32;
        (granule, below(to) & !below(from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_fall_on_the_granules_that_hold_them() {
        let all = |address, size| granules(address, size).collect::<Vec<_>>();
        assert_eq!(all(0, 32), [(0, u32::MAX)]);
        assert_eq!(all(40, 8), [(1, 0xff00)]);
        assert_eq!(all(62, 4), [(1, 0xc000_0000), (2, 0b11)]);
        assert_eq!(all(u64::MAX, 8), [(u64::MAX / 32, 1 << 31)]);
    }

    const fn used(ty: u32, number: usize) -> Option<Use> {
        Some(Use { ty: Ty(ty), number })
    }

    /// The background lines of a call that touches these bytes of an object of 48 bytes at `start` and also the others.
    fn anyway_of(
        (start, own): (u64, std::ops::Range<u64>),
        others: &[(Option<Use>, u64, u64)],
    ) -> NeededAnyway {
        let own = (used(0, 0), start + own.start, own.end - own.start);
        let touched = others.iter().copied().chain([own]).flat_map(|(of, address, size_bytes)| {
            granules(address, size_bytes).map(move |(granule, bytes)| (granule, of, bytes))
        });
        touched.collect::<TouchedBytes>().needed_anyway(Use { ty: Ty(0), number: 0 }, start, 48)
    }

    /// The same when it touches all of it.
    fn anyway(start: u64, others: &[(Option<Use>, u64, u64)]) -> NeededAnyway {
        anyway_of((start, 0..48), others)
    }

    #[test]
    fn what_lies_on_a_line_with_an_objects_end_makes_that_line_needed() {
        let nothing = NeededAnyway::default();
        // The object lies on bytes 1064 to 1111: lines of 64 bytes begin at 1024 and 1088, those of 128 at 1024.
        let behind = anyway(1064, &[(used(1, 0), 1112, 8)]);
        assert_eq!(behind, NeededAnyway { last: [1; 3], ..nothing });
        let on_the_same_line_of_64_and_more = anyway(1064, &[(None, 1144, 8)]);
        assert_eq!(on_the_same_line_of_64_and_more, NeededAnyway { last: [0, 1, 1], ..nothing });
        let in_front = anyway(1064, &[(None, 1024, 4)]);
        assert_eq!(in_front, NeededAnyway { first: [0, 1, 1], ..nothing });
        let on_both = anyway(1064, &[(None, 1056, 8), (None, 1112, 1)]);
        assert_eq!(on_both, NeededAnyway { first: [1; 3], last: [1; 3], both: [1; 3] });
    }

    #[test]
    fn objects_used_alike_own_bytes_and_other_lines_do_not_count() {
        let nothing = NeededAnyway::default();
        let of_an_array = [(used(0, 0), 1112, 8)];
        assert_eq!(anyway(1064, &of_an_array), nothing, "its lines are counted with those of the one before");
        assert_eq!(anyway(1064, &[(used(1, 0), 1072, 8)]), nothing, "an object in the object");
        assert_eq!(anyway(1064, &[(None, 1152, 8), (None, 1016, 8)]), nothing, "lines beside it");
        assert_eq!(anyway(1024, &[(None, 1016, 8)]), nothing, "it begins with a line");
        assert_eq!(anyway(1104, &[(None, 1152, 8)]), nothing, "it ends with a line");
    }

    #[test]
    fn a_line_shared_with_an_object_of_the_type_that_is_used_in_another_way_is_needed_for_that() {
        let nothing = NeededAnyway::default();
        let behind = [(used(0, 1), 1112, 8)];
        assert_eq!(anyway(1064, &behind), NeededAnyway { last: [1; 3], ..nothing });
        // If the object itself touches no byte of the line, an order could bring one there while it moves the other's
        // away.
        let own = 0..8;
        assert_eq!(anyway_of((1064, own.clone()), &behind), NeededAnyway { last: [0, 0, 1], ..nothing });
        assert_eq!(anyway_of((1064, own), &[(None, 1112, 8)]), NeededAnyway { last: [1; 3], ..nothing });
        let in_front = [(used(0, 1), 1032, 8)];
        assert_eq!(anyway(1064, &in_front), NeededAnyway { first: [0, 1, 1], ..nothing });
    }
}
