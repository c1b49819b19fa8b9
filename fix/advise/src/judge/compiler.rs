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

/// An error of Rust's compiler.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RustError {
    /// File, relative to the source folder.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Its code, as in `E0609`; empty where it has none.
    pub code: String,
    /// The message.
    pub words: String,
}

/// The answer of `cargo check` for all targets of a workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CargoCheck {
    /// The errors; none when it succeeds.
    pub errors: Vec<RustError>,
    /// The folder of the package, relative to the source folder; empty for the source folder itself.
    pub package: String,
    /// The text of the package's `Cargo.toml`.
    pub manifest: String,
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

    /// Has Cargo check every target of the workspace that holds this file, without making code. `None` when this judge
    /// cannot.
    ///
    /// # Errors
    /// As [`Judge::compile`]; [`CompileError::Rejected`] when Cargo fails without an error at a place.
    fn check_rust(
        &mut self,
        _edited: &BTreeMap<String, String>,
        _path: &str,
    ) -> Result<Option<CargoCheck>, CompileError> {
        Ok(None)
    }

    /// These texts of Rust, formatted as the workspace that holds this file was; unchanged where it was not formatted.
    ///
    /// # Errors
    /// As [`Judge::compile`].
    fn format_rust(
        &mut self,
        edited: &BTreeMap<String, String>,
        _path: &str,
    ) -> Result<BTreeMap<String, String>, CompileError> {
        Ok(edited.clone())
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

    fn check_rust(
        &mut self,
        edited: &BTreeMap<String, String>,
        path: &str,
    ) -> Result<Option<CargoCheck>, CompileError> {
        self.judge.check_rust(edited, path)
    }

    fn format_rust(
        &mut self,
        edited: &BTreeMap<String, String>,
        path: &str,
    ) -> Result<BTreeMap<String, String>, CompileError> {
        self.judge.format_rust(edited, path)
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
