//! What is known of the value in a register or stack slot.

use crate::catalog::Ty;

/// The integers equal to `residue` modulo `modulus`; modulus 0 means exactly `residue`, 1 any integer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Congruence {
    /// The value, or its remainder.
    pub residue: i64,
    /// 0 for one value.
    pub modulus: u64,
}

impl Congruence {
    /// Exactly this value.
    pub const fn exactly(value: i64) -> Self {
        Self { residue: value, modulus: 0 }
    }

    /// A value plus any multiple of `modulus`.
    pub fn new(value: i64, modulus: u64) -> Self {
        Self { residue: value, modulus }
    }

    /// The value, when there is only one.
    pub fn exact(self) -> Option<i64> {
        (self.modulus == 0).then_some(self.residue)
    }

    /// Adds two sets of integers. The residue of the first is kept as it is: for an address it is the
    /// displacement that the instruction carries.
    pub fn plus(self, other: Congruence) -> Self {
        Self { residue: self.residue.wrapping_add(other.residue), modulus: gcd(self.modulus, other.modulus) }
    }

    /// Subtracts two sets of integers.
    pub fn minus(self, other: Congruence) -> Self {
        self.plus(Self { residue: other.residue.wrapping_neg(), ..other })
    }

    /// The smallest such set that holds both.
    pub fn join(self, other: Congruence) -> Self {
        let apart = self.residue.abs_diff(other.residue);
        let modulus = gcd(gcd(self.modulus, other.modulus), apart);
        Self { residue: if apart == 0 { self.residue } else { self.residue.min(other.residue) }, modulus }
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

/// An unknown integer that several registers may be multiples of; 0 is one that nothing else refers to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Symbol(pub u64);

/// `constant + factor × symbol`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Number {
    /// Added.
    pub constant: i64,
    /// 0 when the number is known.
    pub factor: i64,
    /// The unknown.
    pub symbol: Symbol,
}

impl Number {
    /// A known number.
    pub const fn exactly(constant: i64) -> Self {
        Self { constant, factor: 0, symbol: Symbol(0) }
    }

    /// Any number, to be referred to by `symbol`.
    pub const fn any(symbol: Symbol) -> Self {
        Self { constant: 0, factor: 1, symbol }
    }

    /// The value, when known.
    pub fn exact(self) -> Option<i64> {
        (self.factor == 0).then_some(self.constant)
    }

    /// All values it may have.
    pub fn values(self) -> Congruence {
        Congruence::new(self.constant, self.factor.unsigned_abs())
    }

    /// The number times a factor.
    pub fn times(self, factor: i64) -> Self {
        Self {
            constant: self.constant.wrapping_mul(factor),
            factor: self.factor.wrapping_mul(factor),
            symbol: if factor == 0 { Symbol(0) } else { self.symbol },
        }
    }

    /// The sum of two numbers.
    pub fn plus(self, other: Number) -> Self {
        let constant = self.constant.wrapping_add(other.constant);
        if self.factor == 0 || other.factor == 0 {
            let unknown = if self.factor == 0 { other } else { self };
            return Self { constant, ..unknown };
        }
        if self.symbol == other.symbol && self.symbol != Symbol(0) {
            let factor = self.factor.wrapping_add(other.factor);
            return Self { constant, factor, symbol: if factor == 0 { Symbol(0) } else { self.symbol } };
        }
        let factor = gcd(self.factor.unsigned_abs(), other.factor.unsigned_abs()) as i64;
        Self { constant, factor, symbol: Symbol(0) }
    }

    /// A number that is either of two.
    pub fn join(self, other: Number) -> Self {
        if self == other {
            return self;
        }
        let both = self.values().join(other.values());
        Self { constant: both.residue, factor: both.modulus as i64, symbol: Symbol(0) }
    }
}

/// Where a pointer came from, for naming what it points to when that is no struct.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// Not known, or several.
    Unknown,
    /// The variable with this index among the analysed names.
    Variable(u32),
    /// The member at this offset of a type.
    Member(Ty, u64),
}

/// A pointer into an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pointer {
    /// Type of the object.
    pub target: Ty,
    /// Distance from its start in bytes.
    pub offset: Congruence,
    /// Where the pointer came from.
    pub origin: Origin,
    /// True while debug info says at this very place that the register holds this.
    pub is_located: bool,
}

