//! Beginnings of functions, and the functions of a region that jump to each other.

use crate::machine::{Entries, Host};
use lineup_recording::native::Definition;
use std::ops::Range;

/// A place in a region's code, such as its beginning.
#[derive(Clone, Copy)]
pub(crate) struct RegionPoint {
    pub(crate) pc: u64,
    pub(super) region: u64,
    pub(crate) size: u64,
}

/// The functions of regions that have several.
#[derive(Default)]
pub(crate) struct Functions(pub(super) Vec<RegionPoint>);

impl Functions {
    /// Whether a block of code of these bytes jumps from a region's own code to a place where it begins.
    pub(crate) fn jumps_within(&self, block: &Definition, target: u64) -> bool {
        let has = |one: &RegionPoint, pc: u64| (one.pc..one.pc + one.size).contains(&pc);
        let is_own = |entry: &RegionPoint| {
            self.0.iter().any(|one| one.region == entry.region && has(one, block.start))
        };
        let is_within = self.0.iter().any(|entry| entry.pc == target && is_own(entry));
        is_within && Host::ends_without_call(&block.code, block.start)
    }

    /// Forgets those in code that is unmapped.
    pub(crate) fn forget(&mut self, range: &Range<u64>) {
        self.0.retain(|one| !range.contains(&one.pc));
    }
}
