//! A patch of the sources that is applied before the code is put in order.

use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use lineup_study::progress::Progress;
use lineup_study::source::scratch::{Role, Scratch, Tree};
use lineup_study::source::texts;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The patch.
pub(crate) struct Patched {
    file: PathBuf,
    /// The texts that it changes, by their paths in the source folder.
    pub(crate) edited: BTreeMap<String, String>,
}

impl Patched {
    /// Reads a patch, and applies it to the texts of the source folder in memory.
    pub(crate) fn read(file: &Path, scratch: &Scratch) -> Result<Patched> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let sources = texts::read(scratch.source(), scratch.leave_out())?;
        let edited =
            lineup_advise::patch::apply(&sources, &text).with_context(|| file.display().to_string())?;
        Ok(Patched { file: file.to_owned(), edited })
    }

    /// A copy that is built with it.
    pub(crate) fn build(&self, scratch: &Scratch, stages: &Stages) -> Result<Tree> {
        stages.stage("building the program with the patch");
        let mut tree = scratch.copy(Role::Optimised(5))?;
        scratch.build(&mut tree, &self.edited)?;
        Ok(tree)
    }

    /// Its name, and the files that it changes.
    pub(crate) fn in_words(&self) -> String {
        let files: Vec<&str> = self.edited.keys().map(String::as_str).collect();
        format!("{}, which changes {}", self.file.display(), files.join(", "))
    }
}
