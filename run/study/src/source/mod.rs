//! The user's source folder: scratch copies, builds in them, its text, and the compiler as the judge of candidates.

mod archives;
pub mod build;
pub mod build_system;
pub mod certificate;
pub mod chases;
mod cleaning;
mod compiler_calls;
pub mod compilers;
mod copy;
mod declarations;
mod ending;
pub mod judge;
pub mod kbuild;
pub mod kernel_configuration;
mod kernel_copy;
pub mod kernel_tree;
mod link_words;
pub mod linkers;
pub mod meaning;
mod mentions;
mod open_files;
pub mod relink;
pub mod scratch;
mod stale;
pub mod texts;
pub mod tree;
mod untouched;

pub use lineup_sources::installed_libclang;
