//! The weighted delta: a span of time times one weight, divided by another.
//!
//! `Δ · w / W` turns a span of real time `Δ` into virtual time (`w` is nice 0, `W` the runner's weight), and
//! a period into a slice (`w` is the runner's weight, `W` the queue's). Five forms are here, each exactly as
//! its integers behave. All of them wrap on overflow as unsigned 64-bit arithmetic does; [`Form::checked`] is
//! `None` where that would happen. [`Form::error_bound`] bounds a result's distance from the rational one.
//!
//! | form | dividend | inverse | exact range of `Δ · w` |
//! |---|---|---|---|
//! | [`Form::Scaled`] | `Δ · (w >> R)` | `2³² / (W >> R)` | product below 2⁶⁴, result below about 2⁴⁸ |
//! | [`Form::Unscaled`] | `Δ · w` | `2³² / W` | the same, reached 2^R times sooner |
//! | [`Form::ScaledInverse`] | `Δ · w` | `nearest(2³² / (W >> R)) >> R` | as `Unscaled` |
//! | [`Form::Factor`] | `Δ` | factor `(w >> R) · inverse`, cut to 32 bits | result below 2⁶⁴ |
//! | [`Form::Division`] | `Δ · w` | none: one division | product below 2⁶⁴ |

mod bounds;

pub use bounds::ErrorBound;

use super::{Resolution, nearest_inverse};

/// 2³²: the scale of an inverse.
const UNIT: u64 = 1 << 32;

/// A weight with its inverse, computed once for a form and a resolution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadWeight {
    /// The stored weight (scaled up by the resolution).
    pub stored: u64,
    /// The form's inverse of it.
    pub inverse: u64,
}

/// One way to compute the weighted delta.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// The 2011 form: weights scaled down before use, and a second path when the product exceeds 2³².
    Scaled,
    /// Weights used as stored. The product exceeds 2³² far more often, so the second path is the usual one.
    Unscaled,
    /// As `Unscaled`, with the inverse taken from the nice table's rounded inverses and scaled down.
    ScaledInverse,
    /// The later form: weight times inverse folded into a factor of at most 32 bits, then one 64×32-bit
    /// multiplication and a shift.
    Factor,
    /// Plain 64-bit multiplication and division.
    Division,
}

/// A hint to the compiler about which path of [`with_overflow_path`] is the usual one.
pub trait BranchHint {
    /// `overflows` itself; the hint is in how it is computed.
    fn overflows(overflows: bool) -> bool;
}

/// No hint.
#[derive(Clone, Copy, Debug)]
pub struct NoHint;
/// The product is expected to exceed 2³².
#[derive(Clone, Copy, Debug)]
pub struct Likely;
/// The product is expected not to exceed 2³².
#[derive(Clone, Copy, Debug)]
pub struct Unlikely;

/// Calling a cold function on a path tells the compiler that the path is rare.
#[cold]
#[inline(never)]
const fn rare() {}

impl BranchHint for NoHint {
    #[inline(always)]
    fn overflows(overflows: bool) -> bool {
        overflows
    }
}

impl BranchHint for Likely {
    #[inline(always)]
    fn overflows(overflows: bool) -> bool {
        if !overflows {
            rare();
        }
        overflows
    }
}

impl BranchHint for Unlikely {
    #[inline(always)]
    fn overflows(overflows: bool) -> bool {
        if overflows {
            rare();
        }
        overflows
    }
}

/// `x / 2^bits`, rounded to nearest, halves up.
#[inline(always)]
const fn shift_round(x: u64, bits: u32) -> u64 {
    x.wrapping_add(1 << (bits - 1)) >> bits
}

/// `product · inverse / 2³²`, rounded; a product above 2³² gives up 16 of its bits first so that the
/// multiplication has room. At most `i64::MAX`.
#[inline(always)]
pub fn with_overflow_path<H: BranchHint>(product: u64, inverse: u64) -> u64 {
    let result = if H::overflows(product > UNIT) {
        shift_round(shift_round(product, 16).wrapping_mul(inverse), 16)
    } else {
        shift_round(product.wrapping_mul(inverse), 32)
    };
    result.min(i64::MAX as u64)
}

/// [`Form::Scaled`] with the hint of the caller's choice.
#[inline(always)]
pub fn scaled<H: BranchHint>(delta_ns: u64, weight: u64, over: LoadWeight, resolution: Resolution) -> u64 {
    with_overflow_path::<H>(scaled_product(delta_ns, weight, resolution), over.inverse)
}

/// [`Form::Unscaled`] and [`Form::ScaledInverse`], which differ in the inverse only.
#[inline(always)]
pub fn unscaled<H: BranchHint>(delta_ns: u64, weight: u64, over: LoadWeight) -> u64 {
    with_overflow_path::<H>(delta_ns.wrapping_mul(weight), over.inverse)
}

/// [`Form::Factor`].
#[inline(always)]
pub fn factor(delta_ns: u64, weight: u64, over: LoadWeight, resolution: Resolution) -> u64 {
    let (factor, shift) = factor_and_shift(resolution.scale_down_kept(weight), over.inverse);
    let product = u128::from(delta_ns) * u128::from(factor);
    (if shift >= 0 { product >> shift } else { product << -shift }) as u64
}

/// [`Form::Division`]. A divisor of zero gives zero.
#[inline(always)]
pub fn division(delta_ns: u64, weight: u64, over: LoadWeight) -> u64 {
    delta_ns.wrapping_mul(weight).checked_div(over.stored).unwrap_or(0)
}

#[inline(always)]
fn scaled_product(delta_ns: u64, weight: u64, resolution: Resolution) -> u64 {
    delta_ns.wrapping_mul(scaled_factor(weight, resolution))
}

