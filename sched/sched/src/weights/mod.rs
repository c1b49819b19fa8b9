//! Load weights, their inverses, and the arithmetic that weighs time with them.
//!
//! A task's weight is proportional to its share of a contended CPU. Nice 0 weighs [`NICE_0_WEIGHT`], and each
//! nice step changes the weight by about a quarter. So one step moves a task's share of a CPU with two
//! competing tasks by about ten percentage points.
//!
//! Divisions by a weight are done as multiplications by its *inverse*, 2³² divided by the weight. [`delta`]
//! compares the errors of the ways to do so.

pub mod delta;
mod resolution;

pub use resolution::Resolution;

/// The weight of a task at nice 0.
pub const NICE_0_WEIGHT: u64 = 1024;

/// The weight of a task under the idle policy.
pub const IDLE_POLICY_WEIGHT: u64 = 3;

/// The least weight a group may be given, and the floor of a group's weight on one CPU.
pub const MIN_SHARES: u64 = 2;

/// The greatest weight a group may be given.
pub const MAX_SHARES: u64 = 1 << 18;

/// The weights of nice −20 to 19, in that order.
pub const NICE_WEIGHTS: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121,
    2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29,
    23, 18, 15,
];

/// The inverses of [`NICE_WEIGHTS`]: 2³² divided by the weight, rounded to the nearest integer.
pub const NICE_INVERSES: [u64; 40] = nearest_inverses();

const fn nearest_inverses() -> [u64; 40] {
    let mut inverses = [0; 40];
    let mut at = 0;
    while at < inverses.len() {
        inverses[at] = nearest_inverse(NICE_WEIGHTS[at]);
        at += 1;
    }
    inverses
}

/// 2³² divided by `weight`, rounded to the nearest integer. A weight of zero counts as one.
pub(crate) const fn nearest_inverse(weight: u64) -> u64 {
    let weight = if weight == 0 { 1 } else { weight };
    ((1_u128 << 32) + weight as u128 / 2).div_euclid(weight as u128) as u64
}

/// The weight of a task at `nice`, or `None` outside −20 to 19.
///
/// ```
/// use lineup_sched::weights::nice_weight;
/// assert_eq!(nice_weight(0), Some(1024));
/// assert_eq!(nice_weight(-20), Some(88761));
/// assert_eq!(nice_weight(20), None);
/// ```
pub const fn nice_weight(nice: i8) -> Option<u64> {
    if nice < -20 || nice > 19 { None } else { Some(NICE_WEIGHTS[(nice + 20) as usize]) }
}

/// The group weight (`cpu.shares`) that corresponds to a `cpu.weight` from 1 to 10,000, where 100 is the
/// default: `weight · 1024 / 100`, kept within [`MIN_SHARES`] and [`MAX_SHARES`]. `None` outside the range.
///
/// ```
/// use lineup_sched::weights::shares_of_cpu_weight;
/// assert_eq!(shares_of_cpu_weight(100), Some(1024));
/// assert_eq!(shares_of_cpu_weight(1), Some(10));
/// assert_eq!(shares_of_cpu_weight(0), None);
/// ```
pub const fn shares_of_cpu_weight(weight: u64) -> Option<u64> {
    if weight == 0 || weight > 10_000 {
        return None;
    }
    let shares = weight * 1024 / 100;
    if shares < MIN_SHARES { Some(MIN_SHARES) } else { Some(shares) }
}
