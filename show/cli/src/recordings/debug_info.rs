//! The debug information of files that a recorded program had mapped.

use crate::kernels::symbols;
use crate::terminal::progress::Stages;
use anyhow::Result;
use lineup_debuginfo::DebugInfo;
use lineup_study::companions::{self, DiskCompanions};
use lineup_study::progress::Progress;
use std::path::Path;

/// The debug info of a file that the program had mapped; `None`, with a message, when it cannot be read.
pub(crate) fn debug_info(path: &Path, stages: &Stages) -> Option<DebugInfo> {
    if path.as_os_str().is_empty() || path.as_os_str().as_encoded_bytes().starts_with(b"[") {
        return None;
    }
    told(path, stages, || {
        let bytes = companions::read(path)?;
        match symbols::distributed(&bytes)? {
            None => Ok(DebugInfo::parse(bytes, &mut DiskCompanions::of(path))?),
            Some(kernel) => symbols::own_info(kernel),
        }
    })
}

/// A file's debug info; `None`, with a message, when reading fails.
pub(crate) fn told(
    path: &Path,
    stages: &Stages,
    read: impl FnOnce() -> Result<DebugInfo>,
) -> Option<DebugInfo> {
    stages.stage(&format!("reading the debug information of {}", path.display()));
    match read() {
        Ok(info) => Some(info),
        Err(error) => {
            let path = path.display();
            stages.line(&format!("lineup: {path}: {error:#}; accesses are explained without it"));
            None
        }
    }
}
