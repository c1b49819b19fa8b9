//! Executed code by line, page and function.

pub(crate) mod code_map;
pub(crate) mod footprint;
pub(crate) mod summary;
