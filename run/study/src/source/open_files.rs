//! Files that processes outside a study write: the study's own output, a log behind `tee`.

use crate::process::descendants::{Descendants, all};
use rustix::process::getpid;
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
    let descendants = Descendants::of(own);
    let mut files = BTreeSet::new();
    for pid in all().filter(|pid| *pid == own || !descendants.have(*pid)) {
        let folder = format!("/proc/{}", pid.as_raw_nonzero());
        for entry in fs::read_dir(format!("{folder}/fd")).into_iter().flatten().flatten() {
            let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            // Its other files are this process's own work.
            let counts = pid != own || matches!(number, 1 | 2);
            if counts
                && is_written(Path::new(&folder), number)
                && let Ok(about) = fs::metadata(entry.path())
            {
                files.insert((about.dev(), about.ino()));
            }
        }
    }
    files
}

fn is_written(process: &Path, number: u32) -> bool {
    let said = fs::read_to_string(process.join(format!("fdinfo/{number}"))).unwrap_or_default();
    let flags = said.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .is_some_and(|flags| u32::from_str_radix(flags.trim(), 8).is_ok_and(|flags| flags & ACCESS_MODE != 0))
}
