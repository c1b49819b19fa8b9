//! A block in the cache, and superblocks that continue where others are left.

use crate::machine::Route;
use std::sync::Arc;

/// A block in the cache.
#[derive(Clone)]
pub(crate) struct Block {
    pub(crate) start: u64,
    pub(crate) body: u64,
    /// The address to continue at when no restartable sequence begins.
    pub(crate) plain: u64,
    /// The address that other blocks jump to.
    pub(crate) inner: u64,
    /// The lowest address of its code in the program.
    pub(super) low: u64,
    /// The number of its definition.
    pub(super) number: u32,
    /// End of its code in the program.
    pub(super) end: u64,
    /// For code that the program may change: the bytes that the block was translated from. Such a block hands over to
    /// the engine first.
    pub(super) made_from: Option<Arc<[u8]>>,
}

/// Superblocks that continue where another is left.
pub(crate) struct Continuations {
    /// Address in the program where the first of them begins.
    pub(crate) root: u64,
    pub(crate) route: Route,
    pub(crate) block: Block,
}

/// A side exit of a superblock.
pub(crate) struct Exit {
    /// The superblock's address in the program, and the parts after which it turns.
    pub(crate) root: u64,
    pub(crate) turns: Arc<[u8]>,
    /// Its number.
    pub(crate) number: u32,
    /// The part that ends with the jump.
    pub(crate) part: u8,
    /// Place of the jump's distance.
    pub(crate) jump: u64,
    /// The number of times it was seen to be taken.
    pub(crate) times: u8,
}
