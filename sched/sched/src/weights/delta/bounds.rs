//! Bounds of each form's distance from the rational it stands for.
//!
//! Two errors add up. *Quantisation*: a form that scales weights down sees `⌊w / 2^R⌋` for `w`, so with `w'`
//! and `W'` for the weights it sees, `Δw/W` lies between `Δw'/(W'+1)` and `Δ(w'+1)/W'`. *Rounding*: an
//! inverse cut to an integer is less than one too small, so a product `t` times it loses less than `t / 2³²`;
//! every shift that rounds adds half a unit of its result.

use super::{Form, LoadWeight, UNIT, scaled_factor};
use crate::weights::Resolution;

/// Bounds of a result's distance from the rational value, in whole nanoseconds rounded up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorBound {
    /// The result is at most this much too small.
    pub below_ns: u128,
    /// The result is at most this much too large.
    pub above_ns: u128,
}

impl ErrorBound {
    const fn plus(self, other: Self) -> Self {
        Self { below_ns: self.below_ns + other.below_ns, above_ns: self.above_ns + other.above_ns }
    }
}

impl Form {
    /// Bounds of the distance of [`Form::apply`] from `delta_ns · weight / over.stored`, or `None` where
    /// [`Form::checked`] is `None` and no bound holds.
    ///
    /// ```
    /// use lineup_sched::weights::{Resolution, delta::Form};
    /// let over = Form::Division.load_weight(3072, Resolution::NONE);
    /// let bound = Form::Division.error_bound(4_000_000, 1024, over, Resolution::NONE).unwrap();
    /// assert_eq!((bound.below_ns, bound.above_ns), (1, 0));
    /// ```
    pub fn error_bound(
        self,
        delta_ns: u64,
        weight: u64,
        over: LoadWeight,
        resolution: Resolution,
    ) -> Option<ErrorBound> {
        self.checked(delta_ns, weight, over, resolution)?;
        let delta = u128::from(delta_ns);
        let divisor = u128::from(self.divisor(over.stored, resolution));
        Some(match self {
            Self::Division => ErrorBound { below_ns: 1, above_ns: 0 },
            Self::Unscaled => rounding(delta * u128::from(weight), over.inverse, divisor),
            Self::ScaledInverse => {
                let slack = u128::from(over.stored) - divisor;
                rounding(delta * u128::from(weight), over.inverse, divisor)
                    .plus(table_rounding(delta * u128::from(weight), resolution))
                    .plus(quantisation(delta, u128::from(weight), divisor, slack, 0))
            }
            Self::Scaled => {
                let factor = u128::from(scaled_factor(weight, resolution));
                rounding(delta * factor, over.inverse, divisor)
                    .plus(both_quantised(delta, factor, divisor, resolution))
            }
            Self::Factor => {
                let factor = u128::from(resolution.scale_down_kept(weight));
                factor_rounding(delta * factor, divisor)
                    .plus(both_quantised(delta, factor, divisor, resolution))
            }
        })
    }
}

/// The loss of `product · inverse / 2³²` against `product / divisor`.
fn rounding(product: u128, inverse: u64, divisor: u128) -> ErrorBound {
    let cut_inverse = product >> 32;
    let shifts = if product > u128::from(UNIT) { u128::from(inverse >> 17) + 1 } else { 0 };
    let raised_inverse = if divisor > u128::from(UNIT) { cut_inverse + 1 } else { 0 };
    ErrorBound { below_ns: cut_inverse + shifts + 2, above_ns: raised_inverse + shifts + 1 }
}

/// An inverse rounded to nearest may be half a unit of the table too large, before it is scaled down,
/// and is at least 1.
fn table_rounding(product: u128, resolution: Resolution) -> ErrorBound {
    ErrorBound {
        below_ns: 0,
        above_ns: (product >> (33 + u32::from(resolution.bits()))) + (product >> 32) + 2,
    }
}

/// `t · inverse / 2³²` with the inverse less than `1 + 1/W` too small and the factor cut to 32 bits: less
/// than 2⁻³¹ of it lost, in either of two cuts.
fn factor_rounding(product: u128, divisor: u128) -> ErrorBound {
    let inverse = (product >> 32) + ((product / divisor) >> 32) + 2;
    let cuts = ((product / divisor) >> 30) + 1;
    ErrorBound {
        below_ns: inverse + cuts + 1,
        above_ns: if divisor >= u128::from(UNIT) { inverse } else { 0 },
    }
}

/// Both weights in whole units: each may stand for any weight less than one unit larger. A weight of up to
/// two units may also stand for any smaller weight.
fn both_quantised(delta: u128, factor: u128, divisor: u128, resolution: Resolution) -> ErrorBound {
    if resolution == Resolution::NONE {
        return ErrorBound { below_ns: 0, above_ns: if factor == 1 { delta / divisor + 1 } else { 0 } };
    }
    let mut bound = quantisation(delta, factor, divisor, 1, 1);
    if factor <= 2 {
        bound.above_ns += factor * delta / divisor + 1;
    }
    if divisor <= 2 {
        bound.below_ns += (factor + 1) * delta * u128::from(1_u64 << resolution.bits());
    }
    bound
}

/// A divisor that may be up to `divisor_slack` greater than seen, and a weight up to `weight_slack`.
fn quantisation(
    delta: u128,
    weight: u128,
    divisor: u128,
    divisor_slack: u128,
    weight_slack: u128,
) -> ErrorBound {
    let seen = delta * weight / divisor.max(1);
    let least = delta * weight / (divisor + divisor_slack).max(1);
    ErrorBound { below_ns: delta * weight_slack / divisor.max(1) + 1, above_ns: seen - least + 1 }
}
