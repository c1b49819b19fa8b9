//! Opening files, and finding those that a program's debug information lives in.

use crate::error::{Doing, Error, Result};
use lineup_debuginfo::{Bytes, Companion, Companions, DebugInfo, Releasable};
use lineup_mapping::FileBytes;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The folder where distributions put separate debug files.
pub const DEBUG_ROOT: &str = "/usr/lib/debug";

/// The bytes of a whole file.
pub fn read(path: &Path) -> Result<Bytes> {
    let bytes = FileBytes::open(path).doing_with(|| format!("cannot read {}", path.display()))?;
    Ok(Bytes::releasable(ReleasableFile(bytes)))
}

/// A file's bytes as the debug information's reader wants them.
struct ReleasableFile(FileBytes);

impl AsRef<[u8]> for ReleasableFile {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl Releasable for ReleasableFile {
    fn release(&self, range: Range<usize>) {
        self.0.release(range);
    }
}

/// Looks for companion files where linkers, compilers and distributions put them.
pub struct DiskCompanions {
    program: PathBuf,
}

impl DiskCompanions {
    /// For the program at this path.
    pub fn of(program: &Path) -> Self {
        DiskCompanions { program: std::fs::canonicalize(program).unwrap_or_else(|_| program.to_owned()) }
    }

    fn candidates(&self, wanted: &Companion) -> Vec<PathBuf> {
        let directory = self.program.parent().unwrap_or(Path::new("."));
        match wanted {
            Companion::BuildId(id) => build_id_path(id).into_iter().collect(),
            Companion::DebugLink { name, .. } => {
                let root = Path::new(DEBUG_ROOT);
                let mirrored = directory.strip_prefix("/").map(|directory| root.join(directory).join(name));
                let near = [directory.join(name), directory.join(".debug").join(name)];
                // The program itself may have the name that it links to.
                near.into_iter().chain(mirrored).filter(|path| *path != self.program).collect()
            }
            Companion::DwoFile { name, comp_dir, .. } => {
                let compiled_in = comp_dir.as_deref().map(Path::new).unwrap_or(directory);
                let file_name = Path::new(name).file_name().map(|name| directory.join(name));
                [compiled_in.join(name), directory.join(name)].into_iter().chain(file_name).collect()
            }
            Companion::Dwp => {
                let mut name = self.program.clone().into_os_string();
                name.push(".dwp");
                vec![name.into()]
            }
            Companion::AltLink { name, build_id } => {
                let near = [directory.join(name), Path::new(DEBUG_ROOT).join(name)];
                let shared =
                    Path::new(name).file_name().map(|name| Path::new(DEBUG_ROOT).join(".dwz").join(name));
                near.into_iter().chain(shared).chain(build_id_path(build_id)).collect()
            }
        }
    }
}

impl Companions for DiskCompanions {
    fn find(&mut self, wanted: &Companion) -> Option<Bytes> {
        self.candidates(wanted).iter().filter(|path| path.is_file()).find_map(|path| read(path).ok())
    }
}

/// The path at which the debug file with a build id is installed.
fn build_id_path(id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(Path::new(DEBUG_ROOT).join(format!(".build-id/{first:02x}/{rest}.debug")))
}

/// Reads a program's debug info with its companions.
pub fn load(program: &Path) -> Result<DebugInfo> {
    let debug = DebugInfo::parse(read(program)?, &mut DiskCompanions::of(program))
        .map_err(|cause| Error::DebugInfo { file: format!("cannot read {}", program.display()), cause })?;
    Ok(debug)
}

/// Debug information of files, each read only once.
#[derive(Default)]
pub struct DebugInfos {
    read: BTreeMap<PathBuf, Option<DebugInfo>>,
}

impl DebugInfos {
    /// A file's debug information, read if need be; `None` when it cannot be read.
    pub fn of(&mut self, file: &Path) -> Option<&DebugInfo> {
        self.of_with(file, || load(file).ok())
    }

    fn of_with(&mut self, file: &Path, read: impl FnOnce() -> Option<DebugInfo>) -> Option<&DebugInfo> {
        self.read.entry(file.to_owned()).or_insert_with(read).as_ref()
    }

    /// The debug information of a file that was mapped from one path and is now at another.
    pub fn of_moved(&mut self, mapped: &Path, file: &Path) -> Option<&DebugInfo> {
        self.of_with(mapped, || load(file).ok())
    }

    /// Adds debug information that was read already.
    pub fn add(&mut self, file: &Path, debug: DebugInfo) {
        self.read.insert(file.to_owned(), Some(debug));
    }

    /// A file's debug information, handed over to the caller; calls `read` when it was not read yet.
    pub fn take_or(&mut self, file: &Path, read: impl FnOnce() -> Option<DebugInfo>) -> Option<DebugInfo> {
        self.read.remove(file).flatten().or_else(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Something with debug information: this test itself.
    fn own() -> PathBuf {
        std::env::current_exe().expect("a test has a file")
    }

    #[test]
    fn a_file_is_read_once_however_often_it_is_asked_for() {
        let mut infos = DebugInfos::default();
        let (mut reads, mut failures) = (0, 0);
        for _ in 0..3 {
            let found = infos.of_with(&own(), || {
                reads += 1;
                load(&own()).ok()
            });
            assert!(found.is_some());
            let none = infos.of_with(Path::new("/nowhere"), || {
                failures += 1;
                None
            });
            assert!(none.is_none());
        }
        assert!(infos.take_or(&own(), || unreachable!("it was read")).is_some());
        assert_eq!((reads, failures), (1, 1));
    }
}
