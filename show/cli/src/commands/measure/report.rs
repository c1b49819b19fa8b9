//! The values that `lineup measure` shows.

use lineup_prove::measure::Measurement;
use lineup_study::interrupt::Interrupted;

/// A measurement and its result.
pub(crate) struct Report {
    pub(crate) command: Vec<String>,
    pub(crate) measurement: Measurement,
    pub(crate) failed_runs: usize,
    pub(crate) interrupted: Option<Interrupted>,
}
