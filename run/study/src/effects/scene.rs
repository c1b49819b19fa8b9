//! The surroundings of an observed run, and the form in which its paths are shown.

use std::path::{Path, PathBuf};

/// A run's surroundings.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    /// The run's folder: paths are shown relative to it.
    pub(super) folder: PathBuf,
    /// True when the folder's path does not count where the program writes it, because another variant runs in another
    /// folder.
    pub(super) is_folder_hidden: bool,
    /// Device and inode of the program's standard output.
    pub(super) standard_output: (u64, u64),
    /// Device and inode of the program's standard error.
    pub(super) standard_error: (u64, u64),
}

impl Scene {
    /// A path as Lineup shows it: relative to the run's folder where it lies inside.
    pub(super) fn shown(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.folder).unwrap_or(path);
        let shown = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
        shown.to_string_lossy().into_owned()
    }

    /// The folder's path where it does not count; empty where it does.
    pub(super) fn hidden(&self) -> &[u8] {
        if self.is_folder_hidden { self.folder.as_os_str().as_encoded_bytes() } else { b"" }
    }
}
