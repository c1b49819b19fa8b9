//! Elements of vectors of which an instruction accesses only some: the log records which.

/// The parameters with which a gather or a scatter finds its elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gather {
    /// Elements: 2, 4, 8 or 16.
    pub elements: u8,
    /// Bytes of an index: 4 or 8.
    pub index_bytes: u8,
    /// The multiplier of an index: 1, 2, 4 or 8.
    pub scale: u8,
    /// True when the highest bits of a vector's elements mark the accessed ones; else the bits of one word do.
    pub is_masked_by_vector: bool,
}

/// Words of the smallest vector register.
const LEAST_WORDS: usize = 2;

impl Gather {
    /// Words of the register with the indices.
    pub fn index_words(self) -> usize {
        (usize::from(self.elements) * usize::from(self.index_bytes) / 8).max(LEAST_WORDS)
    }

    /// Words of the mask, given how many bytes an element has.
    pub fn mask_words(self, element_bytes: u8) -> usize {
        match self.is_masked_by_vector {
            true => (usize::from(self.elements) * usize::from(element_bytes) / 8).max(LEAST_WORDS),
            false => 1,
        }
    }

    pub(super) fn to_bits(self) -> u64 {
        (u64::from(self.elements.ilog2()) - 1)
            | u64::from(self.index_bytes.ilog2()) << 2
            | u64::from(self.scale.ilog2()) << 4
            | u64::from(self.is_masked_by_vector) << 6
    }

    pub(super) fn of_bits(bits: u64) -> Gather {
        let power = |shift: u32| 1_u8 << (bits >> shift & 3);
        Gather {
            elements: 2 * power(0),
            index_bytes: power(2),
            scale: power(4),
            is_masked_by_vector: bits >> 6 & 1 != 0,
        }
    }

    /// The addresses of the elements that are accessed, in their order: the log's words are the address without an
    /// index, the indices and the mask.
    pub(super) fn each(self, words: &[u64], element_bytes: u8, mut pass_on: impl FnMut(u64)) {
        let Some(([base, indices @ ..], mask)) = words.split_at_checked(1 + self.index_words()) else {
            return;
        };
        let elements = 0..usize::from(self.elements);
        for element in elements.filter(|element| match self.is_masked_by_vector {
            true => is_negative(mask, *element, element_bytes.into()),
            false => mask.first().is_some_and(|mask| mask >> element & 1 != 0),
        }) {
            let index = signed(indices, element, self.index_bytes.into());
            pass_on(base.wrapping_add_signed(index.wrapping_mul(self.scale.into())));
        }
    }
}

/// An element of a vector.
fn signed(words: &[u64], element: usize, bytes: usize) -> i64 {
    let place = element * bytes;
    let word = words.get(place / 8).copied().unwrap_or(0) >> (8 * (place % 8));
    let unused = 64 - 8 * bytes.clamp(1, 8) as u32;
    ((word << unused) as i64) >> unused
}

fn is_negative(words: &[u64], element: usize, bytes: usize) -> bool {
    signed(words, element, bytes) < 0
}

/// The elements of a vector whose highest bit is set, as bits.
pub(super) fn negative(words: &[u64], element_bytes: u8) -> u64 {
    let bytes = usize::from(element_bytes.max(1));
    let elements = (8 * words.len() / bytes).min(64);
    (0..elements)
        .filter(|element| is_negative(words, *element, bytes))
        .fold(0, |all, element| all | 1 << element)
}

/// The lowest `bits` bits.
pub(super) fn lowest(bits: u32) -> u64 {
    1_u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1)
}

/// Passes on every run of elements that follow each other: where the first is, and how many there are.
pub(super) fn each_run(mut elements: u64, mut pass_on: impl FnMut(u32, u32)) {
    while elements != 0 {
        let first = elements.trailing_zeros();
        let count = (elements >> first).trailing_ones();
        pass_on(first, count);
        elements &= !(lowest(count) << first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gather_reads_back() {
        for elements in [2, 4, 8, 16] {
            for (index_bytes, scale, is_masked_by_vector) in [(4, 1, true), (8, 2, false), (4, 8, false)] {
                let gather = Gather { elements, index_bytes, scale, is_masked_by_vector };
                assert_eq!(Gather::of_bits(gather.to_bits()), gather);
                assert!(gather.to_bits() < 0x80);
            }
        }
    }

    #[test]
    fn elements_are_where_their_indices_tell_if_the_mask_has_them() {
        let all = |gather: Gather, bytes, words: &[u64]| {
            let mut all = Vec::new();
            gather.each(words, bytes, |address| all.push(address));
            all
        };
        let by_vector = Gather { elements: 4, index_bytes: 4, scale: 4, is_masked_by_vector: true };
        // Indices 1, -1, 7 and 2; of the third the mask has all bits but the highest.
        let words = [
            0x1000,
            0xffff_ffff_0000_0001,
            0x0000_0002_0000_0007,
            0xffff_ffff_8000_0000,
            0x8000_0000_7fff_ffff,
        ];
        assert_eq!(all(by_vector, 4, &words), [0x1004, 0xffc, 0x1008]);
        let by_word = Gather { elements: 2, index_bytes: 8, scale: 1, is_masked_by_vector: false };
        assert_eq!(all(by_word, 8, &[0x10, 0x20, u64::MAX, 0b110]), [0xf]);
        // Two doubles by the lower two of four indices.
        let narrow = Gather { elements: 2, index_bytes: 4, scale: 8, is_masked_by_vector: true };
        assert_eq!(all(narrow, 8, &[0, 3 | 5 << 32, u64::MAX, u64::MAX, 1 << 63]), [24, 40]);
    }

    #[test]
    fn runs_cover_the_elements() {
        for elements in [0, 1, 0b1011, u64::MAX, 1 << 63, 0xff00_ff00_0000_0001] {
            let mut seen = 0;
            each_run(elements, |first, count| seen |= lowest(count) << first);
            assert_eq!(seen, elements);
        }
    }
}
