//! Counts over the calls of a region: lines, bytes, stalls and their quantiles.

pub(crate) mod byte_patterns;
pub(crate) mod byte_sums;
pub(crate) mod line_map;
pub mod process_summary;
pub mod quantiles;
pub mod region_summary;
pub mod stalls;
pub(crate) mod tally;
pub(crate) mod touched_bytes;
