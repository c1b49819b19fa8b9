//! The root file system of a guest: a folder, or archives of a container image's layers, and the disk built from it.

mod archive;
mod attributes;
mod disk;

use crate::error::{Doing, Result};
use crate::files::not_utf8;
use crate::process::folder::TempFolder;
use crate::process::interrupt::Interrupts;
use crate::progress::Progress;
use lineup_kernel::machine::RootImage;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// The most links followed on the way to one file, as in the kernel.
const MOST_LINKS: usize = 40;

/// The folders of a root's programs.
const PROGRAM_FOLDERS: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// A root file system, ready to be mounted by guests.
pub struct Rootfs {
    /// Its content, as files of the host.
    folder: PathBuf,
    disk: PathBuf,
    mib: u64,
    /// Keeps the disk and the unpacked files alive.
    _scratch: TempFolder,
}

impl Rootfs {
    /// Makes the disk. A single folder is taken unchanged; archives are laid over each other in their order.
    pub fn open(given: &[PathBuf], progress: &dyn Progress, interrupts: &Interrupts) -> Result<Rootfs> {
        let scratch = interrupts.temporary_folder().doing("cannot make a temporary folder")?;
        progress.stage("making the disk of the guest's root");
        let (folder, attributes) = match given {
            [folder] if folder.is_dir() => (folder.clone(), disk::attributes_of(folder)?),
            _ => {
                let unpacked = scratch.path().join("root");
                std::fs::create_dir(&unpacked).doing("cannot make a temporary folder")?;
                (unpacked.clone(), archive::unpack(given, &unpacked, interrupts)?)
            }
        };
        let disk = scratch.path().join("disk");
        let mib = disk::make(&folder, &attributes, &disk, interrupts)?;
        Ok(Rootfs { folder, disk, mib, _scratch: scratch })
    }

    /// The disk, for the emulator.
    pub fn image(&self) -> Result<RootImage> {
        let file = self.disk.to_str().ok_or_else(|| not_utf8(&self.disk))?;
        Ok(RootImage { file: file.to_owned(), mib: self.mib })
    }

    /// The program of a name without a slash.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let places = PROGRAM_FOLDERS.iter().map(|folder| Path::new(folder).join(name));
        places.into_iter().find_map(|place| {
            let file = self.on_host(&place)?;
            let metadata = file.metadata().ok()?;
            (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(place)
        })
    }

    /// True when the root has something at an absolute path.
    pub fn holds(&self, path: &Path) -> bool {
        self.on_host(path).is_some()
    }

    /// The file of the host that a path of the root leads to: links lead to places in the root, not on the host.
    pub fn on_host(&self, path: &Path) -> Option<PathBuf> {
        let mut links = 0;
        let mut left: Vec<PathBuf> = parts(path);
        let mut inside = PathBuf::new();
        while let Some(part) = left.pop() {
            if part == Path::new("..") {
                inside.pop();
                continue;
            }
            let next = inside.join(&part);
            let here = self.folder.join(&next);
            let metadata = here.symlink_metadata().ok()?;
            if !metadata.is_symlink() {
                inside = next;
                continue;
            }
            links += 1;
            let target = here.read_link().ok().filter(|_| links <= MOST_LINKS)?;
            if target.is_absolute() {
                inside = PathBuf::new();
            }
            left.extend(parts(&target));
        }
        Some(self.folder.join(inside))
    }
}

/// A path's parts, the first one last.
fn parts(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    let mut parts: Vec<PathBuf> = parts.map(|part| PathBuf::from(part.as_os_str())).collect();
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_lead_to_places_in_the_root() {
        let given = tempfile::tempdir().unwrap();
        let root = given.path();
        std::fs::create_dir_all(root.join("usr/bin")).unwrap();
        std::fs::write(root.join("usr/bin/program"), "").unwrap();
        std::fs::set_permissions(root.join("usr/bin/program"), std::fs::Permissions::from_mode(0o755))
            .unwrap();
        symlink("usr/bin", root.join("bin")).unwrap();
        symlink("/bin/program", root.join("usr/bin/alternative")).unwrap();
        symlink("/etc/passwd", root.join("usr/bin/outside")).unwrap();
        symlink("round", root.join("round")).unwrap();
        let interrupts = Interrupts::watch().unwrap();
        let rootfs = Rootfs::open(&[root.to_owned()], &Silent, &interrupts).unwrap();
        assert_eq!(rootfs.program("alternative"), Some("/usr/bin/alternative".into()));
        assert_eq!(rootfs.on_host(Path::new("/usr/bin/alternative")), Some(root.join("usr/bin/program")));
        assert_eq!(rootfs.on_host(Path::new("/bin/../../../usr/bin")), Some(root.join("usr/bin")));
        assert!(!rootfs.holds(Path::new("/usr/bin/outside")) && !rootfs.holds(Path::new("/round")));
        assert_eq!(rootfs.program("absent"), None);
    }
}
