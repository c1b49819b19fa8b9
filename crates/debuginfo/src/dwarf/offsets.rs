//! From the offset of an entry to its number.

/// Bytes of a unit that share a bucket. Entries of types are seldom shorter than half of it.
const BUCKET_SHIFT: u32 = 4;

/// The offsets of a unit's types, to be searched many times: every reference is one search.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    sorted: Vec<u32>,
    /// Number of the first offset at or after the start of each bucket.
    buckets: Vec<u32>,
}

impl Offsets {
    /// Takes offsets in ascending order.
    pub(super) fn new(sorted: Vec<u32>) -> Self {
        let count = sorted.last().map_or(0, |&last| (last >> BUCKET_SHIFT) as usize + 1);
        let mut buckets = Vec::with_capacity(count);
        for (number, &offset) in (0..).zip(&sorted) {
            while buckets.len() <= (offset >> BUCKET_SHIFT) as usize {
                buckets.push(number);
            }
        }
        Offsets { sorted, buckets }
    }

    /// The number of an offset, when it is listed.
    pub(super) fn find(&self, offset: u32) -> Option<u32> {
        let &from = self.buckets.get((offset >> BUCKET_SHIFT) as usize)?;
        let at = self.sorted.get(from as usize..)?.iter().position(|&listed| listed >= offset)?;
        let number = from + at as u32;
        (self.sorted.get(number as usize) == Some(&offset)).then_some(number)
    }

    /// All offsets, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.sorted.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Offsets;

    #[test]
    fn each_listed_offset_is_found_and_no_other() {
        let listed = [0, 1, 15, 16, 17, 300, 301, 4000];
        let offsets = Offsets::new(listed.to_vec());
        for offset in 0..5000 {
            let expected = listed.iter().position(|&other| other == offset).map(|number| number as u32);
            assert_eq!(offsets.find(offset), expected, "{offset}");
        }
        assert_eq!(Offsets::new(Vec::new()).find(0), None);
    }
}
