//! Files that processes outside a study write: the study's own output, a log behind `tee`.

use crate::descendants::{all, descends_from_this};
use rustix::process::{Pid, getpid};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file by its device and inode.
pub(super) type FileId = (u64, u64);

/// The access mode in the flags of `/proc/PID/fdinfo/N`; 0 reads alone.
const ACCESS_MODE: u32 = 0o3;

/// The files that are open for writing in processes that do not descend from this one, and those that are this
/// process's own standard output and error.
pub(super) fn written_elsewhere() -> BTreeSet<FileId> {
    let own = getpid();
    let mut files = BTreeSet::new();
    for pid in all().filter(|pid| *pid == own || !descends_from_this(*pid)) {
        let folder = format!("/proc/{}", pid.as_raw_nonzero());
        for entry in fs::read_dir(format!("{folder}/fd")).into_iter().flatten().flatten() {
            let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            if is_standard(own, pid, number)
                && is_written(Path::new(&folder), number)
                && let Ok(about) = fs::metadata(entry.path())
            {
                files.insert((about.dev(), about.ino()));
            }
        }
    }
    files
}

/// Of this process only the standard streams count: the others are its own work.
fn is_standard(own: Pid, pid: Pid, number: u32) -> bool {
    pid != own || matches!(number, 1 | 2)
}

fn is_written(process: &Path, number: u32) -> bool {
    let said = fs::read_to_string(process.join(format!("fdinfo/{number}"))).unwrap_or_default();
    let flags = said.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .is_some_and(|flags| u32::from_str_radix(flags.trim(), 8).is_ok_and(|flags| flags & ACCESS_MODE != 0))
}
