//! Jumps from a region's own code to its beginning, or to another part of it: the compiler splits a function so that
//! its beginning jumps to the rest. These are no calls, and go past the code that counts calls.

use crate::engine::Engine;
use crate::entries::patch::Near;
use crate::machine::{Entries, Host, InnerJumps};
use crate::system::File;
use crate::system::address_tables::Map;
use lineup_recording::native::{Definition, entry, word};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// The most bytes of a function that are searched.
const MOST_LOOKED_AT: u64 = 1 << 20;

/// A place in a region's code, such as its beginning.
#[derive(Clone, Copy)]
pub(crate) struct RegionPoint {
    pub(crate) pc: u64,
    region: u64,
    pub(crate) size: u64,
}

/// Leads such jumps past the entries that are patched.
pub(crate) fn all(engine: &Engine, memory: &File, near: &mut Vec<Near>) {
    let shared = &engine.shared;
    let entries = (shared.word(word::ENTRIES).load(Ordering::Acquire) as usize).min(entry::MOST);
    let patched = (0..entries).filter_map(|number| {
        let read = |field| shared.entry(number, field).load(Ordering::Acquire);
        let (pc, region, size) = (read(entry::ADDRESS), read(entry::REGION), read(entry::SIZE));
        let is_patched = read(entry::ANSWER) == entry::PATCHED && pc != 0;
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

/// The functions of regions that have several.
#[derive(Default)]
pub(crate) struct Functions(Vec<RegionPoint>);

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
