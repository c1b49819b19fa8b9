//! Where jumps lead whose targets are not known before, when all of a run is logged: one table for all threads, by the
//! lowest 16 bits of the target.
//!
//! At each place stands the address of code that compares the target with the one that it is for, and goes on with another
//! that has the same bits where it is not the same. So a thread that reads a place while it is being changed finds the old
//! code or the new. The last of them all hands over to the engine. The table lies in the lowest 2 GB, so that it is named
//! without a register.

use crate::assembly::{Address, Code, JRCXZ, RCX, RDX};
use crate::cache::Cache;
use crate::slots::{at, reason};
use crate::system;
use crate::translate::{Held, LOG, Mark};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

const PLACES: usize = 1 << 16;

/// The table, and the code that it leads to.
pub(crate) struct Targets {
    slots: i32,
    table: u64,
    /// Its code by where that begins, with the target that it is for; none is for the last of all.
    nodes: BTreeMap<u64, Option<u64>>,
}

impl Targets {
    /// `None` without memory.
    pub(crate) fn new(cache: &mut Cache, slots: i32) -> Option<Targets> {
        let table = system::low_memory(8 * PLACES)? as u64;
        let (code, _) = last(slots);
        let node = cache.put(&code)?;
        let targets = Targets { slots, table, nodes: BTreeMap::from([(node, None)]) };
        (0..PLACES as u64).for_each(|place| targets.place(place).store(node, Ordering::Relaxed));
        Some(targets)
    }

    /// Where the table lies.
    pub(crate) fn table(&self) -> u32 {
        self.table as u32
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
        let (code, _) = node(self.slots, target, cache.next(), inner, before);
        if let Some(at) = cache.put(&code) {
            place.store(at, Ordering::Release);
            self.nodes.insert(at, Some(target));
        }
    }

    /// The mark that tells where the program is at a place in the code that the table leads to.
    pub(crate) fn mark_at(&self, address: u64) -> Option<Mark> {
        let (start, target) = self.nodes.range(..=address).next_back()?;
        let (code, marks) = match target {
            Some(target) => node(self.slots, *target, 0, 0, 0),
            None => last(self.slots),
        };
        let offset = (address - start) as usize;
        (offset < code.len()).then(|| marks.iter().rev().find(|mark| mark.offset <= offset).copied())?
    }
}

/// Goes on at `inner` when `rcx` is the target, else at `next`.
fn node(slots: i32, target: u64, at: u64, inner: u64, next: u64) -> (Vec<u8>, Vec<Mark>) {
    let mut code = Code::default();
    let mut marks = vec![Mark { offset: 0, pc: None, held: Held::Target(0) }];
    let add = |code: &mut Code, value: u64| {
        code.move_wide(RDX, value);
        let sum = Address { base: Some(RCX), index: Some((RDX, 1)), distance: 0 };
        code.lea(RCX, sum);
    };
    add(&mut code, target.wrapping_neg());
    marks.push(Mark { offset: code.here(), pc: None, held: Held::Target(target.cast_signed()) });
    let hit = code.jump_short(JRCXZ);
    add(&mut code, target);
    marks.push(Mark { offset: code.here(), pc: None, held: Held::Target(0) });
    let miss = code.jump_always_to_side();
    code.land_short(hit);
    // From here on `rcx` is the program's, or about to be.
    marks.push(Mark { offset: code.here(), pc: Some(target), held: Held::Target(0) });
    code.load_slot(RCX, slots + at!(counter));
    code.load_slot(RDX, slots + at!(second));
    let jump = code.jump_always_to_side();
    for (hole, to) in [(miss, next), (jump, inner)] {
        let distance = to.wrapping_sub(at + hole as u64 + 4) as u32;
        code.bytes[hole..hole + 4].copy_from_slice(&distance.to_le_bytes());
    }
    (code.bytes, marks)
}

/// Hands over to the engine, which looks for the target.
fn last(slots: i32) -> (Vec<u8>, Vec<Mark>) {
    let mut code = Code::default();
    let mut marks = vec![Mark { offset: 0, pc: None, held: Held::Target(0) }];
    code.store_slot(slots + at!(pc), RCX);
    code.load_slot(RCX, slots + at!(counter));
    marks.push(Mark { offset: code.here(), pc: None, held: Held::Missed });
    code.load_slot(RDX, slots + at!(second));
    code.store_slot(slots + at!(log), LOG);
    code.load_slot(LOG, slots + at!(own.logged));
    marks.push(Mark { offset: code.here(), pc: None, held: Held::Nothing });
    code.store_slot_value(slots + at!(link), 0);
    code.store_slot_value(slots + at!(reason), reason::GO);
    code.jump_to_slot(slots + at!(gate));
    (code.bytes, marks)
}
