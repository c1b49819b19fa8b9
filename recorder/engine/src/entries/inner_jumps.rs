//! Jumps from a region's own code to its beginning, or to another part of it: the compiler splits a function so that
//! its beginning jumps to the rest. These are no calls, and go past the code that counts calls.

use crate::engine::Engine;
use crate::entries::near_code::Near;
use crate::entries::region_points::RegionPoint;
use crate::machine::{Host, InnerJumps};
use crate::system::File;
use crate::system::address_tables::Map;
use lineup_recording::native::entry;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most bytes of a function that are searched.
const MOST_LOOKED_AT: u64 = 1 << 20;

/// Leads such jumps past the entries that are patched.
pub(crate) fn all(engine: &Engine, memory: &File, near: &mut Vec<Near>) {
    let patched = engine.shared.entries().iter().filter_map(|entry| {
        let read = |word: &AtomicU64| word.load(Ordering::Acquire);
        let (pc, region, size) = (read(&entry.address), read(&entry.region), read(&entry.size));
        let is_patched = read(&entry.answer) == entry::PATCHED && pc != 0;
        is_patched.then_some(RegionPoint { pc, region, size: size.min(MOST_LOOKED_AT) })
    });
    let mut regions: Map<Vec<RegionPoint>> = Map::default();
    patched.for_each(|one| regions.entry(one.region).or_default().push(one));
    for entries in regions.values().filter(|entries| entries.len() > 1) {
        of_region(engine, memory, near, entries);
    }
}

fn of_region(engine: &Engine, memory: &File, near: &mut Vec<Near>, entries: &[RegionPoint]) {
    let is_known =
        |one: &RegionPoint| engine.code.with(|code| code.within.0.iter().any(|known| known.pc == one.pc));
    if entries.iter().all(is_known) {
        return;
    }
    engine.code.with(|code| {
        code.within.0.retain(|known| entries.iter().all(|one| one.pc != known.pc));
        code.within.0.extend(entries);
    });
    Host::lead_within(engine, memory, near, entries);
}
