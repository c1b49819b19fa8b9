//! From the offset of an entry to its number.

/// The offsets of a unit's types, to be searched many times: every reference is one search.
#[derive(Debug, Default)]
pub(crate) struct Offsets {
    sorted: Vec<u32>,
    /// One for every 64 bytes of the unit.
    blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    /// A bit for each byte where an entry starts.
    starts: u64,
    /// Number of the first of them.
    first: u32,
}

impl Offsets {
    /// With room for the offsets of a unit.
    pub(crate) fn with_capacity(unit_bytes: usize) -> Self {
        Offsets {
            sorted: Vec::with_capacity(unit_bytes / 32),
            blocks: Vec::with_capacity(unit_bytes / 64 + 1),
        }
    }

    /// Adds an offset greater than all before.
    pub(crate) fn push(&mut self, offset: u32) {
        let number = self.sorted.len() as u32;
        let at = (offset / 64) as usize;
        if self.blocks.len() <= at {
            self.blocks.resize(at + 1, Block { starts: 0, first: number });
        }
        if let Some(block) = self.blocks.get_mut(at) {
            block.starts |= 1 << (offset % 64);
        }
        self.sorted.push(offset);
    }

    /// The number of an offset, when it is listed.
    #[inline]
    pub(crate) fn find(&self, offset: u32) -> Option<u32> {
        let block = self.blocks.get((offset / 64) as usize)?;
        let bit = 1_u64 << (offset % 64);
        let before = (block.starts & (bit - 1)).count_ones();
        (block.starts & bit != 0).then_some(block.first + before)
    }

    /// The offset of a number.
    pub(crate) fn get(&self, number: usize) -> Option<u32> {
        self.sorted.get(number).copied()
    }

    /// All offsets, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.sorted.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Offsets;

    #[test]
    fn each_listed_offset_is_found_and_no_other() {
        let listed = [0, 1, 15, 16, 17, 63, 64, 300, 301, 4000];
        let mut offsets = Offsets::default();
        listed.into_iter().for_each(|offset| offsets.push(offset));
        for offset in 0..5000 {
            let expected = listed.iter().position(|&other| other == offset).map(|number| number as u32);
            assert_eq!(offsets.find(offset), expected, "{offset}");
        }
        assert_eq!(offsets.get(7), Some(300));
        assert_eq!(Offsets::default().find(0), None);
    }
}
