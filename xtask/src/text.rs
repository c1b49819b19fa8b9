//! Rules on the text of source files: length, and no marks of unfinished work.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// A Rust file longer than this must be split.
const MAX_LINES: usize = 700;

/// Marks of unfinished work. Spelled in halves so that this file does not break its own rule.
const UNFINISHED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];

/// The broken rules, one sentence each, over all files git tracks.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let listing = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("git ls-files")?;
    let mut broken = Vec::new();
    for file in String::from_utf8_lossy(&listing.stdout).lines().filter(|file| file.ends_with(".rs")) {
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        let lines = text.lines().count();
        if lines > MAX_LINES {
            broken.push(format!("{file} has {lines} lines; the limit is {MAX_LINES}"));
        }
        for mark in UNFINISHED.iter().filter(|mark| text.contains(**mark)) {
            broken.push(format!("{file} contains {mark}"));
        }
    }
    Ok(broken)
}
