//! The known facts about a value in a register or stack slot.

use crate::types::catalog::Ty;
use crate::types::congruence::{Congruence, gcd};

/// An unknown integer that several registers may be multiples of; 0 is one that nothing else refers to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SymbolicId(pub u64);

/// Nothing is mapped below this address.
const LEAST_ADDRESS: u64 = 0x1000;

/// `constant + factor × symbol`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Number {
    /// Added.
    pub constant: i64,
    /// 0 when the number is known.
    pub factor: i64,
    /// The unknown.
    pub symbol: SymbolicId,
}

impl Number {
    /// A known number.
    pub const fn exactly(constant: i64) -> Self {
        Self { constant, factor: 0, symbol: SymbolicId(0) }
    }

    /// Any number, to be referred to by `symbol`.
    pub const fn any(symbol: SymbolicId) -> Self {
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

    /// True for a small constant, and for an index that steps through an array from one on: neither is an address.
    pub fn is_offset(self) -> bool {
        self.factor.unsigned_abs() != 1 && self.constant != 0 && self.constant.unsigned_abs() < LEAST_ADDRESS
    }

    /// The number times a factor.
    pub fn times(self, factor: i64) -> Self {
        Self {
            constant: self.constant.wrapping_mul(factor),
            factor: self.factor.wrapping_mul(factor),
            symbol: if factor == 0 { SymbolicId(0) } else { self.symbol },
        }
    }

    /// The sum of two numbers.
    pub fn plus(self, other: Number) -> Self {
        let constant = self.constant.wrapping_add(other.constant);
        if self.factor == 0 || other.factor == 0 {
            let unknown = if self.factor == 0 { other } else { self };
            return Self { constant, ..unknown };
        }
        if self.symbol == other.symbol && self.symbol != SymbolicId(0) {
            let factor = self.factor.wrapping_add(other.factor);
            return Self { constant, factor, symbol: if factor == 0 { SymbolicId(0) } else { self.symbol } };
        }
        let factor = gcd(self.factor.unsigned_abs(), other.factor.unsigned_abs()) as i64;
        Self { constant, factor, symbol: SymbolicId(0) }
    }

    /// A number that is either of two.
    pub fn join(self, other: Number) -> Self {
        if self == other {
            return self;
        }
        let both = self.values().join(other.values());
        Self { constant: both.residue, factor: both.modulus as i64, symbol: SymbolicId(0) }
    }

    /// The same remainders without a smallest value: the values of a counter that a loop changes.
    fn widened(self) -> Self {
        match self.factor.checked_abs() {
            Some(step) if step > 0 => {
                Self { constant: self.constant.rem_euclid(step), factor: step, symbol: SymbolicId(0) }
            }
            _ => self,
        }
    }
}

/// The source of a pointer. It names the pointer's target if that is no struct.
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
    /// The pointer's source.
    pub origin: Origin,
    /// True while debug info says at this very place that the register holds this.
    pub is_located: bool,
    /// The register's value on paths where it holds no pointer: null, or the address of a variable.
    pub or_constant: Option<i64>,
}

impl Pointer {
    fn join(self, other: Pointer) -> AbstractValue {
        let or_constant = match (self.or_constant, other.or_constant) {
            (Some(a), Some(b)) if a != b => return AbstractValue::Conflict,
            (own, other) => own.or(other),
        };
        if self.target != other.target {
            return AbstractValue::Conflict;
        }
        AbstractValue::Pointer(Pointer {
            target: self.target,
            offset: self.offset.join(other.offset),
            origin: if self.origin == other.origin { self.origin } else { Origin::Unknown },
            is_located: self.is_located && other.is_located,
            or_constant,
        })
    }

    /// A pointer that every path gives.
    pub fn new(target: Ty, offset: Congruence, origin: Origin) -> Self {
        Self { target, offset, origin, is_located: false, or_constant: None }
    }
}

/// The known facts about a value. Paths that know no type do not contradict those that do: a register that is used as
/// an address after two paths meet held the same kind of pointer on both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AbstractValue {
    /// Nothing.
    Nothing,
    /// Nothing but where it came from: registers and slots with the same symbol other than 0 hold the same value.
    Untyped(SymbolicId),
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

