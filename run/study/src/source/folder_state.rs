//! The initial state of the user's folder, by which a change of it is noticed.

use crate::error::{Doing, Error, Result};
use crate::files::{FolderEntry, cannot_read, each_file};
use crate::source::open_files::written_elsewhere;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Every file below a folder: its metadata, and a digest of its bytes.
pub(crate) struct FolderState {
    folder: PathBuf,
    leave_out: Vec<PathBuf>,
    files: BTreeMap<PathBuf, File>,
}

struct File {
    known: FileStamp,
    /// `None` where only metadata is compared.
    digest: Option<[u8; 32]>,
}

/// The system's metadata of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    fn of(file: &fs::Metadata) -> Self {
        Self {
            inode: file.ino(),
            bytes: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

impl FolderState {
    /// Reads every file below `folder`, but for those in `leave_out`.
    pub(crate) fn note(folder: &Path, leave_out: &[PathBuf]) -> Result<Self> {
        let mut noted = Self::note_times(folder, leave_out)?;
        for (path, file) in &mut noted.files {
            file.digest = Some(digest(path).doing_with(|| cannot_read(path))?);
        }
        Ok(noted)
    }

    /// Notes only sizes and times: for a large folder that no started program knows of. A file whose time of change
    /// differs then counts as written.
    pub(crate) fn note_times(folder: &Path, leave_out: &[PathBuf]) -> Result<Self> {
        let (folder, leave_out) = (folder.to_owned(), leave_out.to_vec());
        let mut noted = Self { folder, leave_out, files: BTreeMap::new() };
        let files = noted.list()?.into_iter();
        noted.files = files.map(|(path, known)| (path, File { known, digest: None })).collect();
        Ok(noted)
    }

    /// # Errors
    /// Names the files that were written, made or removed since. A file with its old bytes and time of modification was
    /// not written: permissions and links to it do not count here.
    pub(crate) fn check(&self) -> Result<()> {
        let now = self.list()?;
        let mut changed: Vec<&Path> =
            self.files.keys().filter(|path| !now.contains_key(*path)).map(PathBuf::as_path).collect();
        for (path, known) in &now {
            let is_as_before = self.files.get(path).is_some_and(|file| {
                file.known == *known
                    || (file.known.modified == known.modified
                        && file.digest.is_some_and(|noted| digest(path).is_ok_and(|now| now == noted)))
            });
            if !is_as_before {
                changed.push(path);
            }
        }
        // `lineup study … >log` and `| tee log` write to files that no build and no run of the study has open.
        if !changed.is_empty() {
            let logs = written_elsewhere();
            let id = |path: &Path| fs::metadata(path).map(|about| (about.dev(), about.ino()));
            changed.retain(|path| !id(path).is_ok_and(|id| logs.contains(&id)));
        }
        if changed.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = changed
            .iter()
            .take(5)
            .map(|path| path.strip_prefix(&self.folder).unwrap_or(path).display().to_string())
            .collect();
        let more = if changed.len() > names.len() { " and others" } else { "" };
        Err(Error::FolderChanged {
            names: format!("{}{more}", names.join(", ")),
            folder: self.folder.clone(),
        })
    }

    fn list(&self) -> Result<BTreeMap<PathBuf, FileStamp>> {
        let mut all = BTreeMap::new();
        let leaves_out = |entry: &FolderEntry| entry.name == ".git" || self.leave_out.contains(&entry.path);
        each_file(&self.folder, &leaves_out, &mut |entry| {
            all.insert(entry.path.clone(), FileStamp::of(&entry.about));
            Ok(())
        })?;
        Ok(all)
    }
}

fn digest(path: &Path) -> std::io::Result<[u8; 32]> {
    let mut file = fs::File::open(path)?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().into()),
            count => hasher.update(buffer.get(..count).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::copy::set_modified;

    #[test]
    fn what_is_written_made_or_removed_is_named_and_reading_is_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["a.c", "b.c", "c.c"] {
            fs::write(path(name), name).expect("a file");
        }
        let noted = FolderState::note(folder.path(), &[path("out")]).expect("notes");
        fs::read(path("a.c")).expect("reads");
        fs::write(path("out"), "left out").expect("a file");
        noted.check().expect("nothing changed");

        // A log of another process.
        fs::write(path("log"), "a line\n").expect("a file");
        let log = fs::File::options().append(true).open(path("log")).expect("the log");
        let mut other = std::process::Command::new("setsid");
        other.args(["--fork", "sh", "-c", "exec sleep 5"]).stdout(log);
        assert!(other.status().expect("setsid").success());
        noted.check().expect("what another process writes is its own");
        fs::remove_file(path("log")).expect("removes");

        let before = fs::metadata(path("b.c")).and_then(|file| file.modified()).expect("a time");
        fs::write(path("b.c"), "B.c").expect("a file");
        set_modified(&path("b.c"), before).expect("sets");
        fs::write(path("new"), "").expect("a file");
        fs::remove_file(path("c.c")).expect("removes");
        let said = noted.check().expect_err("changed").to_string();
        assert!(said.starts_with("c.c, b.c, new changed in"), "{said}");
    }
}
