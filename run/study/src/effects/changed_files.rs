//! The files that a run leaves behind.

use super::scene::Scene;
use lineup_prove::effects::{Content, ContentCollector, FileKind, FileLeft};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The paths that a run changed.
#[derive(Default)]
pub(super) struct ChangedFiles {
    paths: BTreeMap<PathBuf, Change>,
}

struct Change {
    existed: bool,
    by: BTreeSet<&'static str>,
}

/// True when something stands at a path, including a link that leads nowhere.
pub(super) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

impl ChangedFiles {
    /// Records a change by a system call. `existed` is true when something stood at the path before it.
    pub(super) fn note(&mut self, path: PathBuf, existed: bool, by: &'static str) {
        let change = self.paths.entry(path).or_insert_with(|| Change { existed, by: BTreeSet::new() });
        change.by.insert(by);
    }

    /// The present content of the changed paths.
    pub(super) fn left(self, scene: &Scene) -> BTreeMap<String, FileLeft> {
        let kept = self.paths.into_iter().filter(|(path, _)| keeps_content(path));
        kept.filter_map(|(path, change)| Some((scene.shown(&path), left(&path, change, scene)?))).collect()
    }
}

/// True when bytes written to a path can be read back there. Files of the kernel and devices take commands instead.
fn keeps_content(path: &Path) -> bool {
    let is_in = |folder: &str| path.starts_with(folder);
    !is_in("/proc") && !is_in("/sys") && (!is_in("/dev") || is_in("/dev/shm"))
}

fn left(path: &Path, change: Change, scene: &Scene) -> Option<FileLeft> {
    let about = match path.symlink_metadata() {
        Ok(about) => about,
        Err(error) if error.kind() == ErrorKind::NotFound || error.kind() == ErrorKind::NotADirectory => {
            let gone = || FileLeft {
                kind: FileKind::Gone,
                permissions: 0,
                content: Content::of(b""),
                changed_by: change.by,
            };
            return change.existed.then(gone);
        }
        Err(_) => return None,
    };
    let mut content = ContentCollector::new(scene.hidden());
    let kind = match about.file_type() {
        kind if kind.is_file() => {
            read(path, &mut content);
            FileKind::File
        }
        kind if kind.is_dir() => FileKind::Folder,
        kind if kind.is_symlink() => {
            let target = fs::read_link(path).unwrap_or_default();
            content.add(target.as_os_str().as_bytes());
            FileKind::Link
        }
        _ => FileKind::Special,
    };
    let permissions = about.permissions().mode() & 0o7777;
    Some(FileLeft { kind, permissions, content: content.finish(), changed_by: change.by })
}

/// Reads a file to its end, or as far as it can be read.
fn read(path: &Path, content: &mut ContentCollector) {
    let Ok(mut file) = File::open(path) else { return };
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => content.add(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
