//! Linking: the linkers of a build, their arguments, and one program linked in several ways.

pub(crate) mod archives;
pub(crate) mod arguments;
pub mod linkers;
pub mod relink;
