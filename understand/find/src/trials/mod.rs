//! Trials of layouts: the windows of the run go through the caches again, with objects or code elsewhere.

mod address_index;
pub(crate) mod cache_configurations;
pub(crate) mod gains;
pub(crate) mod layouts;
pub(crate) mod line_demand;
mod loads_ahead;
pub(crate) mod packed_code;
pub(crate) mod pieces;
pub(crate) mod placement_kinds;
pub(crate) mod placements;
pub(crate) mod replay;
mod use_orders;
