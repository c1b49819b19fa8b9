//! Files of modules.

use anyhow::Result;
use lineup_debuginfo::Bytes;
use lineup_kernel::image::Compression;
use lineup_study::companions;
use std::path::Path;

/// The bytes of a module, unpacked.
pub(crate) fn unpacked(path: &Path) -> Result<Bytes> {
    let bytes = companions::read(path)?;
    Ok(match Compression::of(&bytes) {
        Some(compression) => compression.unpack(&bytes)?.into(),
        None => bytes,
    })
}
