//! Jumps within a region, past the entries that count its calls.

use crate::engine::Engine;
use crate::entries::near_code::Near;
use crate::entries::region_points::RegionPoint;
use crate::system::File;

/// The part of a machine that handles jumps within a region.
pub(crate) trait InnerJumps {
    /// Leads jumps from one of these functions to another, or to itself, past the patches of the entries: they are no
    /// calls.
    fn lead_within(engine: &Engine, memory: &File, near: &mut Vec<Near>, entries: &[RegionPoint]);
}
