//! The number of bits below the unit that a stored weight keeps.

/// Resolution of stored weights: `bits` binary places below the unit of the nice table, 0 to 20.
///
/// A weight `w` is stored as `w · 2^bits`. More bits keep divisions of small group weights among CPUs
/// from vanishing; every place that needs the original unit pays a shift.
///
/// ```
/// use lineup_sched::weights::Resolution;
/// let ten = Resolution::new(10).unwrap();
/// assert_eq!(ten.scale_up(2), Some(2048));
/// assert_eq!(ten.scale_down(2047), 1);
/// assert!(Resolution::new(21).is_none());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Resolution(u8);

impl Resolution {
    /// No extra bits: the weights of the nice table.
    pub const NONE: Self = Self(0);
    /// Ten extra bits, as introduced by the 2011 change on 64-bit machines.
    pub const TEN: Self = Self(10);
    /// The most bits a resolution may have.
    pub const MAX_BITS: u8 = 20;

    /// A resolution, or `None` above [`Self::MAX_BITS`] bits.
    pub const fn new(bits: u8) -> Option<Self> {
        if bits <= Self::MAX_BITS { Some(Self(bits)) } else { None }
    }

    /// The number of extra bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The stored form of `weight`, or `None` if it needs more than 64 bits.
    pub const fn scale_up(self, weight: u64) -> Option<u64> {
        weight.checked_mul(1 << self.0)
    }

    /// A stored weight in the unit of the nice table, rounded down, possibly to zero.
    pub const fn scale_down(self, stored: u64) -> u64 {
        stored >> self.0
    }

    /// A stored weight in the unit of the nice table, rounded down but to no less than 2 unless it is zero:
    /// the 2020 form, in which a group's weight on one CPU cannot vanish. Without extra bits a weight is
    /// returned unchanged.
    pub const fn scale_down_kept(self, stored: u64) -> u64 {
        let scaled = stored >> self.0;
        if self.0 == 0 || stored == 0 || scaled >= 2 { scaled } else { 2 }
    }
}

impl core::fmt::Display for Resolution {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}
