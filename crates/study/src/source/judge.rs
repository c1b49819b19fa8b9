//! The compiler as the judge of candidates: builds them in a scratch copy and reads the types back.

use crate::companions::load;
use crate::source::scratch::{Role, Scratch, Tree};
use anyhow::Result;
use lineup_advise::judge::{Compiled, Judge};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Builds candidates in one scratch copy, one after the other, so that `make` compiles only what an
/// edit reaches.
pub struct BuildJudge<'s> {
    scratch: &'s Scratch,
    tree: Tree,
    program: PathBuf,
    /// Files that differ from the original.
    edited: BTreeSet<String>,
}

impl<'s> BuildJudge<'s> {
    /// A judge that builds in a fresh copy and reads `program`, a path inside the source folder.
    pub fn new(scratch: &'s Scratch, program: &Path) -> Result<Self> {
        let tree = scratch.copy(Role::Candidate)?;
        Ok(Self { scratch, tree, program: program.to_owned(), edited: BTreeSet::new() })
    }

    fn try_compile(&mut self, edited: &BTreeMap<String, String>) -> Result<Vec<Compiled>> {
        for file in std::mem::take(&mut self.edited) {
            let original = std::fs::read_to_string(self.scratch.source().join(&file))?;
            self.tree.write(Path::new(&file), &original)?;
        }
        for (file, text) in edited {
            self.tree.write(Path::new(file), text)?;
            self.edited.insert(file.clone());
        }
        self.scratch.build(&self.tree)?;
        let debug = load(&self.tree.path.join(&self.program))?;
        Ok(vec![Compiled { abi: debug.abi(), types: debug.types().clone() }])
    }
}

impl Judge for BuildJudge<'_> {
    fn compile(&mut self, edited: &BTreeMap<String, String>) -> Result<Vec<Compiled>, String> {
        self.try_compile(edited).map_err(|error| format!("{error:#}"))
    }
}
