//! Files of a folder that name the folder itself by its absolute path, such as those of a configured build.

use crate::error::{Doing, Result};
use crate::files::{FolderEntry, cannot_read, each_file};
use crate::source::stale_outputs;
use memchr::memmem;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Larger files are data, not instructions for a build.
const MOST_BYTES: u64 = 64 << 20;

/// The files below `folder` that hold the path of `source`, relative to `folder`. Compilers' outputs are left out:
/// debug information names folders without leading a build anywhere.
pub(crate) fn find(folder: &Path, source: &Path, leave_out: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let leaves_out = |entry: &FolderEntry| entry.name == ".git" || leave_out.contains(&entry.path);
    each_file(folder, &leaves_out, &mut |entry| {
        if entry.about.len() > MOST_BYTES {
            return Ok(());
        }
        let bytes = fs::read(&entry.path).doing_with(|| cannot_read(&entry.path))?;
        if !stale_outputs::starts_as_made(&bytes) && names(&bytes, source) {
            found.push(entry.path.strip_prefix(folder).unwrap_or(&entry.path).to_owned());
        }
        Ok(())
    })?;
    found.sort();
    Ok(found)
}

/// The bytes with the path of `source` replaced.
pub(crate) fn repointed(bytes: &[u8], source: &Path, target: &Path) -> Vec<u8> {
    let length = source.as_os_str().len();
    let (mut new, mut from) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(at) = place(bytes, source, from) {
        new.extend_from_slice(bytes.get(from..at).unwrap_or_default());
        new.extend_from_slice(target.as_os_str().as_bytes());
        from = at + length;
    }
    new.extend_from_slice(bytes.get(from..).unwrap_or_default());
    new
}

/// True when the bytes hold the path of `source`, or of something below it.
pub(crate) fn names(bytes: &[u8], source: &Path) -> bool {
    place(bytes, source, 0).is_some()
}

/// The position at which the bytes name the path or something below it, searched from `from` on.
fn place(bytes: &[u8], source: &Path, from: usize) -> Option<usize> {
    let path = source.as_os_str().as_bytes();
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+');
    let is_whole = |at: &usize| {
        let starts = *at == 0 || !bytes.get(at - 1).is_some_and(|byte| goes_on(byte) || *byte == b'/');
        // A compiler's `-I/folder` is whole, too.
        let after_option = *at >= 2 && bytes.get(at - 2) == Some(&b'-');
        (starts || after_option) && !bytes.get(at + path.len()).is_some_and(goes_on)
    };
    let rest = bytes.get(from..)?;
    memmem::find_iter(rest, path).map(|at| at + from).find(is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_whole_and_replaced() {
        let source = Path::new("/home/u/p");
        let text = b"-I/home/u/p/include:/home/u/p, /home/u/p2 x/home/u/p /srv/home/u/p";
        let new = repointed(text, source, Path::new("/tmp/c"));
        assert_eq!(new, b"-I/tmp/c/include:/tmp/c, /home/u/p2 x/home/u/p /srv/home/u/p");
    }

    #[test]
    fn what_compilers_made_does_not_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = Path::new("/home/u/p");
        fs::write(folder.path().join("x.o"), b"\x7fELF /home/u/p/x.c").expect("a file");
        fs::write(folder.path().join("Makefile"), b"SRC = /home/u/p/src\n").expect("a file");
        let found = find(folder.path(), source, &[]).expect("finds");
        assert_eq!(found, [Path::new("Makefile")]);
    }
}
