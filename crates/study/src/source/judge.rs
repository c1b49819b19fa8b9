//! The compiler as the judge of candidates: builds them in a scratch copy and reads the types back.

use crate::companions::load;
use crate::error::BuildError;
use crate::error::{Result, in_full};
use crate::source::scratch::{Role, Scratch, Tree};
use lineup_advise::judge::{CompileError, Compiled, Judge, Stopped};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Builds candidates in one scratch copy, one after the other, so that `make` compiles only what an
/// edit reaches.
pub struct BuildJudge<'s> {
    scratch: &'s Scratch,
    tree: Tree,
    program: PathBuf,
}

impl<'s> BuildJudge<'s> {
    /// A judge that builds in a fresh copy and reads `program`, a path inside the source folder.
    ///
    /// # Errors
    /// When the folder cannot be copied.
    pub fn new(scratch: &'s Scratch, program: &Path) -> Result<Self> {
        let tree = scratch.copy(Role::Candidate)?;
        Ok(Self { scratch, tree, program: program.to_owned() })
    }

    /// What a failed build says of the candidate: nothing, when the sources as they are do not build either.
    fn explain(&mut self, error: BuildError) -> CompileError {
        match error {
            BuildError::Failed { what } => Stopped::BuildFailed { what }.into(),
            BuildError::Interrupted(interrupted) => {
                Stopped::Interrupted { signal: interrupted.signal }.into()
            }
            BuildError::Rejected { words } => match self.scratch.build(&mut self.tree, &BTreeMap::new()) {
                Ok(()) => CompileError::Rejected { words },
                Err(BuildError::Interrupted(interrupted)) => {
                    Stopped::Interrupted { signal: interrupted.signal }.into()
                }
                Err(error) => {
                    let what = format!("the sources as they are no longer build: {error}");
                    Stopped::BuildFailed { what }.into()
                }
            },
        }
    }
}

impl Judge for BuildJudge<'_> {
    fn compile(&mut self, edited: &BTreeMap<String, String>) -> Result<Vec<Compiled>, CompileError> {
        if let Err(error) = self.scratch.build(&mut self.tree, edited) {
            return Err(self.explain(error));
        }
        let debug = load(&self.tree.path.join(&self.program))
            .map_err(|error| Stopped::BuildFailed { what: in_full(&error) })?;
        Ok(vec![Compiled { abi: debug.abi(), types: debug.types().clone() }])
    }
}
