//! Counts of a whole program: executions of its code, its accesses, and their misses in the modelled caches.
//!
//! Design constraints:
//!
//! * The watcher of the program, an emulator or the native engine, reports each block and access in order; both give
//!   the same counts.
//! * One call reports a block and most of its accesses: [`chains`] finds the addresses that follow from others.
//! * An access that cannot change a cache, since it uses the most recently used lines again, is only counted. The rest
//!   goes to the model in batches, on a thread of its own where the host has processors to spare. A thread's model
//!   depends on that thread alone, so the counts do not depend on where the model runs.

mod chains;
mod code;
mod events;
mod feed;
mod front;
mod handle;
mod heap;
mod lock;
mod model;
mod objects;
mod part;
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
