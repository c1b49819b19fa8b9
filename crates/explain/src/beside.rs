//! What a call touched beside an object: lines that it needs anyway.

use crate::catalog::Ty;
use lineup_model::line::LineSize;
use lineup_model::usage::NeededAnyway;

/// Granules of the lines of 128 bytes that advice is judged at the most.
const GRANULES: u64 = 4;

/// The bytes that one call touched, by whose they are. A granule is a line of 32 bytes.
#[derive(Debug)]
pub(crate) struct TouchedBytes {
    /// In order: number of the granule, the type of the object that the bytes are of, which bytes (the lowest bit is the
    /// first).
    granules: Vec<(u64, Option<Ty>, u32)>,
}

impl FromIterator<(u64, Option<Ty>, u32)> for TouchedBytes {
    fn from_iter<I: IntoIterator<Item = (u64, Option<Ty>, u32)>>(granules: I) -> Self {
        let mut granules: Vec<_> = granules.into_iter().collect();
        granules.sort_unstable();
        TouchedBytes { granules }
    }
}

impl TouchedBytes {
    /// Which lines at the ends of an object the call needed anyway.
    pub(crate) fn needed_anyway(&self, ty: Ty, start: u64, size_bytes: u64) -> NeededAnyway {
        let Some(last) = size_bytes.checked_sub(1).and_then(|more| start.checked_add(more)) else {
            return NeededAnyway::default();
        };
        let mask = |address: u64| self.of_others(ty, LineSize::B128.line_of(address));
        NeededAnyway::seen(start, size_bytes, mask(start), mask(last))
    }

    /// The bytes of a 128-byte line that are not of objects of this type.
    fn of_others(&self, ty: Ty, line: u64) -> u128 {
        let first = line * GRANULES;
        let from = self.granules.partition_point(|(granule, ..)| *granule < first);
        let of_line = self.granules[from..].iter().take_while(|(granule, ..)| *granule < first + GRANULES);
        let others = of_line.filter(|(_, of, _)| *of != Some(ty));
        others.fold(0, |mask, (granule, _, bytes)| mask | u128::from(*bytes) << ((granule - first) * 32))
    }
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

    /// What a call of an object of 48 bytes at `start` needs anyway when it also touches these bytes.
    fn anyway(start: u64, others: &[(Option<Ty>, u64, u64)]) -> NeededAnyway {
        let own = (Some(Ty(0)), start, 48);
        let touched = others.iter().copied().chain([own]).flat_map(|(of, address, size_bytes)| {
            granules(address, size_bytes).map(move |(granule, bytes)| (granule, of, bytes))
        });
        touched.collect::<TouchedBytes>().needed_anyway(Ty(0), start, 48)
    }

    #[test]
    fn what_lies_on_a_line_with_an_objects_end_makes_that_line_needed() {
        let nothing = NeededAnyway::default();
        // The object lies on bytes 1064 to 1111: lines of 64 bytes begin at 1024 and 1088, those of 128 at 1024.
        let behind = anyway(1064, &[(Some(Ty(1)), 1112, 8)]);
        assert_eq!(behind, NeededAnyway { last: [1; 3], ..nothing });
        let on_the_same_line_of_64_and_more = anyway(1064, &[(None, 1144, 8)]);
        assert_eq!(on_the_same_line_of_64_and_more, NeededAnyway { last: [0, 1, 1], ..nothing });
        let in_front = anyway(1064, &[(None, 1024, 4)]);
        assert_eq!(in_front, NeededAnyway { first: [0, 1, 1], ..nothing });
        let on_both = anyway(1064, &[(None, 1056, 8), (None, 1112, 1)]);
        assert_eq!(on_both, NeededAnyway { first: [1; 3], last: [1; 3], both: [1; 3] });
    }

    #[test]
    fn other_objects_of_the_type_its_own_bytes_and_other_lines_do_not_count() {
        let nothing = NeededAnyway::default();
        assert_eq!(
            anyway(1064, &[(Some(Ty(0)), 1112, 8)]),
            nothing,
            "an element of the same array moves as well"
        );
        assert_eq!(anyway(1064, &[(Some(Ty(1)), 1072, 8)]), nothing, "an object in the object");
        assert_eq!(anyway(1064, &[(None, 1152, 8), (None, 1016, 8)]), nothing, "lines beside it");
        assert_eq!(anyway(1024, &[(None, 1016, 8)]), nothing, "it begins with a line");
        assert_eq!(anyway(1104, &[(None, 1152, 8)]), nothing, "it ends with a line");
    }
}
