//! An edit that was tried and gains.

use lineup_study::source::scratch::{Scratch, Tree};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A program with pools or prefetches that gain.
pub(crate) struct KeptEdit {
    /// The lever, in words.
    pub(crate) lever: &'static str,
    pub(crate) tree: Tree,
    /// The changed texts, whole, by path.
    pub(crate) edited: BTreeMap<String, String>,
    /// The patch among the results.
    pub(crate) patch: PathBuf,
    /// The patch's message, its first line the subject.
    pub(crate) message: String,
    /// The copies that hold the program.
    pub(crate) scratch: Scratch,
}
