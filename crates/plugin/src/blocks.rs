//! Blocks and memory instructions as the callbacks see them. The emulator keeps raw pointers to them for
//! as long as it runs, so they are never freed; a block that is translated again is found again.

use crate::isa::Flow;
use crate::tracker::{BlockFacts, Leaving};
use lineup_recording::plan::BlockRoles;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};

/// A function of the C library or the unwinder that the recorder must notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Special {
    /// `setjmp` and its kin: returns a second time.
    SetJump,
    /// Leaves activations without returning from them.
    Leave(Leaving),
    /// Gives back a heap block whose chunk header lies before it (glibc).
    Free,
}

/// A block with what its callback needs.
pub(crate) struct Block {
    pub(crate) facts: BlockFacts,
    pub(crate) instructions: u64,
    /// One x86 string instruction under a repeat prefix, executed once per element.
    pub(crate) repeats: bool,
    /// Region whose entry it starts at.
    pub(crate) entry: Option<u16>,
    pub(crate) special: Option<Special>,
    /// Starts a signal handler.
    pub(crate) handler: bool,
    /// Starts a function that gives heap blocks back.
    pub(crate) frees: bool,
    /// Belongs to such a function.
    pub(crate) is_in_free: bool,
    /// Where it stands among the stubs that lead to the dynamic linker.
    pub(crate) linkage: Linkage,
    /// Its accesses are seen.
    pub(crate) watched: bool,
    /// First addresses of the code granules it lies on.
    pub(crate) granules: Box<[u64]>,
    /// What this run found out about it, as [`BlockRoles`].
    found: AtomicU8,
}

impl Block {
    /// True when its callback has nothing to do while no region is open.
    pub(crate) fn is_ordinary(&self) -> bool {
        self.entry.is_none() && self.special.is_none() && !self.handler && !self.frees
    }

    pub(crate) fn mark(&self, role: BlockRoles) {
        let found = self.found.load(Ordering::Relaxed);
        if found & role.0 == 0 {
            self.found.fetch_or(role.0, Ordering::Relaxed);
        }
    }

    pub(crate) fn found(&self) -> BlockRoles {
        BlockRoles(self.found.load(Ordering::Relaxed))
    }
}

/// What a block is to the dynamic linker's work at the first call of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Linkage {
    /// Nothing.
    None,
    /// A stub of a function: goes on to the common stub until the function is known.
    Stub,
    /// The common stub, which goes on to the linker.
    Common,
}

/// A memory instruction with what its callback needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Site {
    pub(crate) pc: u64,
    /// What the emulator adds to a guest address.
    pub(crate) guest_base: u64,
    /// How control leaves the instruction, and where it would come back to.
    pub(crate) flow: Flow,
    pub(crate) next_pc: u64,
    /// Loads or stores several registers: its pieces are accesses of their own.
    pub(crate) multiple: bool,
    pub(crate) on_stack: bool,
}

/// What tells one translation of a block from another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) instructions: u64,
    pub(crate) watched: bool,
    pub(crate) entry: Option<u16>,
    pub(crate) handler: bool,
}

/// All blocks and sites made so far.
#[derive(Default)]
pub(crate) struct Registry {
    blocks: HashMap<BlockKey, &'static Block>,
    all_blocks: Vec<&'static Block>,
    sites: HashMap<(u64, u64), &'static Site>,
}

impl Registry {
    /// The block with this key, made when there is none.
    pub(crate) fn block(&mut self, key: BlockKey, make: impl FnOnce() -> Block) -> &'static Block {
        self.blocks.entry(key).or_insert_with(|| {
            let block: &'static Block = Box::leak(Box::new(make()));
            self.all_blocks.push(block);
            block
        })
    }

    /// The site of an instruction, made when there is none.
    pub(crate) fn site(&mut self, pc: u64, next_pc: u64, make: impl FnOnce() -> Site) -> &'static Site {
        self.sites.entry((pc, next_pc)).or_insert_with(|| Box::leak(Box::new(make())))
    }

    pub(crate) fn blocks(&self) -> &[&'static Block] {
        &self.all_blocks
    }
}

/// Collects what the constructor of a block needs.
pub(crate) struct BlockParts {
    pub(crate) key: BlockKey,
    pub(crate) flow: Flow,
    pub(crate) repeats: bool,
    pub(crate) special: Option<Special>,
    pub(crate) frees: bool,
    pub(crate) is_in_free: bool,
    pub(crate) linkage: Linkage,
    pub(crate) granules: Vec<u64>,
}

impl BlockParts {
    pub(crate) fn register(self, registry: &mut Registry) -> &'static Block {
        let key = self.key;
        registry.block(key, || Block {
            facts: BlockFacts { start: key.start, end: key.end, flow: self.flow },
            instructions: key.instructions,
            repeats: self.repeats,
            entry: key.entry,
            special: self.special,
            handler: key.handler,
            frees: self.frees,
            is_in_free: self.is_in_free,
            linkage: self.linkage,
            watched: key.watched || self.is_in_free,
            granules: self.granules.into_boxed_slice(),
            found: AtomicU8::new(0),
        })
    }
}
