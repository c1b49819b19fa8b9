//! Files of programs that ran elsewhere or long ago, found by their build ids in the caches of this machine.

use crate::companions::{DEBUG_ROOT, DiskCompanions, read};
use crate::guest::modules;
use lineup_debuginfo::{Bytes, Companion, Companions, DebugInfo};
use lineup_kernel::Compression;
use lineup_mapping::FileBytes;
use std::path::{Path, PathBuf};

/// Looks for files by path and build id. It searches the folders that the user names, the file's own path, perf's cache
/// (`~/.debug`), the cache of debuginfod's clients, and the distributions' folders of debug files. It downloads
/// nothing.
#[derive(Clone, Debug)]
pub struct FilesByBuildId {
    folders: Vec<PathBuf>,
    perf: Option<PathBuf>,
    debuginfod: Option<PathBuf>,
}

impl FilesByBuildId {
    /// With the user's folders, and the caches of the user that runs this.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(home.as_ref()?.join(".cache")));
        let debuginfod = std::env::var_os("DEBUGINFOD_CACHE_PATH").map(PathBuf::from);
        FilesByBuildId {
            folders,
            perf: home.map(|home| home.join(".debug")),
            debuginfod: debuginfod.or_else(|| Some(cache?.join("debuginfod_client"))),
        }
    }

    /// The debug information of a file; `None` when no file with its build id is found. Without a build id only files
    /// at its path are tried, since nothing would show that another file is the same.
    pub fn load(&self, path: &str, build_id: Option<&[u8]>) -> Option<DebugInfo> {
        self.candidates(path, build_id).iter().filter(|path| path.is_file()).find_map(|candidate| {
            let mut companions = BothCompanions { near: DiskCompanions::of(candidate), files: self };
            let debug = DebugInfo::parse(read(candidate).ok()?, &mut companions).ok()?;
            let is_same = build_id.is_none_or(|wanted| debug.build_id() == Some(wanted));
            is_same.then_some(debug)
        })
    }

    /// The debug information of a module of the kernel of this release, by its name as the kernel writes it; packed
    /// files are unpacked. `None` when no file with its build id is found, in the caches or where distributions put
    /// modules and their debug files.
    pub fn load_module(&self, name: &str, build_id: Option<&[u8]>, release: &str) -> Option<DebugInfo> {
        let of_release = |root: &str| Path::new(root).join("lib/modules").join(release);
        let roots = self.folders.iter().cloned();
        let roots = roots.chain([DEBUG_ROOT, "/", "/usr"].map(of_release));
        let in_trees = roots.filter(|root| root.is_dir()).filter_map(|root| modules::find(&root, name));
        in_trees.filter_map(|path| self.parse_module(&path, build_id)).max_by_key(DebugInfo::has_debug_info)
    }

    fn parse_module(&self, path: &Path, build_id: Option<&[u8]>) -> Option<DebugInfo> {
        let packed = read(path).ok()?;
        let bytes = match Compression::of(&packed) {
            Some(compression) => Bytes::from(compression.unpack(&packed).ok()?),
            None => packed,
        };
        let mut companions = BothCompanions { near: DiskCompanions::of(path), files: self };
        let debug = DebugInfo::parse(bytes, &mut companions).ok()?;
        build_id.is_none_or(|wanted| debug.build_id() == Some(wanted)).then_some(debug)
    }

    /// The symbols of a kernel with this build id, as `/proc/kallsyms` has them: from perf's cache, which has them by
    /// the kernel's name, or of the kernel that runs.
    pub fn kallsyms(&self, name: &str, build_id: &[u8]) -> Option<String> {
        let id = BuildIdPath::of(build_id)?;
        let of_perf = self.perf.as_ref().map(|perf| perf.join(name).join(&id.whole).join("kallsyms"));
        let runs = || {
            let notes = std::fs::read("/sys/kernel/notes").ok()?;
            // The build id's note: length of the name, of the id, kind 3, the name.
            let head =
                [&[4, 0, 0, 0, build_id.len() as u8, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0", build_id].concat();
            let is_ours = notes.windows(head.len()).any(|at| at == head);
            is_ours.then(|| PathBuf::from("/proc/kallsyms"))
        };
        let path = of_perf.filter(|path| path.is_file()).or_else(runs)?;
        let bytes = FileBytes::open(&path).ok()?;
        Some(String::from_utf8_lossy(bytes.as_ref()).into_owned())
    }

    fn candidates(&self, path: &str, build_id: Option<&[u8]>) -> Vec<PathBuf> {
        let id = build_id.and_then(BuildIdPath::of);
        let is_file = path.starts_with('/');
        let mut all = Vec::new();
        for folder in &self.folders {
            if let Some(id) = &id {
                all.extend([folder.join(&id.plain), folder.join(&id.debug)]);
            }
            let name = Path::new(path).file_name().filter(|_| is_file);
            all.extend(is_file.then(|| folder.join(path.trim_start_matches('/'))));
            all.extend(name.map(|name| folder.join(name)));
        }
        all.extend(is_file.then(|| PathBuf::from(path)));
        let Some(id) = id else { return all };
        if let Some(perf) = &self.perf {
            all.extend(["elf", "vmlinux", "debug"].map(|name| perf.join(&id.plain).join(name)));
        }
        all.extend(self.cached(&id, "executable"));
        all.push(Path::new(DEBUG_ROOT).join(&id.debug));
        all.extend(self.cached(&id, "debuginfo"));
        all
    }

    fn cached(&self, id: &BuildIdPath, name: &str) -> Option<PathBuf> {
        Some(self.debuginfod.as_ref()?.join(&id.whole).join(name))
    }
}

/// The symbols of the kernel that runs and its modules, when it is of this release and shows where they lie.
pub fn symbols_of_running_kernel(release: &str) -> Option<String> {
    let runs = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let is_same = runs.trim_end() == release;
    let bytes = is_same.then(|| FileBytes::open(Path::new("/proc/kallsyms")).ok()).flatten()?;
    Some(String::from_utf8_lossy(bytes.as_ref()).into_owned())
}

/// A build id as caches spell it.
struct BuildIdPath {
    whole: String,
    plain: PathBuf,
    debug: PathBuf,
}

impl BuildIdPath {
    fn of(id: &[u8]) -> Option<BuildIdPath> {
        let (first, rest) = id.split_first().filter(|(_, rest)| !rest.is_empty())?;
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(BuildIdPath {
            whole: format!("{first:02x}{rest}"),
            plain: PathBuf::from(format!(".build-id/{first:02x}/{rest}")),
            debug: PathBuf::from(format!(".build-id/{first:02x}/{rest}.debug")),
        })
    }
}

/// Companions near a file, and by build id in the caches.
struct BothCompanions<'f> {
    near: DiskCompanions,
    files: &'f FilesByBuildId,
}

