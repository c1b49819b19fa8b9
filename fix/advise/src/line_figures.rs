//! Figures that every proposal has: lines per call, sizes, and the extent of its check.

use lineup_model::region::RegionId;
use serde::Serialize;

/// Expected lines per call of one region, at one line size under one data model.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RegionLines {
    /// The region's number.
    #[serde(skip)]
    pub id: RegionId,
    /// The region's function.
    pub region: String,
    /// `LP64` or `ILP32`.
    pub data_model: &'static str,
    /// Line size in bytes.
    pub line_bytes: u64,
    /// Lines per call of the objects concerned before; `None` when not observed (addresses of variables
    /// under the data model that was not recorded).
    pub before: Option<f64>,
    /// Lines per call with the proposal.
    pub after: f64,
}

impl RegionLines {
    /// Lines per call saved; 0 when the number before is unknown.
    pub fn gain(&self) -> f64 {
        self.before.map_or(0.0, |before| before - self.after)
    }
}

/// Size of a type under one data model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct SizeChange {
    /// `LP64` or `ILP32`.
    pub data_model: &'static str,
    /// Size before, in bytes.
    pub before_bytes: u64,
    /// Size after, in bytes.
    pub after_bytes: u64,
}

/// The extent of a proposal's check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The compiler gave the predicted offsets, under every data model named.
    Compiled,
    /// The compiler gave the predicted offsets of the recorded data model; others are predicted.
    CompiledRecordedOnly,
    /// Nothing was compiled.
    Predicted,
}
