//! Superblocks that go on where others are left to the side.
//!
//! Where a superblock is left so often enough, another is made: of the same code up to there, and then of what comes
//! next. Only the latter gets code of its own, to which the jump leads. It goes on with the record that was begun, so
//! that what is known of registers stays known.

use super::{Block, Blocks};
use crate::engine::Engine;
use crate::machine::Route;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// A superblock that goes on where another is left.
pub(super) struct Continuations {
    /// Where the first of them begins in the program.
    pub(super) root: u64,
    pub(super) route: Route,
    pub(super) block: Block,
}

/// Where a superblock is left to the side.
pub(super) struct Exit {
    /// Where the superblock begins in the program, and behind which parts it turns.
    pub(super) root: u64,
    pub(super) turns: Arc<[u8]>,
    /// Its number.
    pub(super) number: u32,
    /// The part that ends with the jump.
    pub(super) part: u8,
    /// Where the jump's distance stands.
    pub(super) jump: u64,
    /// How often it was seen to be taken.
    pub(super) times: u8,
}

/// An exit is taken so often before a superblock goes on there.
const OFTEN: u8 = 32;
/// Superblocks that go on where others are left, of those that begin at one place, at most.
const MOST_BEYOND: u32 = 32;
/// So much of the memory for code is left for other code.
const LEFT_BYTES: usize = 128 << 20;

impl Blocks {
    /// Whether a link may lead to a block for good: what is left to the side often gets a superblock of its own there.
    pub(super) fn is_decided(&mut self, engine: &Engine, link: u64) -> bool {
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

    /// Makes a superblock that goes on where another is left. `None` when there is no room, or it cannot be.
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

    /// As [`Blocks::forget`], of superblocks that go on where others are left: these give control back as those would.
    pub(super) fn forget_beyond(&mut self, range: &Range<u64>) {
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
