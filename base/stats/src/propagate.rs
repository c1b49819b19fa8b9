//! Quantities worked out from uncertain ones: the error of the result, by two ways.

use crate::error::StatsError;
use crate::expression::Expression;
use crate::interval::{Interval, normal_quantile};
use crate::random::Seed;
use crate::summary::{deviation, mean, quantile_sorted, sorted};
use rand::RngExt;
use std::collections::BTreeMap;

/// A quantity that is not known exactly.
#[derive(Clone, PartialEq, Debug)]
pub enum Uncertain {
    /// A value with its error (one standard deviation), as typed in.
    Typed {
        /// The value.
        value: f64,
        /// Its error.
        error: f64,
    },
    /// Measured values: the quantity is their mean, its error their standard error.
    Measured(Vec<f64>),
}

impl Uncertain {
    fn value(&self) -> f64 {
        match self {
            Uncertain::Typed { value, .. } => *value,
            Uncertain::Measured(values) => mean(values),
        }
    }

    fn error(&self) -> f64 {
        match self {
            Uncertain::Typed { error, .. } => *error,
            Uncertain::Measured(values) => deviation(values) / (values.len() as f64).sqrt(),
        }
    }

    /// One draw: normal around a typed value, the mean of a resample of measured ones.
    fn draw(&self, random: &mut impl rand::Rng) -> f64 {
        match self {
            Uncertain::Typed { value, error } => {
                let u = random.random::<f64>().clamp(1e-16, 1.0 - 1e-16);
                value + error * normal_quantile(u)
            }
            Uncertain::Measured(values) => {
                let total: f64 =
                    (0..values.len()).filter_map(|_| values.get(random.random_range(0..values.len()))).sum();
                total / values.len() as f64
            }
        }
    }
}

/// A derived quantity with its error by two ways.
#[derive(Clone, PartialEq, Debug)]
pub struct Derived {
    /// The value.
    pub value: f64,
    /// Its error by linear propagation: √Σ(∂f/∂xᵢ·σᵢ)², the inputs taken as independent.
    pub error: f64,
    /// The share of the squared error that each input contributes; shares add to 1, sorted by name.
    pub shares: Vec<(String, f64)>,
    /// Standard deviation of the result over resamples.
    pub resampled_error: f64,
    /// Median of the result over resamples.
    pub resampled_median: f64,
    /// The central 95 % of the result over resamples.
    pub resampled_interval: Interval,
}

/// The largest difference between the two methods, as a share of the error, at which only one is shown.
const AGREEMENT: f64 = 0.1;

/// The number of resamples.
const RESAMPLES: usize = 20_000;

impl Derived {
    /// True when linear propagation and resampling disagree: their errors differ by a tenth, or the interval is
    /// lopsided by as much.
    pub fn ways_disagree(&self) -> bool {
        let half = 1.96 * self.error;
        let off = |a: f64, b: f64| (a - b).abs() > AGREEMENT * self.error.abs().max(f64::MIN_POSITIVE) * 1.96;
        let errors = (self.resampled_error - self.error).abs() > AGREEMENT * self.error;
        errors
            || off(self.resampled_interval.low, self.value - half)
            || off(self.resampled_interval.high, self.value + half)
    }
}

/// The reason a quantity could not be derived.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum DeriveError {
    /// A name in the expression has no value.
    #[error("{name} has no value; give {name}=VALUE±ERROR")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The result is not a number, such as a division by zero.
    #[error("the result is not a finite number; is there a division by zero or a root of a negative?")]
    NotFinite,
    /// An input cannot be used.
    #[error("{name}: {source}")]
    Input {
        /// The name.
        name: String,
        /// The error.
        source: StatsError,
    },
}

/// Works out an expression over uncertain inputs.
///
/// # Errors
/// When a name has no value, an input is not finite or has fewer than two measured values, or the
/// result is not finite.
pub fn derive(
    expression: &Expression,
    inputs: &BTreeMap<String, Uncertain>,
    seed: Seed,
) -> Result<Derived, DeriveError> {
    let mut used = BTreeMap::new();
    for name in expression.names() {
        let input = inputs.get(&name).ok_or_else(|| DeriveError::Unknown { name: name.clone() })?;
        check(input).map_err(|source| DeriveError::Input { name: name.clone(), source })?;
        used.insert(name, input);
    }
    let values = used.iter().map(|(name, input)| (name.clone(), input.value())).collect();
    let result = expression.derivatives(&values).ok_or(DeriveError::NotFinite)?;
    let squares: Vec<(String, f64)> = used
        .iter()
        .map(|(name, input)| {
            let slope = result.slopes.get(name).copied().unwrap_or_default();
            (name.clone(), (slope * input.error()).powi(2))
        })
        .collect();
    let total: f64 = squares.iter().map(|(_, square)| square).sum();
    if !result.value.is_finite() || !total.is_finite() {
        return Err(DeriveError::NotFinite);
    }
    let drawn = resample(expression, &used, seed);
    if drawn.len() < RESAMPLES / 2 {
        return Err(DeriveError::NotFinite);
    }
    let shares =
        squares.into_iter().map(|(name, square)| (name, if total > 0.0 { square / total } else { 0.0 }));
    Ok(Derived {
        value: result.value,
        error: total.sqrt(),
        shares: shares.collect(),
        resampled_error: deviation(&drawn),
        resampled_median: quantile_sorted(&drawn, 0.5),
        resampled_interval: Interval {
            low: quantile_sorted(&drawn, 0.025),
            high: quantile_sorted(&drawn, 0.975),
            level: 0.95,
        },
    })
}

