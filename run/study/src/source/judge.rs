//! The compiler as the judge of candidates: parses their declarations, builds them in a scratch copy and reads the
//! types back.

use crate::companions::load;
use crate::error::{BuildError, Result, in_full};
use crate::process::interrupt::Interrupts;
use crate::source::cargo;
use crate::source::declarations::{Checked, Declarations};
use crate::source::scratch::{Role, Scratch, Tree};
use lineup_advise::asserted::Asserted;
use lineup_advise::judge::{CargoCheck, CompileError, Compiled, Judge, Stopped};
use lineup_sources::CompileCommand;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Checks candidates by their declarations, and builds in one scratch copy, one after the other, so that `make`
/// compiles only what an edit reaches.
pub struct BuildJudge<'s> {
    scratch: &'s Scratch,
    declarations: Declarations<'s>,
    /// The copy in which builds run; `None` before the first build and after it was taken.
    tree: Option<Tree>,
    /// The texts that it was built with, when it was.
    built: Option<BTreeMap<String, String>>,
    program: PathBuf,
    /// The copy's role.
    role: Role,
}

impl<'s> BuildJudge<'s> {
    /// A judge that reads `program`, a path inside the source folder. The copy in `built` was built by these calls.
    ///
    /// # Errors
    /// When no temporary folder can be made.
    pub fn new(
        scratch: &'s Scratch,
        program: &Path,
        built: &Path,
        calls: &[CompileCommand],
        interrupts: &Interrupts,
    ) -> Result<Self> {
        let declarations = Declarations::new(scratch, built, calls, interrupts)?;
        Ok(Self {
            scratch,
            declarations,
            tree: None,
            built: None,
            program: program.to_owned(),
            role: Role::After,
        })
    }

    /// The same, but that builds are in this copy: several judges may have one each.
    pub fn in_copy(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// A copy in which the program was built with these texts and was not run yet. A candidate's build is reused.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn take_built(&mut self, edited: &BTreeMap<String, String>) -> Result<Tree, BuildError> {
        let is_built = self.built.take().is_some_and(|texts| texts == *edited);
        let mut tree = self.take_tree()?;
        if !is_built {
            self.scratch.build(&mut tree, edited)?;
        }
        Ok(tree)
    }

    fn take_tree(&mut self) -> Result<Tree, BuildError> {
        let taken = self.tree.take().map(Ok);
        taken.unwrap_or_else(|| self.scratch.copy(self.role)).map_err(BuildError::around)
    }

    fn build(&mut self, edited: &BTreeMap<String, String>) -> Result<(), BuildError> {
        self.built = None;
        let mut tree = self.take_tree()?;
        let built = self.scratch.build(&mut tree, edited);
        self.tree = Some(tree);
        built?;
        self.built = Some(edited.clone());
        Ok(())
    }

    /// Asks Cargo in the copy; what was built there is not that any more.
    fn ask_cargo<T>(
        &mut self,
        ask: impl FnOnce(&Scratch, &mut Tree) -> Result<T, BuildError>,
    ) -> Result<T, CompileError> {
        self.built = None;
        let asked = self.take_tree().and_then(|mut tree| {
            let answer = ask(self.scratch, &mut tree);
            self.tree = Some(tree);
            answer
        });
        asked.map_err(|error| match error {
            BuildError::Failed { what } => Stopped::BuildFailed { what }.into(),
            BuildError::Interrupted(interrupted) => {
                Stopped::Interrupted { signal: interrupted.signal }.into()
            }
            BuildError::Rejected { words } => CompileError::Rejected { words },
        })
    }

    /// A failed build's verdict on the candidate: none, when the unchanged sources do not build either.
    fn explain(&mut self, error: BuildError) -> CompileError {
        match error {
            BuildError::Failed { what } => Stopped::BuildFailed { what }.into(),
            BuildError::Interrupted(interrupted) => {
                Stopped::Interrupted { signal: interrupted.signal }.into()
            }
            BuildError::Rejected { words } => match self.build(&BTreeMap::new()) {
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
        if let Err(error) = self.build(edited) {
            return Err(self.explain(error));
        }
        let folder = self.tree.as_ref().map(|tree| tree.path.as_path()).unwrap_or(Path::new(""));
        let debug = load(&folder.join(&self.program))
            .map_err(|error| Stopped::BuildFailed { what: in_full(&error) })?;
        Ok(vec![Compiled { abi: debug.abi(), types: debug.types().clone() }])
    }

    fn declares(
        &mut self,
        edited: &BTreeMap<String, String>,
        asserted: &Asserted,
    ) -> Result<bool, CompileError> {
        match self.declarations.check(edited, asserted) {
            Ok(Checked::Good) => Ok(true),
            Ok(Checked::Unknown) => Ok(false),
            Ok(Checked::Wrong(words)) => Err(CompileError::Rejected { words }),
            Err(BuildError::Interrupted(interrupted)) => {
                Err(Stopped::Interrupted { signal: interrupted.signal }.into())
            }
            Err(error) => Err(Stopped::BuildFailed { what: error.to_string() }.into()),
        }
    }

    fn check_rust(
        &mut self,
        edited: &BTreeMap<String, String>,
        path: &str,
    ) -> Result<Option<CargoCheck>, CompileError> {
        self.ask_cargo(|scratch, tree| cargo::check(scratch, tree, edited, path))
    }

    fn format_rust(
        &mut self,
        edited: &BTreeMap<String, String>,
        path: &str,
    ) -> Result<BTreeMap<String, String>, CompileError> {
        self.ask_cargo(|scratch, tree| cargo::format(scratch, tree, edited, path))
    }
}
