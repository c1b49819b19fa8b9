//! Where the bytes of an unpacked kernel run: what an offset from a place in the file means as an address.

use crate::image::elf;
use std::collections::HashMap;

/// 64-bit Arm images are linked at multiples of 2 MiB.
const IMAGE_ALIGNMENT: u64 = 2 << 20;

/// Pointers of an image lie in one such range.
const RANGE_BITS: u32 = 30;

/// At least so many pointers lead to symbols at the right address.
const LEAST_HITS: usize = 64;

/// The right address has this many times as many hits as any other.
const CLEARER: usize = 2;

/// The address of the file's first byte as seen from the byte at `at`. An ELF file has it in its headers. A raw image is
/// where its own pointers lead to symbols; `distances` are those of the symbols from the image's first byte.
pub(super) fn place_of(bytes: &[u8], at: usize, distances: &[i64]) -> Option<u64> {
    match elf::is_elf(bytes) {
        true => elf::address_of_start(bytes, at as u64),
        false => of_raw(bytes, distances),
    }
}

fn of_raw(image: &[u8], distances: &[i64]) -> Option<u64> {
    let pointers: Vec<u64> = image
        .chunks_exact(8)
        .filter_map(|word| word.try_into().ok().map(u64::from_le_bytes))
        .filter(|word| *word >= 0xffff << 48 && *word < u64::MAX << 24)
        .collect();
    let mut ranges: HashMap<u64, usize> = HashMap::new();
    for pointer in &pointers {
        *ranges.entry(pointer >> RANGE_BITS).or_default() += 1;
    }
    let (range, _) = ranges.into_iter().max_by_key(|(range, count)| (*count, *range))?;
    let near: Vec<u64> = pointers.into_iter().filter(|pointer| pointer >> RANGE_BITS == range).collect();
    let is_symbol = |distance: &i64| distances.binary_search(distance).is_ok();
    let hits =
        |base: u64| near.iter().filter(|pointer| is_symbol(&(pointer.wrapping_sub(base) as i64))).count();
    // Symbols follow each other so closely that a wrong base has hits, too.
    let (lowest, highest) = (*near.iter().min()?, *near.iter().max()?);
    let first = (lowest - lowest % IMAGE_ALIGNMENT)
        .saturating_sub((image.len() as u64).next_multiple_of(IMAGE_ALIGNMENT));
    let candidates = (first..=highest).step_by(IMAGE_ALIGNMENT as usize);
    let mut counted: Vec<(usize, u64)> = candidates.map(|base| (hits(base), base)).collect();
    counted.sort_unstable();
    let (best, base) = counted.pop()?;
    let next = counted.last().map_or(0, |(hits, _)| *hits);
    (best >= LEAST_HITS && best >= CLEARER * next).then_some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0xffff_8000_8000_0000;

    /// A raw image of 4 MiB whose pointers lead to symbols at irregular distances.
    fn image(pointers: usize) -> (Vec<u8>, Vec<i64>) {
        let distances: Vec<i64> =
            (0..2000i64).map(|number| number * 1024 + number * number % 61 * 4).collect();
        let mut image = vec![0u8; 4 << 20];
        for number in 0..pointers {
            let pointer = BASE.wrapping_add_signed(distances[number * 7 % 2000]);
            image[(3 << 20) + number * 16..][..8].copy_from_slice(&pointer.to_le_bytes());
        }
        (image, distances)
    }

    #[test]
    fn a_raw_image_lies_where_its_pointers_lead_to_symbols() {
        let (image, distances) = image(500);
        assert_eq!(place_of(&image, 0, &distances), Some(BASE));
    }

    #[test]
    fn few_pointers_show_nothing() {
        let (image, distances) = image(20);
        assert_eq!(place_of(&image, 0, &distances), None);
        assert_eq!(place_of(&[], 0, &distances), None);
    }
}
