//! Names the target of every access of a recording, and lists the touched cache lines.
//!
//! Design constraints:
//!
//! * Every name carries its [`name::Evidence`]. Accesses without a name are counted as such, never dropped, and a
//!   pointer to a scalar names no member.
//! * The code is analysed once per function, without running it (`code`); the contents of memory are learned from
//!   the recording in a first pass (`memory`) and used in a second.
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

pub mod audit;
mod code;
pub mod error;
pub mod evidence_source;
pub mod explained;
pub mod explainer;
pub mod explanation;
mod images;
mod memory;
mod naming;
pub mod recorded;
mod summary;
pub mod threads;
mod types;
pub mod what_if;

pub use code::{abstract_value, instruction, variable_locations};
pub use error::ExplainError;
pub use explained::Explained;
pub use explainer::{Explainer, Options};
pub use explanation::Explanation;
pub use images::{image, kernel_files};
pub use memory::slabs;
pub use naming::{access_context, name, namer, owner};
pub use recorded::Survey;
pub use summary::{process_summary, quantiles, region_summary, stalls};
pub use types::{catalog, congruence, fields};
