//! Reads the source files of a folder into memory.

use anyhow::{Context, Result, bail};
use lineup_advise::sources::{Sources, is_hidden};
use std::fs;
use std::path::{Path, PathBuf};

/// A source file larger than this is left out: it is generated data, not text that someone edits.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// All source files of a folder together may not be larger than this.
const MAX_TOTAL_BYTES: u64 = 1 << 30;

/// Reads every C, C++ and assembly file below `folder`, but for the folders in `leave_out` and for what version
/// control, patch systems and editors keep. Files that are no UTF-8 are left out: an edit could not keep them as they
/// are.
pub fn read(folder: &Path, leave_out: &[PathBuf]) -> Result<Sources> {
    let mut files = Vec::new();
    let mut total = 0;
    collect((folder, leave_out), folder, &mut files, &mut total)
        .with_context(|| format!("cannot read the sources in {}", folder.display()))?;
    Ok(Sources::new(files))
}

fn collect(
    (root, leave_out): (&Path, &[PathBuf]),
    folder: &Path,
    files: &mut Vec<(String, String)>,
    total: &mut u64,
) -> Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        if is_hidden(&entry.file_name().to_string_lossy()) || leave_out.contains(&path) {
            continue;
        }
        if kind.is_dir() {
            collect((root, leave_out), &path, files, total)?;
        } else if kind.is_file() && is_source(&path) {
            let size = entry.metadata()?.len();
            if size > MAX_FILE_BYTES {
                continue;
            }
            *total += size;
            if *total > MAX_TOTAL_BYTES {
                bail!("more than {} MiB of source; name a smaller --source", MAX_TOTAL_BYTES >> 20);
            }
            if let (Ok(text), Some(name)) = (fs::read_to_string(&path), relative(root, &path)) {
                files.push((name, text));
            }
        }
    }
    Ok(())
}

fn is_source(path: &Path) -> bool {
    const EXTENSIONS: [&str; 14] =
        ["c", "h", "cc", "cpp", "cxx", "C", "hh", "hpp", "hxx", "inl", "ipp", "S", "s", "asm"];
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|e| EXTENSIONS.contains(&e))
}

fn relative(root: &Path, path: &Path) -> Option<String> {
    Some(path.strip_prefix(root).ok()?.to_str()?.to_owned())
}
