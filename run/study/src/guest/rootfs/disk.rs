//! The disk of a root: an ext4 file system in a file, made without being root.

use super::attributes::{Attributes, refused};
use crate::error::{Doing, Error, Result};
use crate::files;
use crate::process::interrupt::Interrupts;
use crate::process::tool;
use crate::recorder::on_path;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const BLOCK_BYTES: u64 = 4096;

/// A file system's own structures take some of each disk, and a folder's list of names may grow.
const SPARE_MIB: u64 = 16;

/// The emulator places disks at multiples of this; smaller ones would lie apart from their end.
const STEP_MIB: u64 = 2;

/// The same for every disk: the guest uses no identities, and different ones would make two disks of one folder differ.
const UUID: &str = "6c696e65-7570-4c69-8e65-75702d726f6f";

/// In a folder, files of Lineup's user belong to the guest's root, as if root had made them.
pub(super) fn attributes_of(folder: &Path) -> Result<Vec<Attributes>> {
    let us = rustix::process::geteuid().as_raw();
    if us == 0 {
        return Ok(Vec::new());
    }
    let mut attributes = Vec::new();
    each(folder, &mut |path, metadata| {
        if metadata.uid() == us {
            let mode = metadata.mode() & 0o7777;
            attributes.push(Attributes { path: path.to_owned(), mode, uid: 0, gid: 0 });
        }
    })?;
    Ok(attributes)
}

/// Makes a disk from a folder's content; returns its size in MiB.
pub(super) fn make(
    folder: &Path,
    attributes: &[Attributes],
    disk: &Path,
    interrupts: &Interrupts,
) -> Result<u64> {
    let (mut blocks, mut files) = (0, 0);
    each(folder, &mut |_, metadata| {
        files += 1;
        blocks += metadata.len().div_ceil(BLOCK_BYTES).max(1);
    })?;
    interrupts.check()?;
    let inodes = files + files / 8 + 1024;
    let bytes = blocks * BLOCK_BYTES * 21 / 20 + inodes * 256;
    let mib = (bytes.div_ceil(1 << 20) + SPARE_MIB).next_multiple_of(STEP_MIB);
    let mut command = Command::new(program("mke2fs")?);
    command.args(["-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-U", UUID]);
    command.args(["-b", &BLOCK_BYTES.to_string(), "-N", &inodes.to_string()]);
    command.args(["-E", &format!("root_owner=0:0,hash_seed={UUID},lazy_itable_init=0"), "-d"]);
    command.arg(folder).arg(disk).arg(format!("{mib}M")).env("E2FSPROGS_FAKE_TIME", "1767225600");
    run(&mut command, folder)?;
    set_attributes(folder, attributes, disk)?;
    Ok(mib)
}

/// Writes owners and modes that the host's files have not into the disk.
fn set_attributes(folder: &Path, attributes: &[Attributes], disk: &Path) -> Result<()> {
    let mut lines = String::new();
    for Attributes { path, mode, uid, gid } in attributes {
        let metadata = folder.join(path).symlink_metadata();
        let metadata = metadata.doing_with(|| format!("looking at {}", path.display()))?;
        let same = (u64::from(metadata.uid()), u64::from(metadata.gid())) == (*uid, *gid);
        let is_link = metadata.is_symlink();
        if same && (is_link || metadata.mode() & 0o7777 == *mode) {
            continue;
        }
        let name = path.to_str().filter(|name| !name.contains(['"', '\n']));
        let name = name.ok_or_else(|| refused(path, "has a name that cannot be written into a list"))?;
        let kind = metadata.mode() & 0o170_000;
        let mode = if is_link { metadata.mode() } else { kind | mode };
        for (field, value) in
            [("uid", uid.to_string()), ("gid", gid.to_string()), ("mode", format!("0{mode:o}"))]
        {
            let _ = writeln!(lines, "set_inode_field \"/{name}\" {field} {value}");
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    let script = disk.with_extension("attributes");
    std::fs::write(&script, lines).doing("cannot write a temporary file")?;
    run(Command::new(program("debugfs")?).args(["-w", "-f"]).arg(&script).arg(disk), folder)
}

fn program(name: &str) -> Result<PathBuf> {
    // Users other than root often lack these folders in their PATH.
    let usual = ["/usr/sbin", "/sbin"].map(|folder| Path::new(folder).join(name));
    let found = on_path(name).or_else(|| usual.into_iter().find(|path| path.is_file()));
    found.ok_or_else(|| Error::not_installed(name, "e2fsprogs"))
}

fn run(command: &mut Command, folder: &Path) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = tool::output(command).doing_with(|| format!("running {name}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(refused(folder, format!("cannot be made into a disk: {name}: {}", said.trim())))
}

/// Every file below a folder, with its path in it. Links are not followed.
fn each(folder: &Path, take: &mut dyn FnMut(&Path, &std::fs::Metadata)) -> Result<()> {
    let mut folders = vec![PathBuf::new()];
    while let Some(inside) = folders.pop() {
        for entry in files::entries(&folder.join(&inside))? {
            let path = inside.join(&entry.name);
            take(&path, &entry.about);
            if entry.about.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_and_modes_are_those_noted() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("a b")).unwrap();
        std::fs::write(root.join("a b/secret"), "x").unwrap();
        let disk = folder.path().join("disk");
        let noted = [Attributes { path: "a b/secret".into(), mode: 0o4111, uid: 33, gid: 44 }];
        let mib = make(&root, &noted, &disk, &Interrupts::watch().unwrap()).unwrap();
        assert_eq!(disk.metadata().unwrap().len(), mib << 20);
        let stat = Command::new(program("debugfs").unwrap())
            .args(["-R", "stat \"/a b/secret\""])
            .arg(&disk)
            .output();
        let stat = String::from_utf8(stat.unwrap().stdout).unwrap();
        let words: Vec<&str> = stat.split_whitespace().collect();
        let after = |word: &str| words[words.iter().position(|found| *found == word).unwrap() + 1];
        assert_eq!(
            (after("User:"), after("Group:"), after("Mode:"), after("Type:")),
            ("33", "44", "04111", "regular")
        );
    }
}
