//! The calls of a region, parted into those of the tail and the usual ones.

use crate::metric::Metric;
use crate::run::{Measured, Run};
use serde::Serialize;

/// Calls of a region by whether they are in the tail, as positions in the run.
pub(crate) struct Split {
    pub(crate) usual: Vec<usize>,
    pub(crate) tail: Vec<usize>,
}

/// The mean of a value over calls; 0 of none.
pub(super) fn mean(run: &Run, positions: &[usize], value: impl Fn(&Measured) -> f64) -> f64 {
    let sum: f64 = positions.iter().map(|position| value(&run.measured[*position])).sum();
    if positions.is_empty() { 0.0 } else { sum / positions.len() as f64 }
}

/// A count in calls of both kinds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Means {
    /// The count.
    pub metric: Metric,
    /// Mean over usual calls.
    pub usual: f64,
    /// Mean over calls of the tail.
    pub tail: f64,
}

/// The means of a count over both parts.
pub(super) fn means(run: &Run, split: &Split, metric: Metric) -> Means {
    let of = |positions: &[usize]| mean(run, positions, |measured| metric.of(&measured.call) as f64);
    Means { metric, usual: of(&split.usual), tail: of(&split.tail) }
}
