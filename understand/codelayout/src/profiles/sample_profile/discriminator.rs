//! The parts that Clang packs into a discriminator: the block's own number, then the number of copies the compiler made
//! of its code by unrolling and vectorising, then a number of the copy. Each is stored in as few bits as it needs.

/// The block's own number.
pub(super) fn base(packed: u32) -> u32 {
    first(packed)
}

/// The number of times the compiler has repeated the code.
pub(super) fn copies(packed: u32) -> u64 {
    u64::from(first(behind(packed)).max(1))
}

/// The first number: a 1 stands for none; else five bits, or twelve when the sixth is set.
fn first(packed: u32) -> u32 {
    if packed & 1 == 1 {
        return 0;
    }
    let packed = packed >> 1;
    match packed & 0x20 {
        0 => packed & 0x1f,
        _ => packed >> 1 & 0xfe0 | packed & 0x1f,
    }
}

/// The bits behind the first number.
fn behind(packed: u32) -> u32 {
    match (packed & 1, packed & 0x40) {
        (1, _) => packed >> 1,
        (_, 0) => packed >> 7,
        (_, _) => packed >> 14,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores numbers as `DILocation::encodeDiscriminator` is documented to.
    fn packed(base: u32, copies: u32) -> u32 {
        let prefix = |number: u32| match number {
            0 => (1, 1),
            1..=0x1f => (number << 1, 7),
            _ => ((number & 0xfe0) << 2 | 0x40 | (number & 0x1f) << 1, 14),
        };
        let ((base, bits), (copies, _)) = (prefix(base), prefix(copies));
        base | copies << bits
    }

    #[test]
    fn what_was_packed_is_found_again() {
        for of in [0, 1, 2, 31, 32, 63, 64, 1000, 4095] {
            for times in [0, 2, 8, 31, 32, 500] {
                let word = packed(of, times);
                assert_eq!((base(word), copies(word)), (of, u64::from(times.max(1))), "{word:#x}");
            }
        }
        assert_eq!((base(0), copies(0), copies(u32::MAX)), (0, 1, 1));
    }
}
