//! Sets of integers that are known up to multiples of a step.

/// The integers equal to `residue` modulo `modulus`; modulus 0 means exactly `residue`, 1 any integer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Congruence {
    /// The value, or the smallest one; without a smallest one, the remainder.
    pub residue: i64,
    /// 0 for one value.
    pub modulus: u64,
    /// True when no value is smaller than `residue`: a pointer that steps upwards through an array began there.
    pub has_smallest: bool,
}

impl Congruence {
    /// Exactly this value.
    pub const fn exactly(value: i64) -> Self {
        Self::new(value, 0)
    }

    /// A value plus any multiple of `modulus` that is not negative.
    pub const fn new(value: i64, modulus: u64) -> Self {
        Self { residue: value, modulus, has_smallest: true }
    }

    /// The value, when there is only one.
    pub fn exact(self) -> Option<i64> {
        (self.modulus == 0).then_some(self.residue)
    }

    /// The smallest value, when there is one.
    pub fn smallest(self) -> Option<i64> {
        self.has_smallest.then_some(self.residue)
    }

    /// Adds two sets of integers. The residue of the first is not reduced: for an address it is the displacement that
    /// the instruction carries.
    pub fn plus(self, other: Congruence) -> Self {
        Self {
            residue: self.residue.wrapping_add(other.residue),
            modulus: gcd(self.modulus, other.modulus),
            has_smallest: self.has_smallest && other.has_smallest,
        }
        .normal()
    }

    /// Subtracts two sets of integers.
    pub fn minus(self, other: Congruence) -> Self {
        let negated = Self { residue: other.residue.wrapping_neg(), ..other };
        self.plus(Self { has_smallest: other.modulus == 0, ..negated })
    }

    /// The smallest such set that holds both: the least upper bound of a lattice, so that the order in which
    /// paths meet does not matter.
    pub fn join(self, other: Congruence) -> Self {
        let apart = self.residue.abs_diff(other.residue);
        Self {
            residue: self.residue.min(other.residue),
            modulus: gcd(gcd(self.modulus, other.modulus), apart),
            has_smallest: self.has_smallest && other.has_smallest,
        }
        .normal()
    }

    /// The same remainders without a smallest value: the values of a pointer that steps downwards.
    pub fn without_smallest(self) -> Self {
        Self { has_smallest: self.modulus == 0, ..self }.normal()
    }

    /// One form for each set: without a smallest value the remainder stands for it.
    fn normal(self) -> Self {
        match i64::try_from(self.modulus) {
            Ok(modulus) if modulus > 0 && !self.has_smallest => {
                Self { residue: self.residue.rem_euclid(modulus), ..self }
            }
            _ => self,
        }
    }

    /// The remainder modulo `size`, when every value has the same.
    pub fn remainder(self, size: u64) -> Option<u64> {
        let size_signed = i64::try_from(size).ok().filter(|size| *size > 0)?;
        self.modulus.is_multiple_of(size).then(|| self.residue.rem_euclid(size_signed) as u64)
    }
}

pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
