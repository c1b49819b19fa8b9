//! A tree of files, and the one that every guest needs.

use super::cpio;
use super::entry::InitramfsEntry;
use crate::error::Error;
use crate::guest;
use std::collections::BTreeMap;

/// A tree of files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tree {
    /// By path without the first slash. A folder sorts before its contents.
    entries: BTreeMap<String, InitramfsEntry>,
}

impl Tree {
    /// Puts an entry at an absolute path, with the folders that lead there. It replaces an existing entry.
    ///
    /// # Errors
    ///
    /// When the path is relative, has empty parts, `.` or `..`, or leads through something that is no folder.
    pub fn put(&mut self, path: &str, entry: InitramfsEntry) -> Result<(), Error> {
        let refuse = |why| Error::GuestPath { path: path.into(), why };
        let name = path.strip_prefix('/').ok_or_else(|| refuse("it is not absolute"))?;
        if name.contains(['\0', '\n']) {
            return Err(refuse("it has a control character"));
        }
        if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(refuse("a part of it is empty, '.' or '..'"));
        }
        for (end, _) in name.match_indices('/') {
            match self.entries.entry(name[..end].to_owned()).or_insert(InitramfsEntry::Directory) {
                InitramfsEntry::Directory => {}
                _ => return Err(refuse("a part of it is no folder")),
            }
        }
        self.entries.insert(name.into(), entry);
        Ok(())
    }

    /// The entry at an absolute path.
    pub fn get(&self, path: &str) -> Option<&InitramfsEntry> {
        self.entries.get(path.strip_prefix('/')?)
    }

    /// The sum of the sizes of all files, which is the guest memory they take.
    pub fn file_bytes(&self) -> u64 {
        let sizes = self.entries.values().map(|entry| match entry {
            InitramfsEntry::File { contents, .. } => contents.len() as u64,
            _ => 0,
        });
        sizes.sum()
    }

    /// The archive, as the kernel reads it.
    ///
    /// # Errors
    ///
    /// When a file is 4 GiB or larger.
    pub fn to_cpio(&self) -> Result<Vec<u8>, Error> {
        cpio::write(self.entries.iter().map(|(name, entry)| (name.as_str(), entry)))
    }
}

/// The tree that every guest needs: busybox under the names of its applets, devices, mount points, `/init`.
///
/// # Errors
///
/// Never for the fixed names it uses, but the caller's additions may clash with them.
pub fn base(busybox: &[u8], init: &str) -> Result<Tree, Error> {
    let mut tree = Tree::default();
    let program = |contents: &[u8]| InitramfsEntry::File { mode: 0o755, contents: contents.to_vec() };
    for folder in ["/dev", "/proc", "/sys", "/tmp", "/etc", "/root", "/lineup"] {
        tree.put(folder, InitramfsEntry::Directory)?;
    }
    // The kernel opens the console before any file system is mounted over /dev.
    tree.put("/dev/console", InitramfsEntry::Device { major: 5, minor: 1 })?;
    tree.put("/dev/null", InitramfsEntry::Device { major: 1, minor: 3 })?;
    tree.put("/bin/busybox", program(busybox))?;
    for applet in guest::APPLETS {
        tree.put(&format!("/bin/{applet}"), InitramfsEntry::Symlink { target: "busybox".into() })?;
    }
    tree.put(
        "/etc/hosts",
        InitramfsEntry::File { mode: 0o644, contents: b"127.0.0.1 localhost\n".to_vec() },
    )?;
    tree.put("/init", program(init.as_bytes()))?;
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_on_the_way_are_made_and_bad_names_refused() {
        let mut tree = Tree::default();
        let file = || InitramfsEntry::File { mode: 0o644, contents: vec![1, 2, 3] };
        tree.put("/a/b/c", file()).unwrap();
        assert_eq!(tree.get("/a/b"), Some(&InitramfsEntry::Directory));
        assert_eq!(tree.file_bytes(), 3);
        for (path, why) in [
            ("a", "not absolute"),
            ("/a/../b", "'..'"),
            ("/a//b", "empty"),
            ("/a/b/c/d", "no folder"),
            ("/a\nb", "control"),
        ] {
            let error = tree.put(path, file()).unwrap_err().to_string();
            assert!(error.contains(why), "{path}: {error}");
        }
    }

    #[test]
    fn a_guest_has_what_the_kernel_needs_to_start() {
        let tree = base(b"busybox", "#!/bin/sh\n").unwrap();
        assert_eq!(tree.get("/dev/console"), Some(&InitramfsEntry::Device { major: 5, minor: 1 }));
        assert_eq!(tree.get("/bin/sh"), Some(&InitramfsEntry::Symlink { target: "busybox".into() }));
        assert_eq!(
            tree.get("/init"),
            Some(&InitramfsEntry::File { mode: 0o755, contents: b"#!/bin/sh\n".to_vec() })
        );
    }
}