/// A group's weight on one CPU may lie below one unit; it then counts as one.
#[inline(always)]
fn scaled_factor(weight: u64, resolution: Resolution) -> u64 {
    if weight > 1 << resolution.bits() { resolution.scale_down(weight) } else { 1 }
}

/// The weight is first cut to 32 bits, then the product, so that neither multiplication overflows.
#[inline(always)]
fn factor_and_shift(weight: u64, inverse: u64) -> (u64, i32) {
    let cut = excess_bits(weight);
    let product = (weight >> cut) * inverse;
    let more = excess_bits(product);
    (product >> more, 32 - cut as i32 - more as i32)
}

/// By how many bits `x` exceeds 32 bits.
#[inline(always)]
fn excess_bits(x: u64) -> u32 {
    (64 - x.leading_zeros()).saturating_sub(32)
}

impl Form {
    /// Every form, in the order of the module's table.
    pub const ALL: [Self; 5] =
        [Self::Scaled, Self::Unscaled, Self::ScaledInverse, Self::Factor, Self::Division];

    /// The form's name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scaled => "scaled (2011)",
            Self::Unscaled => "unscaled",
            Self::ScaledInverse => "scaled inverse",
            Self::Factor => "32-bit factor",
            Self::Division => "64-bit division",
        }
    }

    /// `stored` with the inverse this form divides by. A divisor of zero has the greatest 32-bit inverse,
    /// one of 2³² or more the inverse 1.
    pub const fn load_weight(self, stored: u64, resolution: Resolution) -> LoadWeight {
        let inverse = match self {
            Self::Scaled => inverse(UNIT, resolution.scale_down(stored)),
            Self::Unscaled => inverse(UNIT, stored),
            Self::ScaledInverse => scaled_down_inverse(stored, resolution),
            Self::Factor => inverse(UNIT - 1, resolution.scale_down_kept(stored)),
            Self::Division => 1,
        };
        LoadWeight { stored, inverse }
    }

    /// `delta_ns · weight / over`, as this form computes it. `weight` is a stored weight.
    pub fn apply(self, delta_ns: u64, weight: u64, over: LoadWeight, resolution: Resolution) -> u64 {
        match self {
            Self::Scaled => scaled::<NoHint>(delta_ns, weight, over, resolution),
            Self::Unscaled | Self::ScaledInverse => unscaled::<NoHint>(delta_ns, weight, over),
            Self::Factor => factor(delta_ns, weight, over, resolution),
            Self::Division => division(delta_ns, weight, over),
        }
    }

    /// As [`Self::apply`], or `None` if the divisor vanishes or a step would need more than 64 bits, so that
    /// `apply` would return a value unrelated to the quotient.
    ///
    /// ```
    /// use lineup_sched::weights::{Resolution, delta::Form};
    /// let ten = Resolution::TEN;
    /// let over = Form::Division.load_weight(3072 << 10, ten);
    /// assert_eq!(Form::Division.checked(4_000_000, 1024 << 10, over, ten), Some(1_333_333));
    /// assert_eq!(Form::Division.checked(1 << 45, 1024 << 10, over, ten), None);
    /// assert_eq!(
    ///     Form::Scaled.apply(4_000_000, 1024 << 10, Form::Scaled.load_weight(3072 << 10, ten), ten),
    ///     1_333_333
    /// );
    /// ```
    pub fn checked(
        self,
        delta_ns: u64,
        weight: u64,
        over: LoadWeight,
        resolution: Resolution,
    ) -> Option<u64> {
        if self.divisor(over.stored, resolution) == 0 {
            return None;
        }
        match self {
            Self::Scaled => fits(delta_ns.checked_mul(scaled_factor(weight, resolution))?, over.inverse)?,
            Self::Unscaled | Self::ScaledInverse => fits(delta_ns.checked_mul(weight)?, over.inverse)?,
            Self::Factor => {
                let (factor, shift) = factor_and_shift(resolution.scale_down_kept(weight), over.inverse);
                let product = u128::from(delta_ns) * u128::from(factor);
                u64::try_from(product.checked_shr(u32::try_from(shift).ok()?)?).ok()?;
            }
            Self::Division => {
                delta_ns.checked_mul(weight)?;
            }
        }
        Some(self.apply(delta_ns, weight, over, resolution))
    }

    /// The integer this form in effect divides by.
    const fn divisor(self, stored: u64, resolution: Resolution) -> u64 {
        match self {
            Self::Scaled => resolution.scale_down(stored),
            Self::Factor => resolution.scale_down_kept(stored),
            Self::ScaledInverse => resolution.scale_down(stored) << resolution.bits(),
            Self::Unscaled | Self::Division => stored,
        }
    }
}

const fn inverse(constant: u64, divisor: u64) -> u64 {
    match constant.checked_div(divisor) {
        Some(0) => 1,
        Some(quotient) => quotient,
        None => UNIT - 1,
    }
}

/// The nice table's rounded inverse, shifted down by the resolution; at least 1.
const fn scaled_down_inverse(stored: u64, resolution: Resolution) -> u64 {
    let inverse = nearest_inverse(resolution.scale_down(stored)) >> resolution.bits();
    if inverse == 0 { 1 } else { inverse }
}

/// Whether the multiplications of [`with_overflow_path`] fit into 64 bits.
fn fits(product: u64, inverse: u64) -> Option<()> {
    if product > UNIT {
        let cut = product.checked_add(1 << 15)? >> 16;
        cut.checked_mul(inverse)?.checked_add(1 << 15)?;
    } else {
        product.checked_mul(inverse)?.checked_add(1 << 31)?;
    }
    Some(())
}