impl Companions for BothCompanions<'_> {
    fn find(&mut self, wanted: &Companion) -> Option<Bytes> {
        let of_caches = || {
            let Companion::BuildId(id) = wanted else { return None };
            let id = BuildIdPath::of(id)?;
            let folders = self.files.folders.iter().map(|folder| folder.join(&id.debug));
            let perf = self.files.perf.iter().map(|perf| perf.join(&id.plain).join("debug"));
            let all = folders.chain(self.files.cached(&id, "debuginfo")).chain(perf);
            all.filter(|path| path.is_file()).find_map(|path| read(&path).ok())
        };
        self.near.find(wanted).or_else(of_caches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::companions::load;

    /// Something with debug information and a build id: this test itself.
    fn own() -> (PathBuf, Vec<u8>) {
        let path = std::env::current_exe().expect("a test has a file");
        let id = load(&path).unwrap().build_id().expect("the linker gives build ids").to_vec();
        (path, id)
    }

    fn only(folder: &Path) -> FilesByBuildId {
        FilesByBuildId { folders: vec![folder.to_owned()], perf: None, debuginfod: None }
    }

    #[test]
    fn a_file_is_found_by_its_build_id_in_every_cache() {
        let (path, id) = own();
        let spelled = BuildIdPath::of(&id).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let nowhere = folder.path().join("nowhere");
        let root = |name: &str| folder.path().join(name);
        let caches = [
            (
                root("user").join(&spelled.plain),
                FilesByBuildId { folders: vec![root("user")], ..only(&nowhere) },
            ),
            (
                root("perf").join(&spelled.plain).join("elf"),
                FilesByBuildId { perf: Some(root("perf")), ..only(&nowhere) },
            ),
            (
                root("client").join(&spelled.whole).join("executable"),
                FilesByBuildId { debuginfod: Some(root("client")), ..only(&nowhere) },
            ),
        ];
        for (place, files) in caches {
            assert!(files.load("/nowhere/program", Some(&id)).is_none());
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(&path, &place).unwrap();
            let found = files.load("/nowhere/program", Some(&id)).expect("it lies there now");
            assert_eq!(found.build_id(), Some(&id[..]));
        }
    }

    #[test]
    fn a_file_of_another_build_is_not_taken() {
        let (path, mut id) = own();
        let folder = tempfile::tempdir().unwrap();
        let files = only(folder.path());
        let path = path.to_str().unwrap();
        assert!(files.load(path, None).is_some());
        assert!(files.load(path, Some(&id)).is_some());
        id[0] ^= 1;
        assert!(files.load(path, Some(&id)).is_none());
    }
}
