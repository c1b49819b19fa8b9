//! The copy of a kernel's tree: it leaves out the results of builds, and does not rewrite unchanged files.

use crate::error::{Doing, Result};
use crate::files::{FolderEntry, cannot_read, each_entry, each_file};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// True for a build's output in a tree: make would take it for one of our objects. kbuild notes how it made a file in a
/// neighbouring file, `.NAME.cmd`.
fn is_built(entry: &FolderEntry, tree: &Path) -> bool {
    let name = entry.name.to_string_lossy();
    let inside = entry.path.strip_prefix(tree).unwrap_or(&entry.path);
    if entry.about.is_dir() {
        return name == ".git" || name == "generated" || inside == Path::new("include/config");
    }
    let is_noted = || entry.path.with_file_name(format!(".{name}.cmd")).exists();
    let ends = [".cmd", ".o", ".ko", ".o.d", ".mod"];
    let is_at_top = inside == Path::new(&*name);
    let is_of_top = || {
        let named = [".config", ".config.old", ".version", "vmlinux", "System.map", "Module.symvers"];
        named.contains(&&*name) || name.starts_with("modules.") || name.starts_with(".tmp_")
    };
    ends.iter().any(|end| name.ends_with(end)) || (is_at_top && is_of_top()) || is_noted()
}

/// Brings the copy up to date with the tree. Different files are rewritten, and so are newer than every object.
pub(crate) fn refresh(tree: &Path, leave_out: &[PathBuf], copy: &Path) -> Result<()> {
    let is_new = !copy.exists();
    let leaves_out = |entry: &FolderEntry| leave_out.contains(&entry.path) || is_built(entry, tree);
    let mut known = BTreeSet::new();
    each_entry(tree, &leaves_out, &mut |entry| {
        if !(entry.about.is_file() || entry.about.is_symlink()) {
            return Ok(());
        }
        let inside = entry.path.strip_prefix(tree).unwrap_or(&entry.path).to_owned();
        let target = copy.join(&inside);
        known.insert(inside);
        if entry.about.is_symlink() {
            return link(&entry.path, &target);
        }
        let bytes = fs::read(&entry.path).doing_with(|| cannot_read(&entry.path))?;
        if !is_new && fs::read(&target).is_ok_and(|held| held == bytes) {
            return Ok(());
        }
        replace(&target, &bytes)?;
        fs::set_permissions(&target, entry.about.permissions())
            .doing_with(|| format!("cannot write {}", target.display()))
    })?;
    if is_new {
        return Ok(());
    }
    let mut gone = Vec::new();
    each_file(copy, &|_| false, &mut |entry| {
        let inside = entry.path.strip_prefix(copy).unwrap_or(&entry.path);
        if !known.contains(inside) {
            gone.push(entry.path.clone());
        }
        Ok(())
    })?;
    gone.iter()
        .try_for_each(|path| fs::remove_file(path).doing_with(|| format!("cannot remove {}", path.display())))
}

/// Copies a link unchanged: those of a kernel's tree lead to places in it.
fn link(from: &Path, to: &Path) -> Result<()> {
    let text = fs::read_link(from).doing_with(|| cannot_read(from))?;
    if fs::read_link(to).is_ok_and(|held| held == text) {
        return Ok(());
    }
    let cannot = || format!("cannot write {}", to.display());
    remove(to)?;
    make_folder_of(to)?;
    std::os::unix::fs::symlink(&text, to).doing_with(cannot)
}

/// Writes a file whole; the one that was there is gone first, also one that may not be written.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|held| held == bytes) {
        return Ok(());
    }
    let permissions =
        fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file).map(|file| file.permissions());
    let cannot = || format!("cannot write {}", path.display());
    remove(path)?;
    make_folder_of(path)?;
    fs::write(path, bytes).doing_with(cannot)?;
    match permissions {
        Some(permissions) => fs::set_permissions(path, permissions).doing_with(cannot),
        None => Ok(()),
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).doing_with(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn make_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).doing_with(|| format!("cannot make {}", folder.display()))
}