fn check(input: &Uncertain) -> Result<(), StatsError> {
    match input {
        Uncertain::Typed { value, error } => crate::error::require("a typed value", &[*value, *error], 2),
        Uncertain::Measured(values) => crate::error::require("a measured value", values, 2),
    }
}

/// The finite results over resamples, sorted.
fn resample(expression: &Expression, used: &BTreeMap<String, &Uncertain>, seed: Seed) -> Vec<f64> {
    let mut random = seed.generator();
    let results: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let values = used.iter().map(|(name, input)| (name.clone(), input.draw(&mut random))).collect();
            expression.value(&values).filter(|value| value.is_finite())
        })
        .collect();
    sorted(&results)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(pairs: &[(&str, f64, f64)]) -> BTreeMap<String, Uncertain> {
        let input = |(name, value, error): &(&str, f64, f64)| {
            ((*name).to_owned(), Uncertain::Typed { value: *value, error: *error })
        };
        pairs.iter().map(input).collect()
    }

    fn run(text: &str, inputs: &BTreeMap<String, Uncertain>) -> Result<Derived, DeriveError> {
        derive(&Expression::parse(text).unwrap(), inputs, Seed(1))
    }

    /// The cost of two markers as a share of a system call under memory pressure, from the kernel's
    /// immediate-values documentation of 2008: 0.0672 ± 0.0070.
    #[test]
    fn two_markers_cost_6_72_percent_of_a_system_call() {
        let inputs = typed(&[("mem", 644.09, 11.39), ("hit", 88.16, 1.35), ("path", 16535.11, 1677.71)]);
        let derived = run("2*(mem-hit)/path", &inputs).unwrap();
        assert_eq!(format!("{:.4} ± {:.4}", derived.value, derived.error), "0.0672 ± 0.0070");
        let path = derived.shares.iter().find(|(name, _)| name == "path").unwrap();
        assert!(path.1 > 0.95);
        let step = run("mem-hit", &inputs).unwrap();
        // The text prints 11.46 for √(11.39² + 1.35²) = 11.4697.
        assert!((step.value - 555.93).abs() < 1e-9 && (step.error - 11.4697).abs() < 1e-4);
        let path = typed(&[("with", 17113.33, 1655.92), ("stamps", 578.22, 269.51)]);
        let path = run("with-stamps", &path).unwrap();
        assert_eq!(format!("{:.2} ± {:.2}", path.value, path.error), "16535.11 ± 1677.71");
    }

    #[test]
    fn both_ways_agree_on_small_errors_and_disagree_on_large_ones() {
        let small = run("a/b", &typed(&[("a", 10.0, 0.1), ("b", 5.0, 0.05)])).unwrap();
        assert!(!small.ways_disagree(), "{small:?}");
        let large = run("a/b", &typed(&[("a", 10.0, 0.1), ("b", 5.0, 1.5)])).unwrap();
        assert!(large.ways_disagree());
        assert!(large.resampled_interval.high - large.value > large.value - large.resampled_interval.low);
    }

    #[test]
    fn measured_values_use_their_standard_error() {
        let values: Vec<f64> = (0..25).map(|i| 100.0 + f64::from(i % 5)).collect();
        let inputs = BTreeMap::from([("x".to_owned(), Uncertain::Measured(values.clone()))]);
        let derived = run("2*x", &inputs).unwrap();
        assert!((derived.value - 204.0).abs() < 1e-9);
        assert!((derived.error - 2.0 * deviation(&values) / 5.0).abs() < 1e-9);
        assert!((derived.resampled_error / derived.error - 1.0).abs() < 0.05);
    }

    #[test]
    fn what_cannot_be_derived_is_named() {
        assert_eq!(run("x", &BTreeMap::new()), Err(DeriveError::Unknown { name: "x".into() }));
        assert_eq!(run("a/0", &typed(&[("a", 1.0, 0.1)])), Err(DeriveError::NotFinite));
        assert!(matches!(run("a", &typed(&[("a", f64::NAN, 0.1)])), Err(DeriveError::Input { .. })));
    }

    /// A quantity of 10 ± 1 whose resampling gave these.
    fn resampled(error: f64, low: f64, high: f64) -> Derived {
        Derived {
            value: 10.0,
            error: 1.0,
            shares: Vec::new(),
            resampled_error: error,
            resampled_median: 10.0,
            resampled_interval: Interval { low, high, level: 0.95 },
        }
    }

    #[test]
    fn the_ways_disagree_from_a_tenth_on() {
        assert!(!resampled(1.0, 8.04, 11.96).ways_disagree());
        assert!(!resampled(1.09, 7.9, 12.1).ways_disagree());
        assert!(resampled(1.11, 8.04, 11.96).ways_disagree());
        assert!(resampled(0.89, 8.04, 11.96).ways_disagree());
        assert!(resampled(1.0, 7.8, 11.96).ways_disagree());
        assert!(resampled(1.0, 8.04, 12.2).ways_disagree());
    }
}
