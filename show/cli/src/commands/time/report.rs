//! The values that `lineup time` shows.

use super::interventions::{Plan, SampledCallTimes};
use serde::Serialize;

/// The timing, as shown.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) schema: &'static str,
    pub(crate) command: Vec<String>,
    pub(crate) exit_status: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) elapsed_ns: u64,
    /// The number of processes whose calls were timed.
    pub(crate) processes: u64,
    pub(crate) cycles_per_second: f64,
    /// The stamps' own part of each time: it is subtracted.
    pub(crate) stamp_ns: f64,
    /// The program's added time for each call.
    pub(crate) added_ns: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interventions: Option<Plan>,
    pub(crate) regions: Vec<RegionTimes>,
    pub(crate) notes: Vec<String>,
}

/// The times of a region's calls.
#[derive(Serialize)]
pub(crate) struct RegionTimes {
    pub(crate) name: String,
    pub(crate) calls: u64,
    pub(crate) left: u64,
    pub(crate) inner: u64,
    pub(crate) jumped: u64,
    pub(crate) total_ns: f64,
    pub(crate) share: f64,
    pub(crate) mean_ns: Option<f64>,
    pub(crate) min_ns: Option<f64>,
    pub(crate) p50_ns: Option<f64>,
    pub(crate) p90_ns: Option<f64>,
    pub(crate) p99_ns: Option<f64>,
    pub(crate) p999_ns: Option<f64>,
    pub(crate) max_ns: Option<f64>,
    pub(crate) high_water: Vec<HighWater>,
    pub(crate) buckets: Vec<Bucket>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interventions: Option<SampledCallTimes>,
}

/// A call that took longer than any before.
#[derive(Serialize)]
pub(crate) struct HighWater {
    pub(crate) after_ns: f64,
    pub(crate) ns: f64,
    pub(crate) cpu: Option<u32>,
}

/// Calls by time.
#[derive(Serialize)]
pub(crate) struct Bucket {
    pub(crate) from_ns: f64,
    pub(crate) to_ns: f64,
    pub(crate) calls: u64,
}
