//! Finds an address among many that are sorted.

/// An index into sorted addresses. They are divided into stretches of equal length, about as many as there are
/// addresses.
#[derive(Clone, Debug)]
pub(super) struct Starts {
    start: u64,
    /// The length of a stretch, as a power of two.
    shift: u32,
    /// The number of addresses before each stretch.
    before: Vec<u32>,
}

impl Starts {
    pub(super) fn of(sorted: &[u64]) -> Starts {
        let start = sorted.first().copied().unwrap_or_default();
        let room = sorted.last().copied().unwrap_or_default() - start;
        let shift = (room / sorted.len().max(1) as u64).max(1).ilog2();
        let mut before = vec![0; (room >> shift) as usize + 2];
        sorted.iter().for_each(|one| before[((one - start) >> shift) as usize + 1] += 1);
        let mut sum = 0;
        before.iter_mut().for_each(|count| {
            sum += *count;
            *count = sum;
        });
        Starts { start, shift, before }
    }

    /// The number of addresses below one.
    pub(super) fn below(&self, sorted: &[u64], address: u64) -> usize {
        let stretch = (address.saturating_sub(self.start) >> self.shift) as usize;
        match self.before.get(stretch..) {
            Some([first, next, ..]) => {
                let near = &sorted[*first as usize..*next as usize];
                *first as usize + near.partition_point(|one| *one < address)
            }
            _ => sorted.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_among_sorted_ones() {
        for sorted in
            [vec![], vec![7], vec![0x1000, 0x1020, 0x1030, 0x7fff_0000_0000], vec![0, 1, 2, 3, u64::MAX]]
        {
            let starts = Starts::of(&sorted);
            let near = sorted.iter().flat_map(|one| [one.saturating_sub(1), *one, one.saturating_add(1)]);
            for address in near.chain([0, 0x5000_0000, u64::MAX]) {
                let below = sorted.iter().filter(|one| **one < address).count();
                assert_eq!(starts.below(&sorted, address), below, "{address:#x} in {sorted:x?}");
            }
        }
    }
}
