//! The attributes of files in a root, and refusals of roots.

use crate::error::Error;
use std::path::{Path, PathBuf};

/// A file's attributes in a root where they differ from those of its copy on the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Attributes {
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    pub(super) uid: u64,
    pub(super) gid: u64,
}

/// The refusal of a root.
pub(super) fn refused(path: &Path, why: impl Into<String>) -> Error {
    Error::argument(format!("--rootfs {}", path.display()), why.into())
}
