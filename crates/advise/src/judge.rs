//! Asking the compiler.
//!
//! Layouts are predicted to search quickly, and believed only when a compiler gave the same offsets.

use lineup_model::abi::Abi;
use lineup_model::types::Types;
use std::collections::BTreeMap;

/// The types of one build of the edited sources.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The ABI it was compiled for.
    pub abi: Abi,
    /// All types that its debug info describes.
    pub types: Types,
}

/// Compiles candidates. The library calls it once per candidate.
pub trait Judge {
    /// Builds the sources with some files replaced (path relative to the source folder, new text) and
    /// reads the types back from debug info: one entry per ABI that could be built.
    ///
    /// # Errors
    /// The compiler's words, when a build fails.
    fn compile(&mut self, edited: &BTreeMap<String, String>) -> Result<Vec<Compiled>, String>;
}

/// A judge for when there is no compiler: it confirms nothing, so proposals are marked as predicted.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoCompiler;

impl Judge for NoCompiler {
    fn compile(&mut self, _edited: &BTreeMap<String, String>) -> Result<Vec<Compiled>, String> {
        Ok(Vec::new())
    }
}
