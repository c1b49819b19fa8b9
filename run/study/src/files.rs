//! Reading folders in one way: in the order of names, and with the path in every error.

use crate::error::{Doing, Error, Result};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Something in a folder.
pub(crate) struct FolderEntry {
    /// Its path.
    pub(crate) path: PathBuf,
    /// The last part of it.
    pub(crate) name: OsString,
    /// The system's metadata; a link's own, not its target's.
    pub(crate) about: Metadata,
}

/// A folder's entries, in the order of names. Entries that vanish meanwhile are left out.
pub(crate) fn entries(folder: &Path) -> Result<Vec<FolderEntry>> {
    let cannot = || cannot_read(folder);
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).doing_with(cannot)? {
        let entry = entry.doing_with(cannot)?;
        let (path, name) = (entry.path(), entry.file_name());
        match entry.metadata() {
            Ok(about) => entries.push(FolderEntry { path, name, about }),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).doing_with(|| cannot_read(&path)),
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// Visits every regular file below a folder, in the order of paths. It follows no links, and skips the paths for which
/// `leaves_out` is true.
pub(crate) fn each_file(
    folder: &Path,
    leaves_out: &dyn Fn(&FolderEntry) -> bool,
    visit: &mut dyn FnMut(&FolderEntry) -> Result<()>,
) -> Result<()> {
    each_entry(folder, leaves_out, &mut |entry| if entry.about.is_file() { visit(entry) } else { Ok(()) })
}

/// Visits every entry below a folder that is not itself a folder: devices, and links, which are not followed.
pub(crate) fn each_entry(
    folder: &Path,
    leaves_out: &dyn Fn(&FolderEntry) -> bool,
    visit: &mut dyn FnMut(&FolderEntry) -> Result<()>,
) -> Result<()> {
    for entry in entries(folder)?.iter().filter(|entry| !leaves_out(entry)) {
        match entry.about.is_dir() {
            true => each_entry(&entry.path, leaves_out, visit)?,
            false => visit(entry)?,
        }
    }
    Ok(())
}

/// The message about a path that cannot be read.
pub(crate) fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

/// The refusal of a path that a guest cannot be given.
pub(crate) fn not_utf8(path: &Path) -> Error {
    Error::file(path, "has a name that is not UTF-8; rename it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_visited_in_order_and_links_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["b", "a"] {
            fs::create_dir(path(name)).expect("a folder");
            fs::write(path(name).join("file"), "").expect("a file");
        }
        std::os::unix::fs::symlink(folder.path(), path("a/round")).expect("a link");
        let mut seen = Vec::new();
        each_file(folder.path(), &|entry| entry.name == "left-out", &mut |entry| {
            seen.push(entry.path.clone());
            Ok(())
        })
        .expect("visits");
        assert_eq!(seen, [path("a/file"), path("b/file")]);
        let said = entries(&path("missing")).err().expect("an error").to_string();
        assert!(said.contains("missing"), "{said}");
    }
}
