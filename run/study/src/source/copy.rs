//! Copies a folder so that nothing that happens in the copy reaches the original, or the targets of the original's
//! links.

use crate::error::{Doing, Error, Result};
use crate::files::{cannot_read, entries};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// The targets of links to outside folders are copied as long as they have no more bytes than this.
const MOST_OUTSIDE_BYTES: u64 = 1 << 30;

/// The same limit as a number of files.
const MOST_OUTSIDE_FILES: u64 = 50_000;

/// Folders that belong to the system: no build writes there, so links into them are kept.
const SYSTEM: [&str; 12] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/gnu/store",
    "/lib",
    "/lib64",
    "/nix/store",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
];

/// A copy in the making.
pub(crate) struct Copying<'c> {
    /// The folder that is copied, canonical.
    source: &'c Path,
    /// The same folder as the user may have written it in links.
    spellings: Vec<PathBuf>,
    /// Paths that are not copied.
    leave_out: &'c [PathBuf],
    outside: (u64, u64),
}

/// Copies `source`, a canonical path, to `target`. Links into `source` lead into the copy afterwards. Outside targets
/// of links are copied in the links' place, unless they belong to the system.
pub(crate) fn copy(source: &Path, target: &Path, leave_out: &[PathBuf]) -> Result<()> {
    let mut spellings = vec![source.to_owned()];
    // The shell's idea of where it is keeps the links that the user went through.
    let typed = std::env::var_os("PWD").map(PathBuf::from).filter(|pwd| pwd.is_absolute());
    for typed in typed.iter().flat_map(|pwd| pwd.ancestors()).filter(|path| path.parent().is_some()) {
        if fs::canonicalize(typed).is_ok_and(|real| real == source) {
            spellings.push(typed.to_owned());
        }
    }
    let mut copying = Copying { source, spellings, leave_out, outside: (0, 0) };
    copying.folder(source, target, &mut vec![source.to_owned()])
}

impl Copying<'_> {
    fn folder(&mut self, from: &Path, to: &Path, above: &mut Vec<PathBuf>) -> Result<()> {
        fs::create_dir_all(to).doing_with(|| cannot_write(to))?;
        for entry in entries(from)? {
            let (path, target) = (entry.path, to.join(&entry.name));
            if entry.name == ".git" || self.leave_out.contains(&path) {
                continue;
            }
            if entry.about.is_symlink() {
                self.link(&path, &target, above)?;
            } else if entry.about.is_dir() {
                self.folder(&path, &target, above)?;
            } else if entry.about.is_file() {
                copy_file(&path, &target)?;
            }
        }
        set_modified(to, modified(from)?)
    }

    fn link(&mut self, path: &Path, target: &Path, above: &mut Vec<PathBuf>) -> Result<()> {
        let text = fs::read_link(path).doing_with(|| cannot_read(path))?;
        let folder = path.parent().unwrap_or(self.source);
        let named = normal(&folder.join(&text));
        let real = fs::canonicalize(path).ok();
        let inside = self.inside(&named).or_else(|| real.as_deref().and_then(|real| self.inside(real)));
        let within = folder.strip_prefix(self.source).ok();
        match (inside, real) {
            // Behind a link to the outside there is no place in the folder to count from.
            (Some(inside), _) if within.is_some() => {
                let up = within.map_or(0, |within| within.components().count());
                let text = if text.is_absolute() || self.inside(&named).is_none() || leaves(within, &text) {
                    std::iter::repeat_n(Path::new(".."), up).collect::<PathBuf>().join(inside)
                } else {
                    text
                };
                let text = if text.as_os_str().is_empty() { PathBuf::from(".") } else { text };
                make_link(&text, target)
            }
            (_, Some(real)) if !is_system(&real) => self.outside(path, &real, target, above),
            // It leads nowhere yet. Without it, a file that a build writes under its name stays in the copy.
            (_, None) if !is_system(&named) => Ok(()),
            _ => make_link(&text, target),
        }
    }

    /// Copies a link's target outside the folder.
    fn outside(&mut self, link: &Path, real: &Path, target: &Path, above: &mut Vec<PathBuf>) -> Result<()> {
        let refuse = |why: String| Error::LinkOutside { link: link.to_owned(), target: real.to_owned(), why };
        let too_large = || {
            let most = MOST_OUTSIDE_BYTES >> 20;
            refuse(format!("it is too large to copy: more than {MOST_OUTSIDE_FILES} files or {most} MiB"))
        };
        let kind = fs::metadata(real).doing_with(|| cannot_read(real))?;
        if above.iter().any(|folder| folder.starts_with(real)) {
            return Err(refuse("it cannot be copied, because it holds the link itself".into()));
        }
        if kind.is_file() {
            return if self.fits(kind.len()) { copy_file(real, target) } else { Err(too_large()) };
        }
        if !kind.is_dir() {
            return make_link(&fs::read_link(link).doing_with(|| cannot_read(link))?, target);
        }
        if !self.all_fit(real)? {
            return Err(too_large());
        }
        above.push(real.to_owned());
        self.folder(real, target, above)?;
        above.pop();
        Ok(())
    }

    /// Counts the files of a folder outside; false when there are too many.
    fn all_fit(&mut self, folder: &Path) -> Result<bool> {
        for entry in entries(folder)? {
            let fits = match entry.about.is_dir() {
                true => self.all_fit(&entry.path)?,
                false => !entry.about.is_file() || self.fits(entry.about.len()),
            };
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Counts a file from outside; false when there are too many.
    fn fits(&mut self, bytes: u64) -> bool {
        self.outside = (self.outside.0 + 1, self.outside.1 + bytes);
        self.outside.0 <= MOST_OUTSIDE_FILES && self.outside.1 <= MOST_OUTSIDE_BYTES
    }

    /// The path relative to the folder, when it lies in it.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        self.spellings.iter().find_map(|spelling| path.strip_prefix(spelling).ok()).map(Path::to_owned)
    }
}

