//! Runs for comparisons: timed variants, their placements in memory, a load beside them, and costs of this machine.

pub mod background;
pub mod bolt;
pub mod cycles;
mod disturbed;
pub mod heap_pools;
pub mod page_costs;
pub mod placements;
pub mod printed;
pub mod shuffle;
pub mod timing;
pub mod transfers;
pub mod trial;
