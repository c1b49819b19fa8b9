//! Names for files that go through places where only some names do: an argument that is split at commas, a line of
//! text that is UTF-8.

use crate::error::{Doing, Result};
use rustix::fs::{Mode, OFlags, open};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// A file's name without commas, in UTF-8. If the file's own name does not qualify, the alias leads through a
/// descriptor of this process, and is valid only while the alias lives.
pub struct Alias {
    text: String,
    _held: Option<OwnedFd>,
}

impl Alias {
    /// A name for a file that exists. It must be absolute.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn of(path: &Path) -> Result<Alias> {
        if let Some(text) = path.to_str().filter(|text| !text.contains([',', '\n'])) {
            return Ok(Alias { text: text.to_owned(), _held: None });
        }
        let held = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .doing_with(|| format!("cannot open {}", path.display()))?;
        let text = format!("/proc/{}/fd/{}", std::process::id(), held.as_raw_fd());
        Ok(Alias { text, _held: Some(held) })
    }

    /// The name.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_file_is_read_and_written_by_its_alias_whatever_its_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in [b"plain".as_slice(), b"a,b", b"\xff\xfe", b"two\nlines"] {
            let path = folder.path().join(OsStr::from_bytes(name));
            std::fs::write(&path, name).unwrap();
            let alias = Alias::of(&path).unwrap();
            assert!(!alias.text().contains([',', '\n']));
            assert_eq!(std::fs::read(alias.text()).unwrap(), name);
            std::fs::write(alias.text(), b"new").unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"new");
        }
        assert!(Alias::of(&folder.path().join("no,thing")).is_err());
    }
}