impl AbstractValue {
    /// The known facts where two paths meet: the least upper bound of a lattice. It is commutative, associative and
    /// idempotent, so that the order in which paths meet does not matter. A constant does not contradict a pointer, two
    /// different ones do: together they are as good as any number.
    pub fn join(self, other: AbstractValue) -> AbstractValue {
        match (self, other) {
            (same, other) if same == other => same,
            (AbstractValue::Nothing, known) | (known, AbstractValue::Nothing) => known,
            (AbstractValue::Untyped(_), AbstractValue::Untyped(_)) => AbstractValue::Untyped(SymbolicId(0)),
            (AbstractValue::Untyped(_), known) | (known, AbstractValue::Untyped(_)) => known,
            (AbstractValue::Number(a), AbstractValue::Number(b)) => AbstractValue::Number(a.join(b)),
            (AbstractValue::Stack(a), AbstractValue::Stack(b)) => AbstractValue::Stack(a.join(b)),
            (AbstractValue::Pointer(a), AbstractValue::Pointer(b)) => a.join(b),
            (AbstractValue::Number(number), AbstractValue::Pointer(pointer))
            | (AbstractValue::Pointer(pointer), AbstractValue::Number(number)) => match number.exact() {
                Some(_) => pointer.join(Pointer { or_constant: number.exact(), ..pointer }),
                None => AbstractValue::Conflict,
            },
            _ => AbstractValue::Conflict,
        }
    }

    /// The value after any number of passes through a loop that changes it each time.
    pub fn widened(self) -> AbstractValue {
        match self {
            AbstractValue::Number(number) => AbstractValue::Number(number.widened()),
            AbstractValue::Stack(offset) => AbstractValue::Stack(offset.without_smallest()),
            AbstractValue::Pointer(pointer) => {
                AbstractValue::Pointer(Pointer { offset: pointer.offset.without_smallest(), ..pointer })
            }
            other => other,
        }
    }

    /// The value plus a number.
    pub fn plus(self, number: Number) -> AbstractValue {
        match self {
            AbstractValue::Number(own) => AbstractValue::Number(own.plus(number)),
            AbstractValue::Pointer(pointer) => {
                AbstractValue::Pointer(Pointer { offset: pointer.offset.plus(number.values()), ..pointer })
            }
            AbstractValue::Stack(offset) => AbstractValue::Stack(offset.plus(number.values())),
            AbstractValue::Thread(offset) => number
                .exact()
                .map_or(AbstractValue::Conflict, |n| AbstractValue::Thread(offset.wrapping_add(n))),
            AbstractValue::Untyped(_) if number.exact() == Some(0) => self,
            AbstractValue::Untyped(_) => AbstractValue::Nothing,
            AbstractValue::Nothing | AbstractValue::Conflict => self,
        }
    }

    /// The value as a number: an unknown one unless more is known.
    pub fn as_number(self) -> Number {
        match self {
            AbstractValue::Number(number) => number,
            _ => Number::any(SymbolicId(0)),
        }
    }

    /// True when the value is an address of something.
    pub fn is_address(self) -> bool {
        matches!(self, AbstractValue::Pointer(_) | AbstractValue::Stack(_) | AbstractValue::Thread(_))
    }

