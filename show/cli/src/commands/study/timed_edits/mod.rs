//! Edits of the sources that change no layout, so that the clock alone judges them: pools of objects, and prefetches in
//! loops that chase pointers.

mod candidate;
pub(super) mod changed_sources;
pub(super) mod kept_edit;
mod pools;
mod prefetches;
pub(super) mod run;
pub(super) mod stalling;

pub(super) use run::write_details;
