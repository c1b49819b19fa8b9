//! A set-associative cache model.
//!
//! Design constraints:
//!
//! * Pure: no I/O. The description of the host's caches comes in as the text of the kernel's files.
//! * [`Cache::touch`] runs for every access of an emulated program, so the most recently used way of
//!   a set is tried first and a hit there changes nothing.
//! * The rules are those of valgrind's cache simulation, so that the two can be compared on one address stream: least
//!   recently used is replaced, a store allocates as a load does, an access across two lines misses at most once, the
//!   second level sees only misses of the first.
//!
//! ```
//! use lineup_cache::{Cache, CacheSpec};
//! let spec: CacheSpec = "l1d=32K,8,64".parse()?;
//! let mut cache = Cache::new(&spec);
//! assert!(!cache.access(0x1000, 8));
//! assert!(cache.access(0x1038, 8));
//! # Ok::<(), lineup_cache::SpecError>(())
//! ```

mod directory;
mod host;
mod model;
mod pressure;
mod recent;
mod spec;
mod tlb;
mod varied;

pub use directory::Directory;
pub use host::{HostCache, host_specs};
pub use model::{Cache, Hierarchy, Missed};
pub use pressure::expected_misses;
pub use recent::{Lines, MostRecent};
pub use spec::{CacheLevel, CacheSpec, SpecError};
pub use tlb::{PageBytes, Tlb};
pub use varied::{Replacement, VariedHierarchy};
