//! A name where it stands in a section.

use std::collections::HashSet;

/// The bytes from a name's start on. The reader looks for the name's end only when its text is wanted: most of millions
/// of names are repetitions, which [`Name::id`] identifies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'a> {
    rest: &'a [u8],
    /// Stands for the text without a look at it; 0 when nothing does.
    place: u64,
}

impl<'a> Name<'a> {
    /// A name that ends at the first zero byte, or with the bytes.
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Name { rest, place: 0 }
    }

    /// A name at an offset below 2^32 of a section that holds each text once. `section` is the number of that section
    /// among the program's.
    pub(crate) fn merged(rest: &'a [u8], section: u32, offset: u64) -> Self {
        Name { rest, place: (u64::from(section) + 1) << 32 | offset }
    }

    /// The name itself.
    pub(crate) fn text(self) -> &'a [u8] {
        self.rest.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// True when the name starts with some text.
    pub(crate) fn starts_with(self, text: &[u8]) -> bool {
        self.rest.starts_with(text)
    }

    /// A number that no other text has. A text has one number for every section of merged names, and one
    /// for all other places.
    #[inline]
    pub(crate) fn id(self) -> u64 {
        if self.place != 0 { self.place } else { self.hash() }
    }

    fn hash(self) -> u64 {
        let mut hash = SEED;
        let mut rest = self.rest;
        while let Some((&word, after)) = rest.split_first_chunk() {
            let word = u64::from_le_bytes(word);
            let kept = before_zero(word);
            if kept != u64::MAX {
                return mixed(hash, word & kept);
            }
            hash = mixed(hash, word);
            rest = after;
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let word = u64::from_le_bytes(last);
        mixed(hash, word & before_zero(word))
    }
}

/// True when a section of texts holds each one once, as linkers write it. A partial link may leave the
/// texts of all object files side by side.
///
/// The check samples, in the section's first bytes, the texts whose hash is a multiple of 64; repetitions share their
/// hash. That is enough to distinguish the two. A few repetitions do no harm.
pub(crate) fn is_merged(section: &[u8]) -> bool {
    const ENOUGH_BYTES: usize = 1 << 20;
    let start = section.get(..section.len().min(ENOUGH_BYTES)).unwrap_or_default();
    let mut seen = HashSet::new();
    let mut repeated = 0;
    let mut rest = start;
    while !rest.is_empty() {
        let name = Name::new(rest);
        let hash = name.hash();
        if hash.is_multiple_of(64) && !seen.insert(hash) {
            repeated += 1;
        }
        rest = rest.get(name.text().len() + 1..).unwrap_or_default();
    }
    repeated * 100 <= seen.len()
}

const SEED: u64 = 0x243f_6a88_85a3_08d3;
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Both halves of a product depend on all bits of a word.
#[inline]
fn mixed(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word) * u128::from(FACTOR);
    (product as u64 ^ (product >> 64) as u64).wrapping_add(SEED)
}

/// A mask of the bytes before the first that is zero, in the order of memory.
#[inline]
fn before_zero(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // The lowest bit that this leaves is the top bit of the first zero byte; higher ones may be wrong.
    let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
    if zeros == 0 { u64::MAX } else { (1 << (zeros.trailing_zeros() - 7)) - 1 }
}

#[cfg(test)]
mod tests {
    use super::{Name, is_merged};
    use std::collections::HashSet;

    #[test]
    fn a_name_has_one_number_wherever_it_is_written() {
        for text in ["", "a", "atomic_", "atomic_t", "atomic_long", "a name of many more bytes than a word"] {
            let alone = Name::new(text.as_bytes());
            let followed = format!("{text}\0\u{1}\0other\0 and more than a word of it");
            let inside = Name::new(followed.as_bytes());
            assert_eq!(alone.text(), text.as_bytes());
            assert_eq!(inside.text(), text.as_bytes());
            assert_eq!(inside.id(), alone.id(), "{text}");
        }
    }

    #[test]
    fn different_names_have_different_numbers() {
        let names: Vec<String> =
            (0..4000).map(|number| "member_".repeat(number % 5) + &number.to_string()).collect();
        let hashes: HashSet<u64> = names.iter().map(|name| Name::new(name.as_bytes()).id()).collect();
        assert_eq!(hashes.len(), names.len());
        // A name is not the same as its first bytes, not even where a word ends.
        let long = [b'x'; 24];
        let hashes: HashSet<u64> = (0..=24).map(|len| Name::new(&long[..len]).id()).collect();
        assert_eq!(hashes.len(), 25);
    }

    #[test]
    fn a_place_in_merged_texts_stands_for_the_text() {
        let section = b"first\0second\0";
        let second = Name::merged(&section[6..], 0, 6);
        assert_eq!(second.text(), b"second");
        assert_eq!(second.id(), Name::merged(&section[6..], 0, 6).id());
        assert_ne!(second.id(), Name::merged(&section[6..], 1, 6).id(), "another section");
        assert_ne!(second.id(), Name::merged(section, 0, 0).id());
    }

    #[test]
    fn texts_side_by_side_are_not_merged() {
        let once: Vec<u8> = (0..5000).flat_map(|number| format!("name_{number}\0").into_bytes()).collect();
        assert!(is_merged(&once));
        assert!(!is_merged(&once.repeat(2)));
        assert!(is_merged(b""));
        assert!(is_merged(b"cut off"));
    }
}