    /// The facts that remain when the location that debug info gave ends.
    pub fn carried(self) -> AbstractValue {
        match self {
            AbstractValue::Pointer(pointer) => {
                AbstractValue::Pointer(Pointer { is_located: false, ..pointer })
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pointer(target: u32, offset: Congruence) -> AbstractValue {
        AbstractValue::Pointer(Pointer::new(Ty(target), offset, Origin::Unknown))
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
    fn what_steps_from_a_small_constant_on_is_no_address() {
        let any = Number::any(SymbolicId(0));
        let from = |constant, step| any.times(step).plus(Number::exactly(constant));
        assert!(from(0x278, 0x280).is_offset() && from(-8, 16).is_offset() && from(1, 0).is_offset());
        // A multiple may be an address that was aligned, any number one of anything.
        assert!(
            !from(0, 16).is_offset()
                && !from(0, 0).is_offset()
                && !from(8, 1).is_offset()
                && !from(0x4010, 8).is_offset()
        );
    }

    #[test]
    fn multiples_of_one_unknown_add_up() {
        let n = Number::any(SymbolicId(7));
        assert_eq!(n.times(8).plus(n.times(-1)).values(), Congruence::new(0, 7));
        let unrelated = Number::any(SymbolicId(0));
        assert_eq!(unrelated.times(8).plus(unrelated.times(4)).values(), Congruence::new(0, 4));
    }

    #[test]
    fn null_and_unknown_do_not_contradict_a_pointer_but_another_type_does() {
        let known = pointer(1, Congruence::exactly(0));
        assert_eq!(AbstractValue::Nothing.join(known), known);
        let null = AbstractValue::Number(Number::exactly(0)).join(known);
        assert!(matches!(null, AbstractValue::Pointer(pointer) if pointer.target == Ty(1)), "{null:?}");
        assert_eq!(pointer(2, Congruence::exactly(0)).join(known), AbstractValue::Conflict);
    }

    #[test]
    fn two_constants_and_a_pointer_give_the_same_in_any_order() {
        let [null, eight] = [0, 8].map(|value| AbstractValue::Number(Number::exactly(value)));
        let known = pointer(1, Congruence::exactly(0));
        assert_eq!(null.join(eight).join(known), null.join(eight.join(known)));
        assert_eq!(null.join(known).join(eight), known.join(eight).join(null));
    }

    #[test]
    fn a_pointer_that_steps_downwards_comes_to_rest() {
        let step = Number::exactly(-24);
        let mut at = pointer(1, Congruence::exactly(8000));
        for _ in 0..3 {
            at = at.join(at.plus(step)).widened();
        }
        assert_eq!(at.join(at.plus(step)).widened(), at);
        let AbstractValue::Pointer(at) = at else { panic!("{at:?}") };
        assert_eq!((at.offset.remainder(24), at.offset.smallest()), (Some(8), None));
    }

    fn values() -> impl Strategy<Value = AbstractValue> {
        let small = -64i64..64;
        let far = -(1i64 << 61)..1i64 << 61;
        let constant = || prop_oneof![3 => small.clone(), 1 => far.clone()];
        let step = || prop_oneof![Just(0u64), 1u64..5, Just(8), Just(24), Just(48)];
        let offsets = || {
            (constant(), step(), any::<bool>()).prop_map(|(value, step, has_smallest)| {
                let set = Congruence::new(value, step);
                if has_smallest { set } else { set.without_smallest() }
            })
        };
        let number = (constant(), -3i64..25, 0u64..3).prop_map(|(constant, factor, symbol)| {
            Number::exactly(constant).plus(Number::any(SymbolicId(symbol)).times(factor))
        });
        let pointer = (0u32..2, offsets(), 0u32..2, any::<bool>(), proptest::option::of(0i64..2)).prop_map(
            |(target, offset, variable, is_located, or_constant)| {
                let origin = Origin::Variable(variable);
                let pointer = Pointer::new(Ty(target), offset, origin);
                AbstractValue::Pointer(Pointer { is_located, or_constant, ..pointer })
            },
        );
        prop_oneof![
            1 => Just(AbstractValue::Nothing),
            1 => Just(AbstractValue::Conflict),
            1 => (0u64..3).prop_map(|symbol| AbstractValue::Untyped(SymbolicId(symbol))),
            3 => number.prop_map(AbstractValue::Number),
            6 => pointer,
            2 => offsets().prop_map(AbstractValue::Stack),
            1 => small.clone().prop_map(AbstractValue::Thread),
        ]
    }

    proptest! {
        #[test]
        fn the_order_in_which_paths_meet_does_not_matter(a in values(), b in values(), c in values()) {
            prop_assert_eq!(a.join(a), a);
            prop_assert_eq!(a.join(b), b.join(a));
            prop_assert_eq!(a.join(b).join(c), a.join(b.join(c)));
            prop_assert_eq!(a.join(a.join(b)), a.join(b));
        }

        #[test]
        fn what_a_loop_changes_comes_to_rest(start in values(), steps in proptest::collection::vec(-100i64..100, 1..4)) {
            let mut at = start;
            let mut changes = 0;
            while changes < 100 {
                let stepped = steps.iter().fold(at, |all, step| all.join(at.plus(Number::exactly(*step))));
                if stepped == at || stepped.widened() == at {
                    break;
                }
                at = stepped.widened();
                changes += 1;
            }
            prop_assert!(changes < 20, "{start:?} with {steps:?} changed {changes} times");
        }
    }
}
