//! Blocks and memory instructions as the callbacks see them. The emulator keeps raw pointers to them, so they
//! are never freed. A repeated translation of a block yields the same value.

use crate::flow::Flow;
use crate::tracker::{BlockFacts, Leaving};
use lineup_recording::plan::BlockRoles;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};

/// A function of the C library or the unwinder that the recorder must notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// `setjmp` and its kin: returns a second time.
    SetJump,
    /// Leaves activations without returning from them.
    Leave(Leaving),
    /// Gives back a heap block whose chunk header lies before it (glibc).
    Free,
}

/// A block with the data of its callback.
pub struct Block {
    /// The tracker's facts of it.
    pub facts: BlockFacts,
    /// Instructions in it.
    pub instructions: u64,
    /// One x86 string instruction under a repeat prefix, executed once per element.
    pub repeats: bool,
    /// Region whose entry it starts at.
    pub entry: Option<u16>,
    /// The special function that begins with it, if any.
    pub special: Option<Special>,
    /// Starts a signal handler.
    pub handler: bool,
    /// Starts a function that gives heap blocks back.
    pub frees: bool,
    /// Belongs to such a function.
    pub is_in_free: bool,
    /// Its role among the stubs that lead to the dynamic linker.
    pub linkage: Linkage,
    /// Its accesses are seen.
    pub watched: bool,
    /// First addresses of the code granules it lies on.
    pub granules: Box<[u64]>,
    /// This run's findings about it, as [`BlockRoles`].
    found: AtomicU8,
}

impl Block {
    /// True when its callback has no work while no region is open.
    pub fn is_ordinary(&self) -> bool {
        self.entry.is_none() && self.special.is_none() && !self.handler && !self.frees
    }

    /// Notes this run's findings about it.
    pub fn mark(&self, role: BlockRoles) {
        let found = self.found.load(Ordering::Relaxed);
        if found & role.0 == 0 {
            self.found.fetch_or(role.0, Ordering::Relaxed);
        }
    }

    /// This run's findings about it.
    pub fn found(&self) -> BlockRoles {
        BlockRoles(self.found.load(Ordering::Relaxed))
    }
}

/// The role of a block in the dynamic linker's work at the first call of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Linkage {
    /// None.
    None,
    /// A stub of a function: continues to the common stub until the function is known.
    Stub,
    /// The common stub, which continues to the linker.
    Common,
}

/// A memory instruction with the data of its callback.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Site {
    /// Address of the instruction.
    pub pc: u64,
    /// The emulator's offset from a guest address to a host address.
    pub guest_base: u64,
    /// The way that control leaves the instruction, and the address that it would return to.
    pub flow: Flow,
    /// Address of the next instruction.
    pub next_pc: u64,
    /// Loads or stores several registers: its pieces are accesses of their own.
    pub multiple: bool,
    /// It addresses memory through the stack pointer.
    pub on_stack: bool,
}

/// The identity of a translation of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// Its first address.
    pub start: u64,
    /// Address after its end.
    pub end: u64,
    /// Instructions in it.
    pub instructions: u64,
    /// Its accesses are seen.
    pub watched: bool,
    /// Region whose entry it starts at.
    pub entry: Option<u16>,
    /// Starts a signal handler.
    pub handler: bool,
}

/// All blocks and sites made so far.
#[derive(Default)]
pub struct Registry {
    blocks: HashMap<BlockKey, &'static Block>,
    all_blocks: Vec<&'static Block>,
    sites: HashMap<(u64, u64), &'static Site>,
}

impl Registry {
    /// The block with this key, made if it does not exist.
    pub fn block(&mut self, key: BlockKey, make: impl FnOnce() -> Block) -> &'static Block {
        self.blocks.entry(key).or_insert_with(|| {
            let block: &'static Block = Box::leak(Box::new(make()));
            self.all_blocks.push(block);
            block
        })
    }

    /// The site of an instruction, made if it does not exist.
    pub fn site(&mut self, pc: u64, next_pc: u64, make: impl FnOnce() -> Site) -> &'static Site {
        self.sites.entry((pc, next_pc)).or_insert_with(|| Box::leak(Box::new(make())))
    }

    /// All blocks, in the order in which they were made.
    pub fn blocks(&self) -> &[&'static Block] {
        &self.all_blocks
    }
}

/// Collects the data of a block for its constructor.
pub struct BlockParts {
    /// Its identity.
    pub key: BlockKey,
    /// The way that control leaves it.
    pub flow: Flow,
    /// One string instruction that repeats.
    pub repeats: bool,
    /// The special function that begins with it, if any.
    pub special: Option<Special>,
    /// Starts a function that gives heap blocks back.
    pub frees: bool,
    /// Belongs to such a function.
    pub is_in_free: bool,
    /// Its role among the stubs that lead to the dynamic linker.
    pub linkage: Linkage,
    /// First addresses of the code granules it lies on.
    pub granules: Vec<u64>,
}

impl BlockParts {
    /// The block of these parts, made if it does not exist.
    pub fn register(self, registry: &mut Registry) -> &'static Block {
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
