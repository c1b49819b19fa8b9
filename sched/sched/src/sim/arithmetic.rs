//! Integer arithmetic as the kernel does it.

/// `a · b / c` without overflow in between. The result is at most 64 bits wide in every use here.
pub(super) fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => (u128::from(a) * u128::from(b) / u128::from(c)).min(u128::from(u64::MAX)) as u64,
    }
}
