//! The code cache: blocks of the program's code, translated, and the knowledge of the code that they come from.

pub(crate) mod block;
pub(crate) mod blocks;
pub(crate) mod code_memory;
pub(crate) mod continuations;
pub(crate) mod invalidation;
pub(crate) mod patches;
pub(crate) mod sequence;
pub(crate) mod sequence_copies;
pub(crate) mod sequences;
pub(crate) mod targets;
pub(crate) mod translator;