/// What is known of a value. Paths that know nothing do not contradict those that do: a register that
/// is used as an address after two paths meet held the same kind of pointer on both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Held {
    /// Nothing.
    Nothing,
    /// Contradictions.
    Conflict,
    /// A number or a link address.
    Number(Number),
    /// A pointer into an object of known type.
    Pointer(Pointer),
    /// The canonical frame address plus this.
    Stack(Congruence),
    /// The thread's base plus this.
    Thread(i64),
}

impl Held {
    /// What is known where two paths meet.
    pub fn join(self, other: Held) -> Held {
        match (self, other) {
            (same, other) if same == other => same,
            (Held::Nothing, known) | (known, Held::Nothing) => known,
            (Held::Number(a), Held::Number(b)) => Held::Number(a.join(b)),
            (Held::Stack(a), Held::Stack(b)) => Held::Stack(a.join(b)),
            (Held::Pointer(a), Held::Pointer(b)) if a.target == b.target => Held::Pointer(Pointer {
                target: a.target,
                offset: a.offset.join(b.offset),
                origin: if a.origin == b.origin { a.origin } else { Origin::Unknown },
                is_located: a.is_located && b.is_located,
            }),
            (Held::Number(n), Held::Pointer(p)) | (Held::Pointer(p), Held::Number(n))
                if n.exact().is_some() =>
            {
                Held::Pointer(p)
            }
            _ => Held::Conflict,
        }
    }

    /// The value plus a number.
    pub fn plus(self, number: Number) -> Held {
        match self {
            Held::Number(own) => Held::Number(own.plus(number)),
            Held::Pointer(pointer) => {
                Held::Pointer(Pointer { offset: pointer.offset.plus(number.values()), ..pointer })
            }
            Held::Stack(offset) => Held::Stack(offset.plus(number.values())),
            Held::Thread(offset) => {
                number.exact().map_or(Held::Conflict, |n| Held::Thread(offset.wrapping_add(n)))
            }
            Held::Nothing | Held::Conflict => self,
        }
    }

    /// The value as a number: an unknown one unless more is known.
    pub fn as_number(self) -> Number {
        match self {
            Held::Number(number) => number,
            _ => Number::any(Symbol(0)),
        }
    }

    /// True when the value is an address of something.
    pub fn is_address(self) -> bool {
        matches!(self, Held::Pointer(_) | Held::Stack(_) | Held::Thread(_))
    }

    /// What remains of it when the location that debug info gave ends.
    pub fn carried(self) -> Held {
        match self {
            Held::Pointer(pointer) => Held::Pointer(Pointer { is_located: false, ..pointer }),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(target: u32, offset: Congruence) -> Held {
        Held::Pointer(Pointer { target: Ty(target), offset, origin: Origin::Unknown, is_located: false })
    }

    #[test]
    fn a_pointer_that_steps_through_an_array_is_known_up_to_the_step() {
        let start = pointer(1, Congruence::exactly(8));
        let next = start.plus(Number::exactly(24));
        assert_eq!(start.join(next), pointer(1, Congruence::new(8, 24)));
        assert_eq!(Congruence::new(8, 24).remainder(24), Some(8));
        assert_eq!(Congruence::new(8, 24).remainder(48), None);
        assert_eq!(Congruence::new(8, 24).remainder(u64::MAX), None);
        assert_eq!(Congruence::new(8, 24).minus(Congruence::exactly(32)).remainder(24), Some(0));
    }

    #[test]
    fn multiples_of_one_unknown_add_up() {
        let n = Number::any(Symbol(7));
        assert_eq!(n.times(8).plus(n.times(-1)).values(), Congruence::new(0, 7));
        let unrelated = Number::any(Symbol(0));
        assert_eq!(unrelated.times(8).plus(unrelated.times(4)).values(), Congruence::new(0, 4));
    }

    #[test]
    fn null_and_unknown_do_not_contradict_a_pointer_but_another_type_does() {
        let known = pointer(1, Congruence::exactly(0));
        assert_eq!(Held::Nothing.join(known), known);
        assert_eq!(Held::Number(Number::exactly(0)).join(known), known);
        assert_eq!(pointer(2, Congruence::exactly(0)).join(known), Held::Conflict);
    }
}
