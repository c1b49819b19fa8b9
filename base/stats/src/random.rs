//! Repeatable randomness.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// The start of a stream of random numbers. The same seed gives the same stream on every machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Seed(pub u64);

impl Seed {
    /// The generator that starts here (ChaCha with 8 rounds, whose stream is fixed by its definition).
    pub fn generator(self) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(self.0)
    }

    /// Another seed for a numbered part of the same experiment; different numbers give unrelated
    /// streams. The mixing is that of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    pub fn part(self, number: u64) -> Seed {
        let mut mixed = self.0 ^ number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Seed(mixed ^ (mixed >> 31))
    }
}

impl Default for Seed {
    fn default() -> Self {
        Seed(0x6C69_6E65_7570)
    }
}

/// Puts items in random order.
pub fn shuffle<T>(items: &mut [T], seed: Seed) {
    items.shuffle(&mut seed.generator());
}

#[cfg(test)]
mod tests {
    use super::Seed;
    use rand::RngExt;

    #[test]
    fn the_same_seed_gives_the_same_stream_and_parts_differ() {
        let draw = |seed: Seed| seed.generator().random::<u64>();
        assert_eq!(draw(Seed(7)), draw(Seed(7)));
        assert_ne!(draw(Seed(7)), draw(Seed(8)));
        assert_ne!(Seed(7).part(0), Seed(7).part(1));
        assert_ne!(Seed(7).part(0), Seed(8).part(0));
    }
}
