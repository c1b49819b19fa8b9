//! Reads the source files of a folder into memory.

use crate::error::{Doing, Error, Result};
use crate::files::{FolderEntry, each_file};
use lineup_advise::sources::{Sources, is_hidden};
use std::fs;
use std::path::{Path, PathBuf};

/// A source file larger than this is left out: it is generated data, not text that someone edits.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// All source files of a folder together may not be larger than this.
const MAX_TOTAL_BYTES: u64 = 1 << 30;

/// Reads every C, C++, assembly and Rust file below `folder`, except for the folders in `leave_out` and the folders of
/// version control, patch systems and editors. Files that are not UTF-8 are left out: an edit could not preserve them.
pub fn read(folder: &Path, leave_out: &[PathBuf]) -> Result<Sources> {
    let (mut files, mut total) = (Vec::new(), 0);
    let leaves_out =
        |entry: &FolderEntry| is_hidden(&entry.name.to_string_lossy()) || leave_out.contains(&entry.path);
    each_file(folder, &leaves_out, &mut |entry| {
        let bytes = entry.about.len();
        if !is_source(&entry.path) || bytes > MAX_FILE_BYTES {
            return Ok(());
        }
        total += bytes;
        if total > MAX_TOTAL_BYTES {
            let most = MAX_TOTAL_BYTES >> 20;
            return Err(Error::file(
                folder,
                format!("holds more than {most} MiB of source; name a smaller --source"),
            ));
        }
        if let (Ok(text), Some(name)) = (fs::read_to_string(&entry.path), relative(folder, &entry.path)) {
            files.push((name, text));
        }
        Ok(())
    })
    .doing_with(|| format!("cannot read the sources in {}", folder.display()))?;
    Ok(Sources::new(files))
}

fn is_source(path: &Path) -> bool {
    const EXTENSIONS: [&str; 15] =
        ["c", "h", "cc", "cpp", "cxx", "C", "hh", "hpp", "hxx", "inl", "ipp", "S", "s", "asm", "rs"];
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|e| EXTENSIONS.contains(&e))
}

fn relative(root: &Path, path: &Path) -> Option<String> {
    Some(path.strip_prefix(root).ok()?.to_str()?.to_owned())
}
