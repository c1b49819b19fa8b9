//! Recordings of whole programs: counts by function, findings, the map of executed code.

pub(crate) mod code_page;
pub(crate) mod counts;
pub(crate) mod findings;
pub(crate) mod function_table;
pub(crate) mod functions;
pub(crate) mod starter;
