//! Reads the source files of a folder into memory.

use crate::error::{Doing, Error, Result};
use crate::files::{FolderEntry, each_file};
use lineup_advise::sources::{Sources, is_hidden};
use std::fs;
use std::path::{Path, PathBuf};

/// A source file larger than this is left out: it is generated data, not text that someone edits.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// All source files of a folder together may be as large as this on any machine. A kernel's tree is larger.
const USUAL_TOTAL_BYTES: u64 = 1 << 30;

/// Reads every C, C++, assembly and Rust file below `folder`, except for the folders in `leave_out` and the folders of
/// version control, patch systems and editors. Files that are not UTF-8 are left out: an edit could not preserve them.
///
/// # Errors
/// When a folder cannot be listed, and before anything is read when this machine has no memory for the texts.
pub fn read(folder: &Path, leave_out: &[PathBuf]) -> Result<Sources> {
    let (mut paths, mut total_bytes) = (Vec::new(), 0);
    let leaves_out =
        |entry: &FolderEntry| is_hidden(&entry.name.to_string_lossy()) || leave_out.contains(&entry.path);
    each_file(folder, &leaves_out, &mut |entry| {
        let bytes = entry.about.len();
        if is_source(&entry.path) && bytes <= MAX_FILE_BYTES {
            total_bytes += bytes;
            paths.push(entry.path.clone());
        }
        Ok(())
    })
    .doing_with(|| format!("cannot read the sources in {}", folder.display()))?;
    let most_bytes = most_bytes(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
    if total_bytes > most_bytes {
        let [total, most] = [total_bytes, most_bytes].map(|bytes| bytes >> 20);
        return Err(Error::file(
            folder,
            format!(
                "holds {total} MiB of source, and this machine has room for {most} MiB; name a smaller --source"
            ),
        ));
    }
    let named = |path: &PathBuf| Some((relative(folder, path)?, fs::read_to_string(path).ok()?));
    Ok(Sources::new(paths.iter().filter_map(named)))
}

/// The most source that is read: half of the memory that this list, as in `/proc/meminfo`, says is available.
fn most_bytes(memory: &str) -> u64 {
    let available = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = available.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    USUAL_TOTAL_BYTES.max(kib.unwrap_or(0) * 1024 / 2)
}

fn is_source(path: &Path) -> bool {
    const EXTENSIONS: [&str; 15] =
        ["c", "h", "cc", "cpp", "cxx", "C", "hh", "hpp", "hxx", "inl", "ipp", "S", "s", "asm", "rs"];
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|e| EXTENSIONS.contains(&e))
}

fn relative(root: &Path, path: &Path) -> Option<String> {
    Some(path.strip_prefix(root).ok()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_half_of_the_available_memory_and_never_less_than_a_gibibyte() {
        let of = |kib: &str| most_bytes(&format!("MemTotal: 99 kB\nMemAvailable:   {kib} kB\n"));
        assert_eq!(of("8388608"), 4 << 30);
        assert_eq!(of("1000"), 1 << 30);
        assert_eq!(most_bytes(""), 1 << 30);
    }
}
