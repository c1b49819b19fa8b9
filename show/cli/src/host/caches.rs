//! The caches of this machine, as its kernel describes them.

use anyhow::{Result, bail};
use lineup_cache::{CacheSpec, HostCache, host_specs};
use std::path::Path;

const FOLDER: &str = "/sys/devices/system/cpu/cpu0/cache";

/// First-level caches and the second level, as far as they can be modelled.
pub(crate) fn of_this_machine() -> Result<Vec<CacheSpec>> {
    let entries = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let folders: Vec<HostCache> = entries.map(|entry| describe(&entry.path())).collect();
    let specs = host_specs(&folders);
    if specs.is_empty() {
        bail!(
            "this machine does not describe its caches; name them, as in --cache l1i=32K,8,64 --cache l1d=32K,8,64"
        );
    }
    Ok(specs)
}

fn describe(folder: &Path) -> HostCache {
    // A text that cannot be read stays empty, and the cache is left out.
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    HostCache {
        level: text("level"),
        kind: text("type"),
        size: text("size"),
        ways: text("ways_of_associativity"),
        line: text("coherency_line_size"),
    }
}
