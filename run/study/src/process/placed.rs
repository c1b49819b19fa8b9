//! A copy of a folder at the path of the original, for one process and its children.
//!
//! A build's configuration names folders by their absolute paths. In a mount namespace of its own, a build finds the
//! copy under the original's path. Every such name then leads into the copy, and the original cannot be reached.

use crate::error::{Doing, Result};
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use std::fs;
use std::path::PathBuf;

/// A copy, and the folder that it stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// The copy.
    pub copy: PathBuf,
    /// The folder at whose path the copy is seen.
    pub original: PathBuf,
}

impl Placed {
    /// Shows the copy at the original's path to this process and its children, and enters it there. The process must
    /// have one thread.
    ///
    /// # Errors
    /// When the system allows neither mounts nor user namespaces.
    pub fn enter(&self) -> Result<()> {
        let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let is_user_namespace = unshare(CloneFlags::CLONE_NEWNS).is_err();
        if is_user_namespace {
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)
                .doing("this system allows no mount namespace")?;
            map_ids((0, uid), (0, gid))?;
        }
        mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
            .doing("cannot keep mounts to this process")?;
        mount_bind(&self.copy, &self.original)
            .doing_with(|| format!("cannot show a copy at {}", self.original.display()))?;
        if is_user_namespace {
            // The build runs as the user again, not as the root that may mount.
            unshare(CloneFlags::CLONE_NEWUSER).doing("this system nests no user namespaces")?;
            map_ids((uid, 0), (gid, 0))?;
        }
        std::env::set_current_dir(&self.original)
            .doing_with(|| format!("cannot enter {}", self.original.display()))
    }
}

/// Maps one user and one group, each as (inside, outside).
fn map_ids(user: (u32, u32), group: (u32, u32)) -> Result<()> {
    let write = |name: &str, text: String| {
        fs::write(format!("/proc/self/{name}"), text)
            .doing_with(|| format!("cannot write this process's {name}"))
    };
    write("setgroups", "deny".into())?;
    write("uid_map", format!("{} {} 1\n", user.0, user.1))?;
    write("gid_map", format!("{} {} 1\n", group.0, group.1))
}
