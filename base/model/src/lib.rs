//! Lineup's vocabulary.
//!
//! Design constraints:
//!
//! * Plain data and pure functions. No I/O, no dependency, nothing that can fail for a reason outside
//!   its arguments.
//! * Addresses are `u64` for every target: a 32-bit program's addresses are zero-extended.
//! * Two kinds of address occur and never mix silently: *runtime* addresses are those of the
//!   running program; *link* addresses are those in its file. [`image::LoadedImage`] converts.
//! * Units live in names: `_bytes`, `_bits`, `_lines`, `_ns`.
//! * An unknown value is an [`Option`] or an explicit variant, never a zero.

pub mod abi;
pub mod access;
pub mod branch;
pub mod chase;
mod containment;
mod declaration;
pub mod entry_points;
pub mod executable;
pub mod figure;
mod first_names;
pub mod image;
pub mod layout;
mod library;
pub mod line;
pub mod machine;
pub mod object_uses;
pub mod process;
pub mod program;
pub mod region;
pub mod sampling;
mod signal_name;
pub mod spelling;
pub mod types;
pub mod usage;
mod variants;

pub use first_names::first_names;
pub use library::Library;
pub use signal_name::signal_name;
