//! Asking the compiler.
//!
//! Layouts are predicted to search quickly, and believed only when a compiler gave the same offsets.

use crate::error::AdviseError;
pub use crate::error::Stopped;
use crate::judge::asserted::Asserted;
use lineup_model::abi::Abi;
use lineup_model::types::Types;
use std::collections::BTreeMap;
use thiserror::Error;

/// The types of one build of the edited sources.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The ABI it was compiled for.
    pub abi: Abi,
    /// All types that its debug info describes.
    pub types: Types,
}

/// The reason why there is no build of the edited sources. Only the first of these says anything about the edit.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CompileError {
    /// The compiler, or a later step of the build, does not take the edited sources.
    #[error("{words}")]
    Rejected {
        /// The output of the build.
        words: String,
    },
    /// There is no answer: the whole work ends.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl CompileError {
    /// The first lines of the compiler's messages about the edit.
    ///
    /// # Errors
    /// When something other than the edit failed: then nothing is known of the edit, and the work ends.
    pub(crate) fn into_first_words(self) -> Result<String, AdviseError> {
        match self {
            Self::Rejected { words } => {
                let lines = words.lines().filter(|line| !line.trim().is_empty());
                Ok(lines.take(3).collect::<Vec<_>>().join("; "))
            }
            Self::Stopped(stopped) => Err(stopped.into()),
        }
    }
}

/// Compiles candidates. The library calls it once per candidate.
pub trait Judge {
    /// Builds the sources with some files replaced (path relative to the source folder, new text) and
    /// reads the types back from debug info: one entry per ABI that could be built.
    ///
    /// # Errors
    /// [`CompileError::Rejected`] refuses the candidate. The others end the work: they say nothing about it.
    fn compile(&mut self, edited: &BTreeMap<String, String>) -> Result<Vec<Compiled>, CompileError>;

    /// Asks the compiler whether one declaration in the edited sources gives the asserted layout, without building the
    /// program: true when it does, false when this judge cannot decide. Declarations judged so are compiled once in the
    /// end.
    ///
    /// # Errors
    /// As [`Judge::compile`]; [`CompileError::Rejected`] also when an assertion fails.
    fn declares(
        &mut self,
        _edited: &BTreeMap<String, String>,
        _asserted: &Asserted,
    ) -> Result<bool, CompileError> {
        Ok(false)
    }
}

/// A judge that notes whether declarations were checked alone, or asks for whole builds only.
pub(crate) struct Asked<'j> {
    judge: &'j mut dyn Judge,
    whole_only: bool,
    pub(crate) has_declared: bool,
}

impl<'j> Asked<'j> {
    pub(crate) fn new(judge: &'j mut dyn Judge) -> Self {
        Self { judge, whole_only: false, has_declared: false }
    }

    pub(crate) fn for_whole_builds(self) -> Self {
        Self { whole_only: true, ..self }
    }
}

impl Judge for Asked<'_> {
    fn compile(&mut self, edited: &BTreeMap<String, String>) -> Result<Vec<Compiled>, CompileError> {
        self.judge.compile(edited)
    }

    fn declares(
        &mut self,
        edited: &BTreeMap<String, String>,
        asserted: &Asserted,
    ) -> Result<bool, CompileError> {
        let declares = !self.whole_only && self.judge.declares(edited, asserted)?;
        self.has_declared |= declares;
        Ok(declares)
    }
}

/// A judge for when there is no compiler: it confirms nothing, so proposals are marked as predicted.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoCompiler;

impl Judge for NoCompiler {
    fn compile(&mut self, _edited: &BTreeMap<String, String>) -> Result<Vec<Compiled>, CompileError> {
        Ok(Vec::new())
    }
}
