//! Outputs that a build left unchanged though one of their sources had changed.
//!
//! A build without header dependencies does not compile a file again when a header changes. Debug information names an
//! object's sources, and the object's time of modification shows whether the build made it.

use crate::companions::load;
use crate::error::{Doing, Result};
use crate::files::{cannot_read, each_file};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files that compilers and linkers make, with their times of modification.
pub(crate) type OutputTimes = BTreeMap<PathBuf, SystemTime>;

/// Reads which made files name which sources, once per file and version of it.
#[derive(Default)]
pub(crate) struct StaleOutputs {
    /// By file: its time when it was read, and the names of source files found in it, among those asked for.
    known: BTreeMap<PathBuf, (SystemTime, BTreeMap<String, bool>)>,
}

impl StaleOutputs {
    /// Objects, archives, libraries and programs below `folder` that are in both lists with the same time, and that
    /// name one of the `edited` files.
    pub(crate) fn find(
        &mut self,
        before: &OutputTimes,
        after: &OutputTimes,
        edited: &BTreeSet<String>,
    ) -> Result<Vec<PathBuf>> {
        let mut stale = Vec::new();
        for (path, time) in after.iter().filter(|(path, time)| before.get(*path) == Some(time)) {
            if self.names_any(path, *time, edited)? {
                stale.push(path.clone());
            }
        }
        Ok(stale)
    }

    fn names_any(&mut self, path: &Path, time: SystemTime, edited: &BTreeSet<String>) -> Result<bool> {
        let (read, known) = self.known.entry(path.to_owned()).or_insert((time, BTreeMap::new()));
        if *read != time {
            (*read, *known) = (time, BTreeMap::new());
        }
        if edited.iter().any(|file| !known.contains_key(file)) {
            let bytes = fs::read(path).doing_with(|| cannot_read(path))?;
            let named: Vec<&String> = edited.iter().filter(|file| names(&bytes, file)).collect();
            let declaring = if named.is_empty() { BTreeSet::new() } else { declaring_files(path) };
            let is_archive = !bytes.starts_with(b"\x7fELF");
            let is_compiled_from = |file: &String| {
                named.contains(&file) && (is_archive || declaring.iter().any(|path| ends(path, file)))
            };
            known.extend(edited.iter().map(|file| (file.clone(), is_compiled_from(file))));
        }
        Ok(edited.iter().any(|file| known.get(file) == Some(&true)))
    }
}

/// The outputs of these sources below a folder, relative to it: files that compilers and linkers made.
pub(crate) fn of_sources(folder: &Path, sources: &BTreeSet<String>) -> Result<Vec<PathBuf>> {
    let (mut outputs, mut found) = (StaleOutputs::default(), Vec::new());
    for (path, time) in made(folder)? {
        if outputs.names_any(&path, time, sources)? {
            found.extend(path.strip_prefix(folder).map(Path::to_owned));
        }
    }
    Ok(found)
}

/// True when debug information in the bytes names the file: tables of files hold its last part, ended by a zero.
fn names(bytes: &[u8], file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file).as_bytes();
    let starts = |at: usize| at == 0 || bytes.get(at - 1).is_some_and(|byte| matches!(byte, 0 | b'/'));
    memchr::memmem::find_iter(bytes, name)
        .any(|at| starts(at) && bytes.get(at + name.len()).is_some_and(|byte| *byte == 0))
}

/// The files that declare an object's types, and its units, by the paths in its debug information. Empty when it has
/// none.
fn declaring_files(object: &Path) -> BTreeSet<String> {
    let Ok(debug) = load(object) else { return BTreeSet::new() };
    let places = debug.types().iter().flat_map(|(_, ty)| {
        let declared = ty.declared_at.as_ref().map(|at| at.file.to_string());
        declared.into_iter().chain(ty.unit.as_deref().map(str::to_owned))
    });
    let units = debug.unit_files().into_iter().map(|path| path.to_string_lossy().into_owned());
    places.chain(units).collect()
}

/// True when a path ends with a file's path, on whole parts.
fn ends(path: &str, file: &str) -> bool {
    Path::new(path).ends_with(file)
}

/// The files below a folder that compilers and linkers made: ELF files and archives.
pub(crate) fn made(folder: &Path) -> Result<OutputTimes> {
    let mut all = OutputTimes::new();
    each_file(folder, &|_| false, &mut |entry| {
        if is_made(&entry.path) {
            let modified = entry.about.modified().doing_with(|| cannot_read(&entry.path))?;
            all.insert(entry.path.clone(), modified);
        }
        Ok(())
    })?;
    Ok(all)
}

fn is_made(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(8).read_to_end(&mut start));
    read.is_ok() && starts_as_made(&start)
}

/// True for the first bytes of an ELF file or an archive.
pub(crate) fn starts_as_made(bytes: &[u8]) -> bool {
    [&b"\x7fELF"[..], b"!<arch>\n", b"!<thin>\n"].iter().any(|magic| bytes.starts_with(magic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_the_last_part_of_its_path() {
        assert!(names(b"\0include/x.h\0", "src/include/x.h"));
        assert!(names(b"x.h\0", "x.h"));
        assert!(!names(b"\0ax.h\0", "x.h"));
        assert!(!names(b"\0x.hpp\0", "x.h"));
    }
}
