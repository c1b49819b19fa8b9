//! The user's source folder: scratch copies, builds in them, its text, and the compiler as the judge of candidates.

pub mod build;
mod build_environment;
pub(crate) mod build_failure;
pub mod build_system;
mod cargo;
pub mod certificate;
pub mod chases;
mod clean_commands;
mod compiler_calls;
pub mod compilers;
mod copy;
mod declarations;
mod folder_state;
pub mod git;
pub mod judge;
pub mod kernel;
pub mod link;
pub mod meaning;
mod open_files;
mod path_mentions;
pub mod sanitizers;
pub mod scratch;
mod stale_outputs;
pub mod texts;
pub mod tree;

pub use kernel::{configuration as kernel_configuration, kbuild, tree as kernel_tree};
pub use lineup_sources::installed_libclang;
pub use link::{linkers, relink};
