//! The folder of a kernel's modules.

use crate::companions;
use crate::error::{Error, Result};
use crate::files;
use lineup_debuginfo::nearest;
use lineup_kernel::guest::DISK_MODULES;
use lineup_kernel::modules::{self, Module, module_name};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Modules named at most when the one wanted does not exist.
const NEAREST: usize = 5;

/// Folders of modules are not deeper than this.
const DEEPEST: usize = 12;

/// A module that a guest loads, and the file that it is from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModuleFile {
    /// The module.
    pub module: Module,
    /// Its file.
    pub path: PathBuf,
}

/// The modules that a guest loads, and the folder in which they are looked for.
#[derive(Clone, Copy, Debug)]
pub struct ToLoad<'a> {
    /// The kernel's image.
    pub image: &'a Path,
    /// Its release.
    pub release: &'a str,
    /// The folder of its modules; `None` for the one that the kernel's package puts next to the image.
    pub folder: Option<&'a Path>,
    /// The user's modules.
    pub named: &'a [String],
    /// True when the guest has a root on a disk.
    pub has_root: bool,
}

impl ToLoad<'_> {
    /// The modules in loading order, with their dependencies. A module that a root needs and that has no file is built
    /// into the kernel, or the guest reports that it is missing.
    ///
    /// # Errors
    /// When a module that the user named has no file, or one cannot be read or is another kernel's.
    pub fn files(&self) -> Result<Vec<ModuleFile>> {
        let found = self.all()?;
        let named: Vec<String> = self.named.iter().map(|name| name.replace('-', "_")).collect();
        if let Some(missing) = named.iter().find(|name| !found.contains_key(*name)) {
            let near = nearest(missing, found.keys().map(String::as_str), NEAREST).join(", ");
            let near = if near.is_empty() { near } else { format!("; there are {near}") };
            let what = format!(
                "no such module of {}{near}; it may be part of the image, or --modules may name another folder",
                self.release
            );
            return Err(Error::argument(format!("--module {missing}"), what));
        }
        let for_root = DISK_MODULES.iter().filter(|_| self.has_root).copied();
        let wanted: Vec<&str> = named.iter().map(String::as_str).chain(for_root).collect();
        let mut failed = None;
        let mut read = |name: &str| match companions::read(found.get(name)?) {
            Ok(bytes) => Some(bytes.to_vec()),
            Err(error) => {
                failed.get_or_insert(error);
                None
            }
        };
        let modules = modules::in_order(&wanted, self.release, &mut read)?;
        if let Some(error) = failed {
            return Err(error);
        }
        let with_path = |module: Module| Some(ModuleFile { path: found.get(&module.name)?.clone(), module });
        Ok(modules.into_iter().filter_map(with_path).collect())
    }

    /// The file of every module, by its name.
    ///
    /// # Errors
    /// When the user's path is not a folder, or cannot be listed.
    pub fn all(&self) -> Result<BTreeMap<String, PathBuf>> {
        let folder = match self.folder {
            Some(given) if given.is_dir() => Some(given.to_owned()),
            Some(given) => {
                return Err(Error::argument(format!("--modules {}", given.display()), "is no folder"));
            }
            None => beside(self.image, self.release),
        };
        let mut found = BTreeMap::new();
        if let Some(folder) = folder {
            collect(&folder, 0, &mut found)?;
        }
        Ok(found)
    }
}

/// Packages put the image into `boot`, and the modules into the sibling folder `lib/modules`; or both into
/// `lib/modules/RELEASE`, as Debian does from 7.2.12 on.
fn beside(image: &Path, release: &str) -> Option<PathBuf> {
    let image = image.canonicalize().ok()?;
    if let Some(own) = image.parent().filter(|folder| folder.file_name().is_some_and(|name| name == release))
    {
        return Some(own.to_owned());
    }
    let above = image.parent()?.parent().map(Path::to_owned);
    let roots = above.into_iter().chain([PathBuf::from("/")]);
    let folders = roots.flat_map(|root| ["lib/modules", "usr/lib/modules"].map(|modules| root.join(modules)));
    folders.map(|modules| modules.join(release)).find(|folder| folder.is_dir())
}

/// The file of a module below a folder of modules, or of their debug files.
pub fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut found = BTreeMap::new();
    // A folder that cannot be listed has no modules.
    collect(folder, 0, &mut found).ok()?;
    found.remove(name)
}

fn collect(folder: &Path, depth: usize, found: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in files::entries(folder)? {
        if entry.about.is_dir() && depth < DEEPEST {
            collect(&entry.path, depth + 1, found)?;
        } else if let Some(name) = entry.name.to_str().and_then(module_name) {
            found.entry(name).or_insert(entry.path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_lie_beside_the_images_folder_or_around_the_image() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path().canonicalize().expect("a path");
        for (image, modules) in [
            ("a/boot/vmlinuz-7.0", "a/lib/modules/7.0"),
            ("b/usr/lib/modules/7.0/vmlinuz", "b/usr/lib/modules/7.0"),
        ] {
            std::fs::create_dir_all(root.join(modules)).expect("makes");
            std::fs::create_dir_all(root.join(image).parent().expect("a folder")).expect("makes");
            std::fs::write(root.join(image), "").expect("writes");
            assert_eq!(beside(&root.join(image), "7.0"), Some(root.join(modules)));
        }
    }
}
