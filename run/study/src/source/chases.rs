//! Loops of functions that stall, read with clang.

use crate::source::meaning::{Reading, build};
use lineup_model::chase::Chase;
use std::collections::BTreeSet;
use std::path::Path;

pub use lineup_sources::own_name;

/// The loops that chase pointers or index through memory in these functions, and in those of the same unit that they
/// call. `root` is the copy in which the reading's calls were made.
///
/// # Errors
/// The reason, where clang reads nothing.
pub fn chases(reading: &Reading, root: &Path, functions: &BTreeSet<String>) -> Result<Vec<Chase>, String> {
    let build = build(reading.calls.clone(), root, BTreeSet::new());
    let found = lineup_sources::chases(&build, functions).map_err(|error| error.to_string())?;
    Ok(found.found)
}
