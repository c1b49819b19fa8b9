//! The cost of a footprint when other data passes through the cache between calls.

use crate::spec::CacheSpec;
use std::collections::{BTreeSet, HashMap};

/// Expected misses per call of a region that uses the lines in `lines` (line numbers, see
/// [`lineup_model::line::LineSize::line_of`]) every time, when `pressure_bytes` bytes of other data are touched between
/// two calls.
///
/// Under least-recently-used replacement a line is still there at the next call when fewer than `ways` distinct lines
/// of its set were used in between. These lines are the call's own other lines in the set, and the other data's lines
/// there: with these scattered evenly, a binomial number out of `pressure_bytes / line` with chance `1 / sets`.
///
/// ```
/// use lineup_cache::{CacheSpec, expected_misses};
/// let spec: CacheSpec = "l1d=32K,8,64".parse()?;
/// assert_eq!(expected_misses(&spec, [1, 2, 3], 0), 0.0);
/// assert!((expected_misses(&spec, [1, 2, 3], 1 << 20) - 3.0).abs() < 0.01);
/// # Ok::<(), lineup_cache::SpecError>(())
/// ```
pub fn expected_misses(spec: &CacheSpec, lines: impl IntoIterator<Item = u64>, pressure_bytes: u64) -> f64 {
    let mut own_in_set: HashMap<u64, u32> = HashMap::new();
    for line in lines.into_iter().collect::<BTreeSet<u64>>() {
        *own_in_set.entry(line & (spec.sets() - 1)).or_default() += 1;
    }
    let mut sets_by_own: HashMap<u32, u32> = HashMap::new();
    own_in_set.values().for_each(|own| *sets_by_own.entry(*own).or_default() += 1);
    let others = pressure_bytes.div_ceil(spec.line().bytes());
    sets_by_own
        .into_iter()
        .map(|(own, sets)| {
            let lost = match spec.ways().checked_sub(own) {
                None => 1.0,
                Some(room) => 1.0 - binomial_at_most(others, 1.0 / spec.sets() as f64, room),
            };
            f64::from(own) * f64::from(sets) * lost
        })
        .sum()
}

/// The chance that a binomial number of `trials` with the given chance each is at most `limit`.
fn binomial_at_most(trials: u64, chance: f64, limit: u32) -> f64 {
    if trials <= u64::from(limit) {
        return 1.0;
    }
    if chance >= 1.0 {
        return 0.0;
    }
    // Terms by their ratio, in logarithms: the first underflows long before the sum does.
    let odds = (chance / (1.0 - chance)).ln();
    let mut log_term = trials as f64 * (-chance).ln_1p();
    let mut sum = log_term.exp();
    for k in 1..=u64::from(limit) {
        log_term += ((trials - k + 1) as f64 / k as f64).ln() + odds;
        sum += log_term.exp();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binomial_sum_is_the_textbook_one() {
        // Ten tosses of a fair coin: (1 + 10 + 45) / 1024 give at most two heads.
        assert!((binomial_at_most(10, 0.5, 2) - 56.0 / 1024.0).abs() < 1e-12);
        assert_eq!(binomial_at_most(3, 0.5, 3), 1.0);
        assert_eq!(binomial_at_most(4, 1.0, 3), 0.0);
    }

    #[test]
    fn millions_of_trials_do_not_underflow_into_certainty() {
        let near_mean = binomial_at_most(1 << 26, 1.0 / (1 << 26) as f64, 1);
        assert!((near_mean - 2.0 * (-1f64).exp()).abs() < 1e-6);
        assert!(binomial_at_most(1 << 26, 1.0 / 64.0, 8) < 1e-300);
    }
}
