//! Names the target of every access of a recording, and lists the touched cache lines.
//!
//! Design constraints:
//!
//! * Every name carries its [`name::Evidence`]. Accesses without a name are counted as such, never dropped, and a
//!   pointer to a scalar names no member.
//! * The code is analysed once per function, without running it ([`analysis`]); the contents of memory are learned from
//!   the recording in a first pass ([`objects`]) and used in a second.
//! * Calls are streamed: memory grows with distinct program counters, objects, lines and combinations
//!   of bytes, not with accesses. Combinations beyond a limit are folded and counted.
//! * Debug info and code are input: damaged ones lead to fewer names, never to a panic.
//! * One vocabulary for instructions ([`instruction`]), one file per machine.
//! * Nothing is printed; an [`explanation::Explanation`] is a plain value.
//!
//! The sources of an access's name, strongest first: the address lies in a variable; debug info says that the base
//! register holds a pointer to a type, or the pointer was followed there through moves, sums, loads from typed memory,
//! stack slots and calls; an object known at that address from other accesses or from a pointer that held its address;
//! a known distance from the frame or from the thread's base; the range of a thread's stack.

pub mod abstract_value;
pub mod access_context;
pub mod analysis;
pub mod audit;
mod by_address;
mod byte_sums;
pub mod callees;
pub mod catalog;
pub mod congruence;
mod containers;
mod copied;
pub mod error;
pub mod evaluate;
pub mod evidence_source;
pub mod explained;
pub mod explainer;
pub mod explanation;
pub mod fields;
mod fixpoint;
mod functions_by_place;
pub mod globals;
pub mod graph;
pub mod heads;
pub mod image;
pub mod instruction;
pub mod kernel_files;
mod library_code;
pub mod lifetimes;
pub mod linemap;
pub mod live_times;
mod loaded_images;
pub mod located;
mod mappings;
pub mod name;
pub mod namer;
pub mod objects;
pub mod owner;
pub mod patterns;
mod percpu;
pub mod process_summary;
pub mod quantiles;
pub mod recorded;
mod refine;
pub mod region_summary;
pub mod sharing;
pub mod slabs;
pub mod stalls;
pub mod tally;
mod thread_block;
pub mod threads;
mod touched_bytes;
pub mod what_if;

pub use error::ExplainError;
pub use explained::Explained;
pub use explainer::{Explainer, Options};
pub use explanation::Explanation;
pub use recorded::Survey;
