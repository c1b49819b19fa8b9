//! Temporary folders, which go away however we end.

use crate::process::guardian::Guardian;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A temporary folder at a path without symbolic links, so that the kernel's paths of its files compare equal.
#[derive(Debug)]
pub struct TempFolder {
    path: PathBuf,
    /// Removes the folder; `None` once it was.
    folder: Option<TempDir>,
    guardian: Arc<Guardian>,
}

impl TempFolder {
    pub(crate) fn new(guardian: Arc<Guardian>) -> io::Result<Self> {
        let root = std::env::temp_dir().canonicalize()?;
        let folder = tempfile::Builder::new().prefix("lineup-").tempdir_in(root)?;
        guardian.made(folder.path());
        Ok(TempFolder { path: folder.path().to_owned(), folder: Some(folder), guardian })
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // The guardian removes the folder later if that fails now.
        if self.folder.take().is_some_and(|folder| folder.close().is_ok()) {
            self.guardian.removed(&self.path);
        }
    }
}
