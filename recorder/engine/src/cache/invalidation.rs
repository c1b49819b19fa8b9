//! Blocks of code that is gone, replaced, or watched from now on.

use super::block::Block;
use super::blocks::Blocks;
use crate::engine::Engine;
use crate::entries::traps;
use crate::machine::{Gates, Host};
use std::ops::Range;

impl Blocks {
    /// Forgets code that is unmapped: other code may be mapped there later. Memory that the program maps there may be a
    /// copy of it, with patches.
    pub(crate) fn forget(&mut self, engine: &Engine, range: &Range<u64>) {
        self.forget_blocks(engine, range);
        self.entries.retain(|pc| !range.contains(pc));
        let past = self.moved.iter().filter(|(pc, _)| range.contains(pc));
        self.past_moved.extend(past.map(|(pc, to)| (*pc, *to)));
        self.moved.retain(|pc, _| !range.contains(pc));
        self.within.forget(range);
        self.past_patches.extend(self.patches.extract_if(.., |patch| range.contains(&patch.pc)));
        traps::forget(range);
        self.sequences.forget(range);
        engine.shared.forget_entries(range);
    }

    /// Forgets the blocks of code that other memory replaces, which may hold the same code. Links to such a block lead
    /// to the engine from now on, which looks for the new one.
    pub(crate) fn forget_blocks(&mut self, engine: &Engine, range: &Range<u64>) {
        self.mappings.clear();
        let is_gone = |block: &Block| block.low < range.end && range.start < block.end;
        let gone = self.blocks.iter().filter(|(_, block)| is_gone(block));
        let gone: Vec<(u64, Block)> = gone.map(|(pc, block)| (*pc, block.clone())).collect();
        for (pc, block) in &gone {
            self.blocks.remove(pc);
            self.leaves.remove(pc);
            for version in self.versions.remove(pc).into_iter().flatten().chain([block.clone()]) {
                self.places.remove(&version.start);
                self.lead_again(engine, *pc, &version);
            }
        }
        self.forget_beyond(range);
        self.leaves.retain(|pc, _| !range.contains(pc));
    }

    /// From now on a block that begins at an address hands over to the engine first.
    pub(crate) fn watch(&mut self, engine: &Engine, pc: u64) {
        if self.entries.insert(pc)
            && let Some(block) = self.blocks.remove(&pc)
        {
            self.places.remove(&block.start);
            self.lead_again(engine, pc, &block);
        }
    }

    /// Redirects the links to a block to the engine, which looks for the new one.
    pub(super) fn lead_again(&mut self, engine: &Engine, pc: u64, block: &Block) {
        if let Some(again) = self.cache.put(&Host::again(engine.slots, pc)) {
            self.cache.lead(block.start, again);
        }
        if self.targets.is_some()
            && let Some(again) = self.cache.put(&Host::again_from_superblocks(engine.slots, pc))
        {
            self.cache.lead(block.inner, again);
        }
    }
}
