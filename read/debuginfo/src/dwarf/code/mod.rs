//! Functions, variables and lines: their names, their code, and the places of their values.

pub(crate) mod catalog;
pub(crate) mod functions;
pub(crate) mod lines;
pub(crate) mod location;
