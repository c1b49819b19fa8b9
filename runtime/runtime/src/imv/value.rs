//! The types a value may have, and values as text.

use std::cell::UnsafeCell;

/// The kind of number that a variable holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// A signed integer.
    Signed,
    /// An unsigned integer, or a pointer.
    Unsigned,
    /// True or false.
    Bool,
    /// A floating-point number of 4 or 8 bytes.
    Float,
}

impl Class {
    /// From a record: 0 integer, 1 bool, 2 float.
    pub(super) fn from_record(class: u8, is_signed: u8) -> Self {
        match (class, is_signed) {
            (1, _) => Self::Bool,
            (2, _) => Self::Float,
            (_, 0) => Self::Unsigned,
            _ => Self::Signed,
        }
    }

    /// The value of `bits` as text, for a variable of `size_bytes`.
    pub fn to_text(self, bits: u64, size_bytes: u8) -> String {
        let unused = 64 - 8 * u32::from(size_bytes.clamp(1, 8));
        match self {
            Self::Signed => (((bits << unused) as i64) >> unused).to_string(),
            Self::Unsigned => bits.to_string(),
            Self::Bool => (bits != 0).to_string(),
            Self::Float if size_bytes == 4 => f32::from_bits(bits as u32).to_string(),
            Self::Float => f64::from_bits(bits).to_string(),
        }
    }

    /// The bits of a value written as text: decimal, `0x` hexadecimal, `true`/`false`. `None` when it is no such
    /// number or does not fit in `size_bytes`.
    ///
    /// ```
    /// use lineup_runtime::imv::Class;
    /// assert_eq!(Class::Signed.parse("-1", 2), Some(0xffff));
    /// assert_eq!(Class::Unsigned.parse("0x100", 1), None);
    /// ```
    pub fn parse(self, text: &str, size_bytes: u8) -> Option<u64> {
        let bits = 8 * u32::from(size_bytes);
        let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        match self {
            Self::Bool => match text {
                "true" | "1" => Some(1),
                "false" | "0" => Some(0),
                _ => None,
            },
            Self::Float if size_bytes == 4 => text.parse().ok().map(|v: f32| u64::from(v.to_bits())),
            Self::Float => text.parse().ok().map(f64::to_bits),
            Self::Signed => {
                let value = parse_integer(text)?;
                let limit = 1i128 << (bits - 1);
                (-limit..limit).contains(&value).then_some(value as u64 & mask)
            }
            Self::Unsigned => {
                parse_integer(text).filter(|v| (0..=i128::from(mask)).contains(v)).map(|v| v as u64)
            }
        }
    }
}

fn parse_integer(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(i128::from),
        None => text.parse().ok(),
    }
}

mod sealed {
    /// Keeps [`super::Value`] to types whose every bit pattern that a set can produce is valid.
    pub trait Sealed: Copy {}
}

/// A type that an immediate value may have: an integer, `bool`, `f32` or `f64`.
pub trait Value: sealed::Sealed {
    /// The kind of number.
    const CLASS: u8;
    /// 1 when signed.
    const IS_SIGNED: u8;
    /// The value as the low bits of a word.
    fn to_bits64(self) -> u64;
    /// The value from the low bits of a word.
    fn from_bits64(bits: u64) -> Self;
}

macro_rules! integers {
    ($($ty:ty, $signed:literal;)*) => {$(
        impl sealed::Sealed for $ty {}
        impl Value for $ty {
            const CLASS: u8 = 0;
            const IS_SIGNED: u8 = $signed;
            fn to_bits64(self) -> u64 {
                const UNUSED: u32 = 64 - <$ty>::BITS;
                (self as u64) << UNUSED >> UNUSED
            }
            fn from_bits64(bits: u64) -> Self {
                bits as $ty
            }
        }
    )*};
}
integers! { u8, 0; u16, 0; u32, 0; u64, 0; usize, 0; i8, 1; i16, 1; i32, 1; i64, 1; isize, 1; }

impl sealed::Sealed for bool {}
impl Value for bool {
    const CLASS: u8 = 1;
    const IS_SIGNED: u8 = 0;
    fn to_bits64(self) -> u64 {
        u64::from(self)
    }
    fn from_bits64(bits: u64) -> Self {
        bits & 0xff != 0
    }
}

impl sealed::Sealed for f32 {}
impl Value for f32 {
    const CLASS: u8 = 2;
    const IS_SIGNED: u8 = 1;
    fn to_bits64(self) -> u64 {
        u64::from(self.to_bits())
    }
    fn from_bits64(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }
}

impl sealed::Sealed for f64 {}
impl Value for f64 {
    const CLASS: u8 = 2;
    const IS_SIGNED: u8 = 1;
    fn to_bits64(self) -> u64 {
        self.to_bits()
    }
    fn from_bits64(bits: u64) -> Self {
        f64::from_bits(bits)
    }
}

/// The ordinary variable behind an immediate value. Made by [`define_imv!`](crate::define_imv), read by
/// [`imv_read!`](crate::imv_read).
#[repr(transparent)]
pub struct Imv<T: Value>(UnsafeCell<T>);

// SAFETY: after construction the cell is read and written by single atomic operations of its own size alone, or by
// the one load instruction of a dormant site.
unsafe impl<T: Value> Sync for Imv<T> {}

impl<T: Value> Imv<T> {
    /// A variable with its initial value. Use [`define_imv!`](crate::define_imv), which also registers it.
    pub const fn new(initial: T) -> Self {
        Self(UnsafeCell::new(initial))
    }

    /// The value, by a plain load: for code that runs before the image's constructors or after its destructors.
    pub fn load(&self) -> T {
        T::from_bits64(super::cell::load(self.address(), size_of::<T>() as u8))
    }

    pub(super) fn address(&self) -> usize {
        self.0.get() as usize
    }
}

/// The size of a variable's value, for the macros' `const` operands.
#[doc(hidden)]
pub const fn size_of_value<T: Value>(_: &Imv<T>) -> usize {
    size_of::<T>()
}

/// The value of a site's register.
#[doc(hidden)]
#[inline(always)]
pub fn from_register<T: Value>(_: &Imv<T>, bits: u64) -> T {
    T::from_bits64(bits)
}
