//! Derives a source patch from a program's use of its data, so that the program needs fewer cache lines, and the guard
//! that keeps it so.
//!
//! Design constraints:
//!
//! * Text and values in, text and values out: no file is read, nothing is spawned, nothing is printed.
//!   The caller compiles candidates through [`judge::Judge`].
//! * *The compiler judges.* Layouts are predicted to search quickly; a proposal whose offsets the
//!   compiler does not confirm is discarded.
//! * *A refusal is an answer.* A [`constraint::Constraint`] that forbids an edit has a name, the members it holds and
//!   the place it comes from. Text that is not understood is never edited.
//! * An edit is minimal: members that keep their relative order stay untouched, comments and attributes move with their
//!   member, and every other byte of a file is unchanged.
//! * Deterministic: equal inputs give equal advice, to the byte.
//! * Two data models at once: the recorded one decides, the other one must not get worse, and it breaks ties.
//!
//! [`advise()`] does all; [`rewrite`], [`guard`] and [`patch`] are its parts that are useful alone.

pub mod error;
pub mod guard;
pub mod judge;
pub mod kind;
pub mod options;
pub mod order_file;
pub mod patch;
pub mod proposal;
pub mod usage;

mod advise;
mod constraints;
mod explained_usage;
mod kinds;
mod layout;
mod line_figures;
mod pool_proposal;
mod predicted_waits;
mod search;
mod text;

pub use advise::{advise, advise_with, kinds};
pub use constraints::{constraint, held_file, meaning, randomisation};
pub use guard::assertions;
pub use judge::asserted;
pub use kinds::order::user_orders::type_named;
pub use kinds::{hints, pool, prefetch};
pub use layout::current_demand::current_lines;
pub use layout::data_model;
pub use patch::rewrite;
pub use search::shuffle;
pub use text::{outline, sources};
