//! Names of the files and folders of a study's results, and writing one.

use anyhow::{Context, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Names of the report: its page, and its values.
pub(crate) const PAGE: &str = "report.html";

pub(crate) const REPORT: &str = "report.json";

/// Name of the patch.
pub(crate) const PATCH: &str = "fix.patch";

/// Name of a patch that was built and run, but whose recordings cannot be compared.
pub(crate) const UNPROVEN: &str = "unproven.patch";

/// Name of a patch that failed: nobody applies it by mistake.
pub(crate) const REJECTED: &str = "rejected.patch";

/// Name of the guard.
pub(crate) const LOCK: &str = "lineup.lock";

pub(crate) fn put(out: &Path, name: &str, text: &str) -> Result<()> {
    let path = out.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Removes a result that may be there.
pub(crate) fn remove(out: &Path, name: &str) -> Result<()> {
    let path = out.join(name);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove the earlier {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The folders of the levers' own studies, below that of the results.
pub(crate) const PREFETCH_FOLDER: &str = "prefetch";

pub(crate) const POOLS_FOLDER: &str = "pools";

pub(crate) const PLACEMENT_FOLDER: &str = "placement";

pub(crate) const CODE_FOLDER: &str = "code";

pub(crate) const TOGETHER_FOLDER: &str = "together";

/// The folder of the series.
pub(crate) const SERIES_FOLDER: &str = "series";

/// The folders of both variants among the results.
pub(crate) const VARIANTS: [&str; 2] = ["before", "after"];

/// A variant's recording there.
pub(crate) const RECORDING: &str = "calls.rec";
