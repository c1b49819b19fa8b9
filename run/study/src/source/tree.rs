//! One copy of the source folder: a build notices its edits, however coarse the clock of the file system.

use crate::error::{Doing, Result};
use crate::files::{cannot_read, each_file};
use crate::source::copy::set_modified;
use crate::source::stale_outputs::StaleOutputs;
use lineup_sources::CompileCommand;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The coarsest clock of a file system that is still waited for: FAT counts in two seconds.
const COARSEST: Duration = Duration::from_millis(2100);

/// One copy.
pub struct Tree {
    /// The copy's folder.
    pub path: PathBuf,
    /// The old content of edited files.
    originals: BTreeMap<String, Vec<u8>>,
    /// Files written since the last build.
    pub(crate) written: BTreeSet<String>,
    pub(crate) stale: StaleOutputs,
    /// Files that name an edited file but are not part of the build.
    pub(crate) unrelated: BTreeSet<PathBuf>,
}

impl Tree {
    /// The copy in `path`, as it was copied.
    pub(crate) fn at(path: PathBuf) -> Self {
        let (originals, written, stale, unrelated) = Default::default();
        Self { path, originals, written, stale, unrelated }
    }

    /// Writes these texts into files, named relative to the folder, and restores the first texts in all others.
    pub fn edit(&mut self, edits: &BTreeMap<String, String>) -> Result<()> {
        let others = self.originals.keys().filter(|file| !edits.contains_key(*file));
        let restored: Vec<(String, Vec<u8>)> =
            others.map(|file| (file.clone(), self.originals[file].clone())).collect();
        for (file, bytes) in restored {
            self.write(&file, &bytes)?;
        }
        edits.iter().try_for_each(|(file, text)| self.write(file, text.as_bytes()))
    }

    /// Replaces a file, also one that may not be written.
    fn write(&mut self, file: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path.join(file);
        let cannot = || format!("cannot write {}", path.display());
        let held = match fs::read(&path) {
            Ok(held) => held,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error).doing_with(cannot),
        };
        if held == bytes {
            return Ok(());
        }
        self.originals.entry(file.to_owned()).or_insert(held);
        let permissions = fs::metadata(&path).map(|metadata| metadata.permissions());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).doing_with(cannot),
            _ => fs::write(&path, bytes).doing_with(cannot)?,
        }
        if let Ok(permissions) = permissions {
            fs::set_permissions(&path, permissions).doing_with(cannot)?;
        }
        self.written.insert(file.to_owned());
        Ok(())
    }

    /// Makes the written files newer than everything else: `make` compiles only objects that are older than their
    /// sources.
    pub(crate) fn freshen(&self) -> Result<()> {
        self.make_newest(&self.written_paths())
    }

    /// Makes all sources newer than the files made from them, so that a build in the copy compiles every unit, also
    /// where it was built before.
    pub(crate) fn freshen_sources(&self) -> Result<()> {
        let is_source = |path: &Path| CompileCommand::is_source(path) || CompileCommand::is_assembly(path);
        let mut sources = self.written_paths();
        each_file(&self.path, &|_| false, &mut |entry| {
            if is_source(&entry.path) {
                sources.push(entry.path.clone());
            }
            Ok(())
        })?;
        self.make_newest(&sources)
    }

    fn written_paths(&self) -> Vec<PathBuf> {
        self.written.iter().map(|file| self.path.join(file)).collect()
    }

    /// File systems count time in steps of up to two seconds.
    fn make_newest(&self, written: &[PathBuf]) -> Result<()> {
        let newest = newest(&self.path, written)?;
        let Some(newest) = newest.filter(|_| !written.is_empty()) else { return Ok(()) };
        let deadline = SystemTime::now() + COARSEST;
        loop {
            let now = SystemTime::now();
            // A file from the future, due to a wrong clock, is outdone by a still later time.
            let time = if now > deadline { newest + COARSEST } else { now };
            written.iter().try_for_each(|path| set_modified(path, time))?;
            let are_newer = written.iter().all(|path| {
                fs::metadata(path).and_then(|file| file.modified()).is_ok_and(|time| time > newest)
            });
            if are_newer || now > deadline {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The latest time of modification below a folder, but for some files.
fn newest(folder: &Path, but: &[PathBuf]) -> Result<Option<SystemTime>> {
    let mut newest = None;
    each_file(folder, &|entry| but.contains(&entry.path), &mut |entry| {
        let modified = entry.about.modified().doing_with(|| cannot_read(&entry.path))?;
        newest = newest.max(Some(modified));
        Ok(())
    })?;
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modified(path: &Path) -> SystemTime {
        fs::metadata(path).and_then(|file| file.modified()).expect("a time")
    }

    #[test]
    fn edits_are_newer_than_objects_even_those_from_the_future() {
        for ahead in [Duration::ZERO, Duration::from_secs(3600)] {
            let folder = tempfile::tempdir().expect("a folder");
            let [source, object] = ["x.c", "x.o"].map(|name| folder.path().join(name));
            fs::write(&source, "int x;").expect("a file");
            fs::write(&object, "").expect("a file");
            set_modified(&object, SystemTime::now() + ahead).expect("sets");
            let mut tree = Tree::at(folder.path().to_owned());
            tree.edit(&BTreeMap::from([("x.c".to_string(), "int y;".to_string())])).expect("edits");
            tree.freshen().expect("freshens");
            assert!(modified(&source) > modified(&object), "{ahead:?}");
        }
    }

    #[test]
    fn a_file_that_may_not_be_written_is_edited_and_restored() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("x.c");
        fs::write(&source, "int x;").expect("a file");
        let mut permissions = fs::metadata(&source).expect("a file").permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&source, permissions).expect("sets");
        let mut tree = Tree::at(folder.path().to_owned());
        tree.edit(&BTreeMap::from([("x.c".to_string(), "int y;".to_string())])).expect("edits");
        assert_eq!(fs::read_to_string(&source).expect("a file"), "int y;");
        tree.written.clear();
        tree.edit(&BTreeMap::new()).expect("restores");
        assert_eq!(fs::read_to_string(&source).expect("a file"), "int x;");
        assert!(tree.written.contains("x.c"), "a build must see that it changed back");
    }
}
