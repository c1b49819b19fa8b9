//! Counts of a whole program: which code was executed how often, what it accessed, and what of that missed the modelled
//! caches.
//!
//! Design constraints:
//!
//! * Whoever watches the program, an emulator or the native engine, tells of each block and access in its order; the
//!   counts are the same then.
//! * A block and most of its accesses are taken in by one call: [`chains`] finds which addresses follow from which.
//! * What cannot change a cache, since it uses the most recently used lines again, is only counted. The rest goes to
//!   the model in batches, on a thread of its own where the host has processors to spare. A thread's model depends on
//!   that thread alone, so that makes no difference to the counts.

mod chains;
mod code;
mod events;
mod feed;
mod front;
mod handle;
mod heap;
mod model;
mod profile;
mod sample;
mod second_level;
mod signal_masks;
mod unconditional_accesses;
mod worker;

pub use chains::{Chain, Chains, Link, Side, chains};
pub use feed::ThreadProfile;
pub use front::Kind;
pub use handle::Handle;
pub use heap::Heap;
pub use profile::{Block, Profile};
pub use second_level::SecondLevel;
pub use unconditional_accesses::{Access, Accesses, Follower, Origin};
