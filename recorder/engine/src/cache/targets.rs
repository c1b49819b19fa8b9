//! Targets of indirect jumps, when all of a run is logged: one table for all threads, by the lowest 16 bits of the
//! target.
//!
//! Each entry is the address of code for one target. The code compares the jump's target with its own, and on a
//! mismatch continues with the code for another target with the same bits. So a thread that reads an entry while it is
//! being changed finds the old code or the new. The last of them all hands over to the engine. Code in the cache gets
//! the table's address from [`crate::machine::Whole`].

use crate::cache::code_memory::Cache;
use crate::machine::{Host, Mark, Translation};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

const PLACES: usize = 1 << 16;

/// The table, and the code of its entries.
pub(crate) struct Targets {
    slots: i32,
    table: u64,
    /// Its code by address, with the target of each; the last entry has none.
    nodes: BTreeMap<u64, Option<u64>>,
}

impl Targets {
    /// `None` without memory.
    pub(crate) fn new(cache: &mut Cache, slots: i32) -> Option<Targets> {
        let table = Host::target_memory(8 * PLACES)? as u64;
        let (code, _) = Host::no_target(slots);
        let node = cache.put(&code)?;
        let targets = Targets { slots, table, nodes: BTreeMap::from([(node, None)]) };
        (0..PLACES as u64).for_each(|place| targets.place(place).store(node, Ordering::Relaxed));
        Some(targets)
    }

    /// Address of the table.
    pub(crate) fn table(&self) -> u64 {
        self.table
    }

    fn place(&self, target: u64) -> &AtomicU64 {
        let at = self.table + 8 * (target & (PLACES as u64 - 1));
        // SAFETY: within the table, which stays as long as the process.
        unsafe { &*(at as *const AtomicU64) }
    }

    /// Jumps to a target lead to code in the cache from now on.
    pub(crate) fn add(&mut self, cache: &mut Cache, target: u64, inner: u64) {
        let place = self.place(target);
        let before = place.load(Ordering::Relaxed);
        let (code, _) = Host::target(self.slots, target, cache.next(), inner, before);
        if let Some(at) = cache.put(&code) {
            place.store(at, Ordering::Release);
            self.nodes.insert(at, Some(target));
        }
    }

    /// The mark of the program's state at a place in the code that the table leads to.
    pub(crate) fn mark_at(&self, address: u64) -> Option<Mark> {
        let (start, target) = self.nodes.range(..=address).next_back()?;
        let (code, marks) = match target {
            Some(target) => Host::target(self.slots, *target, 0, 0, 0),
            None => Host::no_target(self.slots),
        };
        let offset = (address - start) as usize;
        (offset < code.len()).then(|| marks.iter().rev().find(|mark| mark.offset <= offset).copied())?
    }
}
