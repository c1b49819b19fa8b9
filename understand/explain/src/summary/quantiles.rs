//! Quantiles and mean of a figure over calls.

use serde::Serialize;

/// Smallest, middle and greatest of a figure over calls.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Quantiles {
    /// Smallest.
    pub min: u64,
    /// Half of the calls have at most this (nearest rank).
    pub median: u64,
    /// 99 of 100 calls have at most this (nearest rank).
    pub p99: u64,
    /// Greatest.
    pub max: u64,
    /// Arithmetic mean.
    pub mean: f64,
}

/// The number of calls with a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Bar {
    /// The value.
    pub value: u64,
    /// Calls that had it.
    pub calls: u64,
}

impl Quantiles {
    /// The quantiles of these values; `None` without values.
    pub fn of(values: &[u64]) -> Option<Quantiles> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        let rank =
            |share: f64| sorted.get(((sorted.len() as f64 * share).ceil() as usize).max(1) - 1).copied();
        Some(Quantiles {
            min: *sorted.first()?,
            median: rank(0.5)?,
            p99: rank(0.99)?,
            max: *sorted.last()?,
            mean: sorted.iter().map(|value| *value as f64).sum::<f64>() / sorted.len() as f64,
        })
    }
}

/// Each distinct value with its number of calls, by value.
pub fn bars(values: &[u64]) -> Vec<Bar> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let mut bars: Vec<Bar> = Vec::new();
    for value in sorted {
        match bars.last_mut().filter(|bar| bar.value == value) {
            Some(bar) => bar.calls += 1,
            None => bars.push(Bar { value, calls: 1 }),
        }
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_a_value_that_occurred() {
        let spread = Quantiles::of(&[9, 2, 4, 2]).unwrap();
        assert_eq!((spread.min, spread.median, spread.p99, spread.max), (2, 2, 9, 9));
        assert_eq!(spread.mean, 4.25);
        assert_eq!(Quantiles::of(&[]), None);
    }

    #[test]
    fn bars_count_calls_per_value() {
        assert_eq!(bars(&[3, 1, 3]), [Bar { value: 1, calls: 1 }, Bar { value: 3, calls: 2 }]);
    }
}
