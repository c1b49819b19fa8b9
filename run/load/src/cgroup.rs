//! Control groups that divide CPU time by weight, versions 1 and 2.

use crate::error::LoadError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The hierarchy in which groups are created, and the form of their weight.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Hierarchy {
    /// Version 1: `cpu.shares`, 1024 by default.
    V1(PathBuf),
    /// Version 2: `cpu.weight`, 100 by default.
    V2(PathBuf),
}

/// The beginning of the names of our groups; the process id of their owner follows.
const PREFIX: &str = "lineup-";

impl Hierarchy {
    /// Finds the hierarchy of the cpu controller from the text of `/proc/self/mounts`.
    ///
    /// # Errors
    /// When none is mounted.
    pub fn find(mounts: &str) -> Result<Self, LoadError> {
        let fields = |line: &str| -> Option<(PathBuf, String, String)> {
            let mut words = line.split_whitespace().skip(1);
            Some((words.next()?.into(), words.next()?.to_owned(), words.next()?.to_owned()))
        };
        let mounted: Vec<_> = mounts.lines().filter_map(fields).collect();
        let first = |kind: &str, fits: &dyn Fn(&Path, &str) -> bool| {
            let mut fitting = mounted.iter().filter(|(path, of, options)| of == kind && fits(path, options));
            fitting.next().map(|(path, ..)| path.clone())
        };
        if let Some(path) = first("cgroup", &|_, options| options.split(',').any(|option| option == "cpu")) {
            return Ok(Hierarchy::V1(path));
        }
        let controls_cpu = |path: &Path| {
            let controllers = fs::read_to_string(path.join("cgroup.controllers")).unwrap_or_default();
            controllers.split_whitespace().any(|controller| controller == "cpu")
        };
        first("cgroup2", &|path, _| controls_cpu(path)).map(Hierarchy::V2).ok_or(LoadError::NoCpuController)
    }

    /// The root of the hierarchy.
    pub fn root(&self) -> &Path {
        match self {
            Hierarchy::V1(path) | Hierarchy::V2(path) => path,
        }
    }

    /// Makes a group with this many shares (2 to 262144; 1024 is usual) and the given number among the
    /// groups of the owning process.
    ///
    /// # Errors
    /// When the shares are out of range or the kernel does not allow it.
    pub fn create(&self, owner: u32, number: u32, shares: u64) -> Result<Group, LoadError> {
        if !(2..=262_144).contains(&shares) {
            return Err(LoadError::Parameter {
                what: "the shares of a group",
                value: shares,
                range: "from 2 to 262144",
            });
        }
        if let Hierarchy::V2(root) = self {
            write(&root.join("cgroup.subtree_control"), "+cpu")?;
        }
        let path = self.root().join(format!("{PREFIX}{owner}-{number}"));
        fs::create_dir(&path).map_err(|source| LoadError::Group { path: path.clone(), source })?;
        let group = Group { path };
        match self {
            Hierarchy::V1(_) => write(&group.path.join("cpu.shares"), &shares.to_string())?,
            Hierarchy::V2(_) => write(&group.path.join("cpu.weight"), &weight(shares).to_string())?,
        }
        Ok(group)
    }

    /// Removes groups that an owner left behind when it was killed; `is_alive` tells which owners are.
    /// Returns how many were removed.
    pub fn sweep(&self, is_alive: impl Fn(u32) -> bool) -> usize {
        let Ok(entries) = fs::read_dir(self.root()) else { return 0 };
        let left_behind = |path: &Path| {
            let name = path.file_name()?.to_str()?;
            let owner = name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()?;
            (!is_alive(owner)).then_some(())
        };
        let paths = entries.filter_map(|entry| entry.ok()).map(|entry| entry.path());
        paths.filter(|path| left_behind(path).is_some() && fs::remove_dir(path).is_ok()).count()
    }
}

/// A group that is removed when dropped; its processes must have ended by then.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
}

impl Group {
    /// Moves a process, with all its threads, into the group.
    ///
    /// # Errors
    /// When the kernel does not allow it.
    pub fn add(&self, process: u32) -> Result<(), LoadError> {
        write(&self.path.join("cgroup.procs"), &process.to_string())
    }

    /// The group's folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A process that has just ended may still be accounted to the group for a moment.
        for _ in 0..100 {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                _ => return,
            }
        }
    }
}

/// Version 2's weight for version 1's shares: 2 … 262144 become 1 … 10000 linearly, as container
/// runtimes convert them.
fn weight(shares: u64) -> u64 {
    1 + (shares - 2) * 9999 / 262_142
}

fn write(path: &Path, text: &str) -> Result<(), LoadError> {
    fs::write(path, text).map_err(|source| LoadError::Group { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_is_preferred_where_it_has_the_cpu_controller() {
        let mounts = "cgroup /sys/fs/cgroup/cpuacct cgroup rw,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(Hierarchy::find(mounts).unwrap(), Hierarchy::V1("/sys/fs/cgroup/cpu".into()));
        assert!(matches!(Hierarchy::find("proc /proc proc rw 0 0\n"), Err(LoadError::NoCpuController)));
    }

    #[test]
    fn version_2_is_taken_when_its_root_controls_cpus() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("cgroup.controllers"), "cpuset cpu io\n").unwrap();
        let mounts = format!("none {} cgroup2 rw 0 0\n", root.path().display());
        let hierarchy = Hierarchy::find(&mounts).unwrap();
        assert_eq!(hierarchy, Hierarchy::V2(root.path().to_owned()));
    }

    #[test]
    fn shares_become_weights() {
        assert_eq!((weight(2), weight(1024), weight(262_144)), (1, 39, 10_000));
    }

    #[test]
    fn shares_out_of_range_and_missing_permission_are_refused() {
        let nowhere = Hierarchy::V1("/proc/no-such-hierarchy".into());
        assert!(matches!(nowhere.create(1, 0, 1), Err(LoadError::Parameter { .. })));
        let error = nowhere.create(1, 0, 1024).unwrap_err();
        assert!(error.to_string().contains("run as root"), "{error}");
    }

    #[test]
    fn groups_of_dead_owners_are_swept() {
        let root = tempfile::tempdir().unwrap();
        for name in ["lineup-10-0", "lineup-20-0", "other"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let hierarchy = Hierarchy::V1(root.path().to_owned());
        assert_eq!(hierarchy.sweep(|owner| owner == 20), 1);
        assert!(!root.path().join("lineup-10-0").exists() && root.path().join("lineup-20-0").exists());
    }
}