/// True when a relative link, read in the folder `within`, goes through a folder outside.
fn leaves(within: Option<&Path>, text: &Path) -> bool {
    let mut depth = within.map_or(0, |within| within.components().count());
    text.components().any(|part| match part {
        Component::ParentDir => match depth.checked_sub(1) {
            Some(less) => {
                depth = less;
                false
            }
            None => true,
        },
        Component::Normal(_) => {
            depth += 1;
            false
        }
        _ => false,
    })
}

/// The path without `.` and `..`, as far as its text shows.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts
}

fn is_system(path: &Path) -> bool {
    path.parent().is_none() || SYSTEM.iter().any(|system| path.starts_with(system))
}

/// Copies one file with its permissions and modification time: `make` compares times to find outdated files.
fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).doing_with(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    set_modified(to, modified(from)?)
}

fn make_link(text: &Path, target: &Path) -> Result<()> {
    symlink(text, target).doing_with(|| cannot_write(target))
}

fn modified(path: &Path) -> Result<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).doing_with(|| cannot_read(path))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Needs no right to write, only to own.
pub(crate) fn set_modified(path: &Path, modified: SystemTime) -> Result<()> {
    let file = fs::File::open(path).doing_with(|| cannot_read(path))?;
    file.set_modified(modified).doing_with(|| format!("cannot set the time of {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder `source` with `main.c`, its sibling `beside`, and a place for a copy.
    fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let root = tempfile::tempdir().expect("a folder");
        let real = fs::canonicalize(root.path()).expect("a path");
        for folder in ["source/src", "beside"] {
            fs::create_dir_all(real.join(folder)).expect("a folder");
        }
        fs::write(real.join("source/main.c"), "original").expect("a file");
        fs::write(real.join("beside/shared.h"), "original").expect("a file");
        (root, real.join("source"), real.join("copy"))
    }

    #[test]
    fn links_into_the_folder_lead_into_the_copy() {
        let (root, source, target) = folders();
        symlink(source.join("main.c"), source.join("src/absolute.c")).expect("a link");
        symlink("../main.c", source.join("src/relative.c")).expect("a link");
        symlink("../../source/main.c", source.join("src/round.c")).expect("a link");
        symlink(&source, source.join("src/top")).expect("a link");
        symlink(source.join("later.o"), source.join("later")).expect("a link");
        copy(&source, &target, &[]).expect("copies");
        for name in ["src/absolute.c", "src/relative.c", "src/round.c", "src/top/main.c", "later"] {
            fs::write(target.join(name), "changed").expect(name);
        }
        assert_eq!(fs::read_to_string(source.join("main.c")).expect("a file"), "original");
        assert_eq!(fs::read_to_string(target.join("main.c")).expect("a file"), "changed");
        assert!(!source.join("later.o").exists());
        assert!(fs::symlink_metadata(target.join("src/relative.c")).expect("a link").is_symlink());
        drop(root);
    }

    #[test]
    fn what_links_lead_to_outside_is_not_written_through_the_copy() {
        let (root, source, target) = folders();
        symlink("../beside", source.join("folder")).expect("a link");
        symlink(source.join("../beside/shared.h"), source.join("file.h")).expect("a link");
        symlink("/usr/include", source.join("system")).expect("a link");
        symlink("../beside/later", source.join("later")).expect("a link");
        copy(&source, &target, &[]).expect("copies");
        for name in ["folder/shared.h", "file.h", "folder/new", "later"] {
            fs::write(target.join(name), "changed").expect(name);
        }
        let beside = root.path().join("beside");
        assert_eq!(fs::read_to_string(beside.join("shared.h")).expect("a file"), "original");
        assert!(!beside.join("new").exists() && !beside.join("later").exists());
        assert_eq!(fs::read_link(target.join("system")).expect("a link"), Path::new("/usr/include"));
    }

    #[test]
    fn a_link_to_a_folder_around_the_source_is_refused_by_name() {
        let (_root, source, target) = folders();
        symlink("..", source.join("up")).expect("a link");
        let said = format!("{:#}", copy(&source, &target, &[]).expect_err("refused"));
        assert!(said.contains("source/up") && said.contains("--source"), "{said}");
    }

    #[test]
    fn times_are_kept_of_files_that_cannot_be_written() {
        let (_root, source, target) = folders();
        let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        let file = source.join("main.c");
        set_modified(&file, old).expect("sets");
        let mut permissions = fs::metadata(&file).expect("a file").permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&file, permissions).expect("sets");
        copy(&source, &target, &[]).expect("copies");
        assert_eq!(fs::metadata(target.join("main.c")).expect("a file").modified().expect("a time"), old);
    }
}
