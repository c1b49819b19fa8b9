//! Cycles to nanoseconds by multiplication and shift.

/// `ns = cycles * mult >> shift`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Multiplier.
    pub(super) mult: u32,
    /// Right shift in bits, at most 32.
    pub(super) shift: u8,
}

/// Below this distance from the epoch, in cycles, `cycles * mult` fits in 63 bits: about a hundred seconds at
/// 2.6 GHz. Beyond it the reader takes the 128-bit way.
pub(super) const FAST_BITS: u32 = 38;
const MULT_BITS: u32 = 63 - FAST_BITS;
/// The slowest counter supported, in cycles per second.
pub(super) const MIN_HZ: f64 = 1e3;
/// The fastest.
pub(super) const MAX_HZ: f64 = 8e9;

impl Scale {
    /// One nanosecond per cycle.
    pub const UNIT: Scale = Scale { mult: 1, shift: 0 };

    /// The finest scale for a counter of `hz` cycles per second: the relative error is below 2⁻²⁴ for counters
    /// from 1 MHz up. `hz` is held to the range from 1 kHz to 8 GHz.
    ///
    /// ```
    /// use lineup_runtime::clock::Scale;
    /// let scale = Scale::from_hz(2_600_000_000.0);
    /// assert!(scale.to_ns(2_600_000_000).abs_diff(1_000_000_000) < 30);
    /// ```
    pub fn from_hz(hz: f64) -> Self {
        Self::from_ns_per_cycle(1e9 / hz.clamp(MIN_HZ, MAX_HZ))
    }

    pub(super) fn from_ns_per_cycle(ratio: f64) -> Self {
        let limit = f64::from(1u32 << MULT_BITS) - 1.0;
        let shift = (0u8..=32).rev().find(|shift| ratio * f64::from(*shift).exp2() <= limit).unwrap_or(0);
        let mult = (ratio * f64::from(shift).exp2()).round().clamp(1.0, limit);
        Self { mult: mult as u32, shift }
    }

    /// Nanoseconds per cycle.
    pub fn ns_per_cycle(self) -> f64 {
        f64::from(self.mult) / f64::from(self.shift).exp2()
    }

    /// The nanoseconds in `cycles`, which may be negative; rounds towards zero. A reader whose counter is older than a
    /// new epoch then never gets less than the parameters before would have given it.
    #[inline]
    pub fn to_ns(self, cycles: i64) -> i64 {
        if cycles.unsigned_abs() >> FAST_BITS == 0 {
            let product = cycles * i64::from(self.mult);
            (product + ((product >> 63) & ((1 << self.shift) - 1))) >> self.shift
        } else {
            self.to_ns_far(cycles)
        }
    }

    #[cold]
    #[inline(never)]
    fn to_ns_far(self, cycles: i64) -> i64 {
        ((i128::from(cycles) * i128::from(self.mult)) / (1i128 << self.shift)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_far_round_towards_zero() {
        let scale = Scale::from_hz(2.6e9);
        for cycles in [0, 1, 2, 3, 1_000_003, (1 << FAST_BITS) - 1, 1 << FAST_BITS, 1 << 50] {
            assert_eq!(scale.to_ns(-cycles), -scale.to_ns(cycles));
            assert_eq!(scale.to_ns_far(cycles), scale.to_ns(cycles));
        }
    }
}
