//! Notes each place that names a member of a class of C++, and the uses that an edit which moves members out of the
//! object could not follow.
//!
//! Every rule here errs towards holding. A name that is missed stops the edited program from compiling.

mod arrays;
mod classes;
mod code_places;
mod heap_objects;
mod heap_wrappers;
mod initialised;
pub(super) mod nodes;
mod notes;
mod quiet_wrappers;
mod thread_starts;

pub(super) use notes::Splitting;
