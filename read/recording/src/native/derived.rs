//! Values that the reader of a log derives from words of a record: results of instructions on registers alone.

/// The maximum number of derived values of a superblock.
pub const MOST_DERIVED: usize = 64;
/// The number of the first, in place of a word's. Numbers of others count down from it.
pub const FIRST_DERIVED: u8 = 254;

/// An operand: a word of the record, [`super::superblock::STACK`], an earlier derived value, or 0 for none; and the
/// distance added to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Value {
    /// The word's number, or a number that stands for another value.
    pub word: u8,
    /// The distance that is added.
    pub distance: i64,
}

impl Value {
    /// A value that depends on no word.
    pub fn constant(distance: i64) -> Value {
        Value { word: 0, distance }
    }

    /// The same, and more.
    #[must_use]
    pub fn plus(self, distance: i64) -> Value {
        Value { distance: self.distance.wrapping_add(distance), ..self }
    }
}

/// An operation on two values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Their sum.
    Add,
    /// The first less the second.
    Subtract,
    /// The bits of both.
    And,
    /// The bits of either.
    Or,
    /// The bits of one alone.
    Xor,
    /// The first, shifted to higher bits.
    ShiftLeft,
    /// The first, shifted to lower bits, with zeros above.
    ShiftRight,
    /// The same, with its sign above.
    ShiftSignRight,
    /// Their product.
    Multiply,
    /// Sign-extends the first value from the number of low bits that the second gives.
    ExtendSign,
}

impl Operation {
    const ALL: [Operation; 10] = [
        Operation::Add,
        Operation::Subtract,
        Operation::And,
        Operation::Or,
        Operation::Xor,
        Operation::ShiftLeft,
        Operation::ShiftRight,
        Operation::ShiftSignRight,
        Operation::Multiply,
        Operation::ExtendSign,
    ];

    /// The result of two values: 64 bits, or 32 with zeros above.
    #[inline]
    pub fn of(self, is_half: bool, first: u64, second: u64) -> u64 {
        let bits = if is_half { 32 } else { 64 };
        let low = |value: u64| if is_half { value & 0xffff_ffff } else { value };
        let signed = |value: u64, bits: u32| (value << (64 - bits)).cast_signed() >> (64 - bits);
        let (first, shift) = (low(first), second as u32 & (bits - 1));
        low(match self {
            Operation::Add => first.wrapping_add(second),
            Operation::Subtract => first.wrapping_sub(second),
            Operation::And => first & second,
            Operation::Or => first | second,
            Operation::Xor => first ^ second,
            Operation::ShiftLeft => first << shift,
            Operation::ShiftRight => first >> shift,
            Operation::ShiftSignRight => (signed(first, bits) >> shift).cast_unsigned(),
            Operation::Multiply => first.wrapping_mul(second),
            Operation::ExtendSign => signed(first, (second as u32).clamp(1, bits)).cast_unsigned(),
        })
    }
}

/// A value that follows from two others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Derived {
    /// The operation.
    pub operation: Operation,
    /// With the lower 32 bits alone.
    pub is_half: bool,
    /// The first.
    pub first: Value,
    /// The second.
    pub second: Value,
}

impl Derived {
    /// Words that encode one.
    pub(super) const WORDS: usize = 3;

    pub(super) fn to_words(self) -> [u64; Self::WORDS] {
        let head = self.operation as u64
            | u64::from(self.is_half) << 8
            | u64::from(self.first.word) << 16
            | u64::from(self.second.word) << 24;
        [head, self.first.distance.cast_unsigned(), self.second.distance.cast_unsigned()]
    }

    pub(super) fn read([head, first, second]: [u64; Self::WORDS]) -> Option<Derived> {
        let value = |word: u64, distance: u64| Value { word: word as u8, distance: distance.cast_signed() };
        Some(Derived {
            operation: *Operation::ALL.get(usize::from(head as u8))?,
            is_half: head >> 8 & 1 != 0,
            first: value(head >> 16, first),
            second: value(head >> 24, second),
        })
    }
}

/// The place of a derived value among a superblock's `count` values, from the number that stands for it.
#[inline]
pub fn derived_place(number: u8, count: usize) -> Option<usize> {
    let place = usize::from(FIRST_DERIVED.checked_sub(number)?);
    (place < count).then_some(place)
}
