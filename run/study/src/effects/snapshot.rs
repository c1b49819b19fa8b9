//! A folder as it was, so that every run starts from the same files.

use crate::error::{Doing, Result};
use crate::files::entries;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A copy of a folder, kept next to it.
pub struct Snapshot {
    folder: PathBuf,
    copy: TempDir,
}

impl Snapshot {
    /// Copies the folder.
    ///
    /// # Errors
    /// When it cannot be read, or the copy not be written.
    pub fn take(folder: &Path) -> Result<Self> {
        let beside = folder.parent().unwrap_or(folder);
        let copy = tempfile::Builder::new()
            .prefix("snapshot-")
            .tempdir_in(beside)
            .doing_with(|| format!("cannot make a folder in {}", beside.display()))?;
        let snapshot = Self { folder: folder.to_owned(), copy };
        put_back(folder, snapshot.copy.path())?;
        Ok(snapshot)
    }

    /// Makes one folder like another.
    ///
    /// # Errors
    /// When a file cannot be read, written or removed.
    pub fn copy(from: &Path, to: &Path) -> Result<()> {
        put_back(from, to)
    }

    /// Restores the folder: removes new files, and puts changed and removed ones back. A file counts as unchanged when
    /// its size, modification time and permissions are.
    ///
    /// # Errors
    /// When a file cannot be read, written or removed.
    pub fn restore(&self) -> Result<()> {
        put_back(self.copy.path(), &self.folder)
    }
}

/// Makes the folder `to` like the folder `from`.
fn put_back(from: &Path, to: &Path) -> Result<()> {
    for entry in entries(to)? {
        if from.join(&entry.name).symlink_metadata().is_err() {
            remove(&entry.path).doing_with(|| format!("cannot remove {}", entry.path.display()))?;
        }
    }
    for entry in entries(from)? {
        let (there, here) = (&entry.path, to.join(&entry.name));
        if !is_same(&entry.about, &here) {
            let copied = remove(&here).and_then(|()| copy(there, &entry.about, &here));
            copied.doing_with(|| format!("cannot copy {} to {}", there.display(), here.display()))?;
        }
        if entry.about.is_dir() {
            put_back(there, &here)?;
        }
    }
    Ok(())
}

fn is_same(about: &Metadata, here: &Path) -> bool {
    let Ok(now) = here.symlink_metadata() else { return false };
    let is_kind = now.file_type() == about.file_type() && now.permissions() == about.permissions();
    let times = (now.mtime(), now.mtime_nsec()) == (about.mtime(), about.mtime_nsec());
    match about.is_dir() {
        true => is_kind,
        false => is_kind && now.len() == about.len() && times,
    }
}

fn remove(path: &Path) -> io::Result<()> {
    let gone = match path.symlink_metadata() {
        Ok(about) if about.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match gone {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        gone => gone,
    }
}

/// Copies one entry; the caller copies a folder's content. Pipes, sockets and devices are left out.
fn copy(there: &Path, about: &Metadata, here: &Path) -> io::Result<()> {
    if about.is_symlink() {
        return symlink(fs::read_link(there)?, here);
    }
    if about.is_dir() {
        fs::create_dir(here)?;
        return fs::set_permissions(here, about.permissions());
    }
    if !about.is_file() {
        return Ok(());
    }
    fs::copy(there, here)?;
    // The time is set while the file can surely be opened for writing.
    fs::set_permissions(here, fs::Permissions::from_mode(0o600))?;
    File::options().append(true).open(here)?.set_modified(about.modified()?)?;
    fs::set_permissions(here, about.permissions())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_put_back_to_the_last_file() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("run");
        fs::create_dir_all(folder.join("deep")).unwrap();
        fs::write(folder.join("kept"), "kept").unwrap();
        fs::write(folder.join("deep/changed"), "before").unwrap();
        fs::write(folder.join("removed"), "removed").unwrap();
        symlink("kept", folder.join("link")).unwrap();
        let kept = folder.join("kept").metadata().unwrap();
        let snapshot = Snapshot::take(&folder).unwrap();
        fs::write(folder.join("deep/changed"), "after, and longer").unwrap();
        fs::remove_file(folder.join("removed")).unwrap();
        fs::remove_file(folder.join("link")).unwrap();
        fs::create_dir_all(folder.join("new/deeper")).unwrap();
        fs::write(folder.join("new/deeper/file"), "new").unwrap();
        snapshot.restore().unwrap();
        assert_eq!(fs::read_to_string(folder.join("deep/changed")).unwrap(), "before");
        assert_eq!(fs::read_to_string(folder.join("removed")).unwrap(), "removed");
        assert_eq!(fs::read_link(folder.join("link")).unwrap(), Path::new("kept"));
        assert!(!folder.join("new").exists());
        let now = folder.join("kept").metadata().unwrap();
        assert_eq!(
            (now.ino(), now.mtime_nsec()),
            (kept.ino(), kept.mtime_nsec()),
            "an unchanged file is left alone"
        );
    }

    #[test]
    fn another_content_of_equal_size_is_noticed_by_its_time() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("run");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("data"), "one").unwrap();
        let snapshot = Snapshot::take(&folder).unwrap();
        fs::write(folder.join("data"), "two").unwrap();
        snapshot.restore().unwrap();
        assert_eq!(fs::read_to_string(folder.join("data")).unwrap(), "one");
    }
}
