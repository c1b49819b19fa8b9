//! The server's interface to the machine it runs on.

use lineup_model::abi::Abi;
use lineup_model::types::Types;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The time of a file's last change, and its length in bytes: a file with another stamp is read again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// When it was written last.
    pub modified: SystemTime,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The files of a machine. Errors are sentences for a person, without the file's name.
pub trait World {
    /// The stamp of a file; `None` when it does not exist.
    fn stamp(&self, path: &Path) -> Option<Stamp>;

    /// The one path of a file, without links; `None` when it does not exist.
    fn canonical(&self, path: &Path) -> Option<PathBuf>;

    /// The text of a file.
    ///
    /// # Errors
    /// When it cannot be read or is not UTF-8.
    fn text(&self, path: &Path) -> Result<String, String>;

    /// The types that a program's debug information describes, and the ABI it was compiled for.
    ///
    /// # Errors
    /// When it cannot be read or has no debug information.
    fn types(&self, path: &Path) -> Result<(Types, Abi), String>;

    /// A program's use of its types: a document that [`crate::Evidence`] reads.
    ///
    /// # Errors
    /// When the file cannot be read, or has no such content.
    fn evidence(&self, path: &Path) -> Result<String, String>;
}
