//! Tables by address. They are found without random numbers: the standard library keeps those for each thread, where
//! the engine's own thread has none.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map from addresses to values.
pub(crate) type Map<T> = HashMap<u64, T, BuildHasherDefault<OfAddress>>;
/// Some addresses.
pub(crate) type Set = HashSet<u64, BuildHasherDefault<OfAddress>>;

/// Spreads an address over all bits of a number.
#[derive(Default)]
pub(crate) struct OfAddress(u64);

impl Hasher for OfAddress {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // The golden ratio's fraction. The table uses the highest bits and the lowest.
        let spread = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ spread >> 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_program_rarely_meet() {
        let hashes = |bits: u32, from: u32| {
            let of = |address: u64| {
                let mut hasher = OfAddress::default();
                hasher.write_u64(address);
                hasher.finish() >> from & ((1 << bits) - 1)
            };
            (0..1 << 10).map(|number| of(0x5555_5555_4000 + 16 * number)).collect::<HashSet<u64>>().len()
        };
        // About as many as of random numbers.
        assert!(hashes(10, 0) > 550 && hashes(7, 57) == 128, "{} {}", hashes(10, 0), hashes(7, 57));
    }
}
