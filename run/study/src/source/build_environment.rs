//! The environment of builds.

use crate::error::{Doing, Result};
use crate::process::folder::TempFolder;
use crate::process::interrupt::Interrupts;
use std::ffi::OsString;

/// The environment of every build, valid as long as this lives.
pub struct Environment {
    temporary: TempFolder,
}

impl Environment {
    /// Creates its folder and the variables.
    ///
    /// # Errors
    /// When the folder for temporary files cannot be made.
    pub fn new(interrupts: &Interrupts) -> Result<Self> {
        let temporary = interrupts.temporary_folder().doing("cannot make a folder for a build")?;
        Ok(Environment { temporary })
    }

    /// The variables, and further ones of a build.
    pub fn with(&self, further: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
        let own = [
            // Compilers must complain in English: their messages show whose fault a failure is.
            ("LC_ALL".into(), "C.UTF-8".into()),
            ("LANGUAGE".into(), "".into()),
            // A compiler that is killed leaves its temporary files: they go with the folder.
            ("TMPDIR".into(), self.temporary.path().into()),
        ];
        own.into_iter().chain(further).collect()
    }
}
