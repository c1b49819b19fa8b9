//! The values that `lineup record --vary` shows.

use crate::kernels::summary::Report;
use serde::Serialize;

/// The printed report.
#[derive(Serialize)]
pub(crate) struct Sweep {
    pub(crate) schema: &'static str,
    pub(crate) variants: Vec<Measured>,
}

/// One variant and its measurements.
#[derive(Serialize)]
pub(crate) struct Measured {
    pub(crate) variant: String,
    #[serde(flatten)]
    pub(crate) report: Report,
}
