//! Size classes: the distance of neighbouring objects in a pool.

/// The largest object of a pool, in bytes. Four of them fill a run.
pub const LARGEST: usize = 16384;

/// Sizes that agree after rounding up to this many bytes have one pool.
pub const STEP: usize = 8;

/// Up to this size, classes are one alignment apart; beyond it there are eight for each doubling.
const FINE: usize = 1024;

/// The least alignment of a pool's objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Alignment {
    /// Below what `malloc` promises: for objects of a known type whose addresses' low bits nobody uses.
    Eight,
    /// As `malloc` promises.
    #[default]
    Sixteen,
}

impl Alignment {
    /// In bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Alignment::Eight => 8,
            Alignment::Sixteen => 16,
        }
    }
}

/// Bytes from an object of this size to the next one in its pool. `size` is at most [`LARGEST`].
pub const fn stride(size: usize, alignment: Alignment) -> usize {
    if size <= 16 {
        return 16;
    }
    let step = match size <= FINE {
        true => alignment.bytes(),
        // The largest power of two below the size, in eight parts.
        false => (1 << (usize::BITS - 1 - (size - 1).leading_zeros())) / 8,
    };
    size.next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stride_holds_its_size_is_aligned_and_wastes_an_eighth_at_most() {
        for alignment in [Alignment::Eight, Alignment::Sixteen] {
            let mut last = 0;
            for size in 0..=LARGEST {
                let stride = stride(size, alignment);
                assert!(stride >= size && stride >= last && stride <= LARGEST, "{size}: {stride}");
                assert_eq!(stride % alignment.bytes(), 0, "{size}");
                assert!(size < 128 || stride - size <= size / 8, "{size}: {stride}");
                last = stride;
            }
        }
        assert_eq!([24, 25, 1024, 1025].map(|size| stride(size, Alignment::Sixteen)), [32, 32, 1024, 1152]);
        assert_eq!(stride(24, Alignment::Eight), 24);
    }
}
