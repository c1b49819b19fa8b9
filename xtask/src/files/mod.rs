//! Rules on the files of crates: how they lie in folders, and that none uses another in a circle.

mod circles;
mod module_tree;

use anyhow::Result;
use cargo_metadata::{Metadata, Package};
use module_tree::ModuleTree;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// More Rust files than these in one folder hide the design.
const MOST_FILES: usize = 26;

/// How many folders below `src` a file may lie.
const DEEPEST: usize = 3;

/// The broken rules, one sentence each, over all crates of the workspace.
///
/// # Errors
///
/// A source file cannot be read, or is not Rust.
pub(crate) fn check(metadata: &Metadata) -> Result<Vec<String>> {
    let workspace = metadata.workspace_root.as_std_path();
    let mut broken = Vec::new();
    for package in metadata.workspace_packages() {
        broken.extend(folders(package, workspace)?);
        for root in roots(package) {
            let tree = ModuleTree::read(root)?;
            broken.extend(circles::check(&tree.uses(), workspace));
        }
    }
    Ok(broken)
}

/// The source files of all crates of the workspace.
///
/// # Errors
///
/// A folder cannot be read.
pub(crate) fn sources(metadata: &Metadata) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for package in metadata.workspace_packages() {
        if let Some(folder) = package.manifest_path.as_std_path().parent() {
            collect(&folder.join("src"), &mut files)?;
        }
    }
    Ok(files)
}

/// The root files of a package's library and programs.
fn roots(package: &Package) -> impl Iterator<Item = &Path> {
    let targets = package.targets.iter().filter(|target| {
        !target.is_test() && !target.is_bench() && !target.is_example() && !target.is_custom_build()
    });
    targets.map(|target| target.src_path.as_std_path())
}

fn folders(package: &Package, workspace: &Path) -> Result<Vec<String>> {
    let Some(folder) = package.manifest_path.as_std_path().parent() else { return Ok(Vec::new()) };
    let source = folder.join("src");
    let mut files = Vec::new();
    collect(&source, &mut files)?;
    let mut counts: BTreeMap<&Path, usize> = BTreeMap::new();
    let mut broken = Vec::new();
    for file in &files {
        let Some(held) = file.parent() else { continue };
        *counts.entry(held).or_default() += 1;
        let short = file.strip_prefix(workspace).unwrap_or(file).display();
        if held.strip_prefix(&source).is_ok_and(|below| below.components().count() > DEEPEST) {
            broken.push(format!("{short} lies more than {DEEPEST} folders below src"));
        }
        if file.with_extension("").is_dir() {
            broken.push(format!("{short} is the module of a folder: name it mod.rs in that folder"));
        }
    }
    broken.extend(counts.into_iter().filter(|(_, count)| *count > MOST_FILES).map(|(folder, count)| {
        let short = folder.strip_prefix(workspace).unwrap_or(folder).display();
        format!("{short} has {count} files; the limit is {MOST_FILES}: group them in folders")
    }));
    Ok(broken)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}
