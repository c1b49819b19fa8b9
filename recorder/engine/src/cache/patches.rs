//! Patches of the program, and copies of them that the program made. Its code is translated as if it were not patched.

use crate::cache::blocks::Blocks;
use crate::engine::Engine;
use crate::entries::patch::Patch;
use std::ops::Range;

impl Blocks {
    /// The unpatched code from `pc` on. A program may have copied it into other memory, with the patches, or may have
    /// put other code in its place.
    pub(crate) fn unpatch(&self, pc: u64, bytes: &mut [u8]) {
        self.patches.iter().chain(&self.past_patches).for_each(|patch| patch.take_out(pc, bytes));
    }

    /// Keeps patches that are about to be written.
    pub(crate) fn keep_patches(&mut self, mut patches: Vec<Patch>) {
        self.past_patches.retain(|past| patches.iter().all(|patch| patch.pc != past.pc));
        self.patches.append(&mut patches);
    }

    /// Marks the entries in a range as gone: their redirection is no longer in memory.
    pub(crate) fn tell_replaced(&mut self, engine: &Engine, range: &Range<u64>) {
        let is_gone = |patch: &mut Patch| range.contains(&patch.pc) && !patch.stands();
        for patch in self.patches.extract_if(.., is_gone) {
            if self.entries.contains(&patch.pc) {
                engine.shared.note(&format!(
                    "the program put other code at {:#x}, where a watched function begins: calls that no recorded call makes \
                     are not recorded from there on",
                    patch.pc
                ));
            }
            self.past_patches.push(patch);
        }
    }

    /// A patch was taken out. The program may have made a copy of it before.
    pub(crate) fn take_out_patch(&mut self, at: usize) {
        self.past_patches.push(self.patches.remove(at));
    }

    /// Address where the program continues natively: past the jump that leads here, where one is.
    pub(crate) fn natively(&self, pc: u64) -> u64 {
        let stands = |patch: &Patch| patch.range().contains(&pc) && patch.stands();
        let moved = if self.patches.iter().any(stands) {
            self.moved.get(&pc)
        } else if self.past_patches.iter().any(stands) {
            self.past_moved.get(&pc).or_else(|| self.moved.get(&pc))
        } else {
            None
        };
        moved.copied().unwrap_or(pc)
    }
}
