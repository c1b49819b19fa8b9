//! Superblocks that continue at the side exits of others.
//!
//! When a side exit is taken often enough, the engine makes another superblock: with the same code up to the exit, and
//! then the code that follows. Only the latter gets new code, to which the jump leads. It continues the record, so that
//! knowledge of registers is kept.

use super::block::{Block, Continuations, Exit};
use super::blocks::Blocks;
use crate::engine::Engine;
use crate::machine::Route;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The number of times an exit is taken before it gets a superblock.
const OFTEN: u8 = 32;
/// The most such superblocks for one place of beginning.
const MOST_BEYOND: u32 = 32;
/// The part of the cache that is left for other code.
const LEFT_BYTES: usize = 128 << 20;

impl Blocks {
    /// Whether a link may lead to a block for good: frequent side exits get a superblock of their own.
    pub(crate) fn is_decided(&mut self, engine: &Engine, link: u64) -> bool {
        if let Some(exit) = self.exits.get_mut(&link) {
            exit.times += 1;
            if exit.times < OFTEN {
                return false;
            }
        }
        if let Some(exit) = self.exits.remove(&link)
            && let Some(block) = self.go_beyond(engine, &exit)
        {
            self.cache.link(exit.jump, block.inner);
        }
        true
    }

    /// Makes a superblock that continues where another is left. `None` when there is no room, or it cannot be made.
    fn go_beyond(&mut self, engine: &Engine, exit: &Exit) -> Option<Block> {
        let count = self.beyond_of.entry(exit.root).or_default();
        if *count >= MOST_BEYOND || self.cache.left_bytes() < LEFT_BYTES {
            return None;
        }
        *count += 1;
        let turns = [&exit.turns[..], &[exit.part]].concat();
        let route = Route { turns, before: exit.number };
        let (bytes, is_fixed) = self.bytes(exit.root)?;
        let at = self.cache.next();
        let mut translated = self.translated(engine, &bytes, exit.root, is_fixed, at, &route)?;
        let block = self.put(engine, &mut translated, exit.root, &route, None)?;
        self.beyond.insert(block.start, Continuations { root: exit.root, route, block: block.clone() });
        Some(block)
    }

    /// As [`Blocks::forget`], for superblocks that continue where others are left: these give control back as those
    /// would.
    pub(crate) fn forget_beyond(&mut self, range: &Range<u64>) {
        let gone = |beyond: &Continuations| {
            let is_root_gone = !self.blocks.contains_key(&beyond.root);
            is_root_gone || beyond.block.low < range.end && range.start < beyond.block.end
        };
        let (gone, kept) = std::mem::take(&mut self.beyond).into_iter().partition(|(_, beyond)| gone(beyond));
        self.beyond = kept;
        let gone: BTreeMap<u64, Continuations> = gone;
        for (start, beyond) in &gone {
            self.places.remove(start);
            self.beyond_of.remove(&beyond.root);
            self.cache.lead(beyond.block.inner, *start);
        }
        let of_beyond = self.beyond.values().map(|beyond| beyond.block.number);
        let there: BTreeSet<u32> = self.blocks.values().map(|block| block.number).chain(of_beyond).collect();
        self.exits.retain(|_, exit| there.contains(&exit.number));
    }
}
