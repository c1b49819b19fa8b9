//! The folder of a kernel's modules.

use crate::companions;
use crate::error::{Error, Result};
use crate::files;
use lineup_kernel::guest::DISK_MODULES;
use lineup_kernel::modules::{self, Module, module_name};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Folders of modules are not deeper than this.
const DEEPEST: usize = 12;

/// The modules that a guest loads to mount its root, in their order: from the folder that the user gave, else from the
/// one that the kernel's package puts beside the image. A kernel without modules has what it needs built in, or says so.
pub(super) fn for_root(image: &Path, release: &str, given: Option<&Path>) -> Result<Vec<Module>> {
    let folder = match given {
        Some(given) if given.is_dir() => Some(given.to_owned()),
        Some(given) => return Err(Error::argument(format!("--modules {}", given.display()), "is no folder")),
        None => beside(image, release),
    };
    let mut found = BTreeMap::new();
    if let Some(folder) = folder {
        collect(&folder, 0, &mut found)?;
    }
    let mut failed = None;
    let mut read = |name: &str| match companions::read(found.get(name)?) {
        Ok(bytes) => Some(bytes.to_vec()),
        Err(error) => {
            failed.get_or_insert(error);
            None
        }
    };
    let modules = modules::in_order(DISK_MODULES, release, &mut read)?;
    failed.map_or(Ok(modules), Err)
}

/// Packages put the image into `boot`, and the modules into `lib/modules` beside it.
fn beside(image: &Path, release: &str) -> Option<PathBuf> {
    let image = image.canonicalize().ok()?;
    let above = image.parent()?.parent().map(Path::to_owned);
    let roots = above.into_iter().chain([PathBuf::from("/")]);
    let folders = roots.flat_map(|root| ["lib/modules", "usr/lib/modules"].map(|modules| root.join(modules)));
    folders.map(|modules| modules.join(release)).find(|folder| folder.is_dir())
}

/// The file of a module below a folder of modules, or of their debug files.
pub(crate) fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut found = BTreeMap::new();
    // What cannot be listed has none.
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
