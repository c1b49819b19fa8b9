//! The guest's first file system: an archive in the form newc, built in memory, the same to the byte each time.

mod cpio;
mod entry;
mod libraries;
mod tree;

pub use entry::InitramfsEntry;
pub use libraries::{Needed, needed_by};
pub use tree::{Tree, base};
