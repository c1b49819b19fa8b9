//! The code cache: blocks of the program's code, translated, and the knowledge of the code that they come from.

pub(crate) mod blocks;
pub(crate) mod code_memory;
pub(crate) mod continuations;
pub(crate) mod patches;
pub(crate) mod sequences;
pub(crate) mod targets;
