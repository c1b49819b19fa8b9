//! From libclang's cursors to a plain [`Tree`].

mod arms;
mod assembly;
mod cleanups;
mod decls;
mod directives;
mod macros;
mod members;
mod operators;
mod reader;
mod records;
mod seen_functions;
mod splitting;
mod template_names;

pub(crate) use macros::Macros;
pub use reader::normal;
pub(crate) use reader::read;
pub(crate) use seen_functions::SeenFunctions;
