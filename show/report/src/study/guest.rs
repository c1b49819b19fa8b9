//! The comparison of two kernels that were built and booted, apart from lines.

use super::setting::Fact;
use serde::Serialize;

/// Two kernels side by side.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GuestComparison {
    /// The compared parts of the guests' runs, with the results.
    pub compared: Vec<Fact>,
    /// Lines of the types that change.
    pub types: Vec<TypeLines>,
    /// The costs of calls by the recorder's processor model.
    pub costs: Vec<RegionCosts>,
}

/// Lines of one type that a call of a region needs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TypeLines {
    /// The type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The region's function.
    pub region: String,
    /// Recorded, in the unchanged kernel.
    pub before: f64,
    /// The prediction for the changed one.
    pub predicted: f64,
    /// Recorded in the changed one.
    pub after: f64,
}

/// The costs of a region's calls.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RegionCosts {
    /// The region's function.
    pub region: String,
    /// Calls that were measured, in the unchanged kernel.
    pub calls_before: u64,
    /// The same in the changed one.
    pub calls_after: u64,
    /// Instructions, misses and stalls, each as a mean over these calls.
    pub means: Vec<MeanCost>,
}

/// One cost.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MeanCost {
    /// Its name.
    pub name: String,
    /// Mean per call, in the unchanged kernel.
    pub before: f64,
    /// Mean per call, in the changed one.
    pub after: f64,
    /// Ends of the interval of the difference at 95 %, calls taken as independent of each other; `None` when there are
    /// too few.
    pub difference: Option<(f64, f64)>,
}

impl MeanCost {
    /// From one number per call.
    pub fn of(name: &str, before: &[f64], after: &[f64]) -> Option<MeanCost> {
        let (mean_before, error_before) = mean_and_error(before)?;
        let (mean_after, error_after) = mean_and_error(after)?;
        let error = error_before.zip(error_after).map(|(one, other)| one.hypot(other));
        let change = mean_after - mean_before;
        Some(MeanCost {
            name: name.into(),
            before: mean_before,
            after: mean_after,
            difference: error.map(|error| (change - NORMAL_95 * error, change + NORMAL_95 * error)),
        })
    }
}

/// The normal distribution's 97.5 % point.
const NORMAL_95: f64 = 1.96;

/// The mean, and its standard error where there are enough values for one.
fn mean_and_error(values: &[f64]) -> Option<(f64, Option<f64>)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (count > 0.0).then(|| (mean, (count >= 10.0).then(|| (squares / (count - 1.0) / count).sqrt())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_an_interval_where_there_are_calls_enough() {
        let few = MeanCost::of("x", &[1.0, 3.0], &[1.0, 1.0]).expect("means");
        assert_eq!((few.before, few.after, few.difference), (2.0, 1.0, None));
        let (before, after) = ([[1.0, 3.0]; 50].concat(), [[0.0, 2.0]; 50].concat());
        let (low, high) = MeanCost::of("x", &before, &after).and_then(|cost| cost.difference).expect("many");
        // Deviation 1 (n−1: 1.005), 100 calls each: the error is 0.142.
        assert!((low + 1.0 + 1.96 * 0.14213).abs() < 1e-3 && (high + 1.0 - 1.96 * 0.14213).abs() < 1e-3);
        assert_eq!(MeanCost::of("x", &[], &[1.0]), None);
    }
}
