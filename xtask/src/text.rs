//! Rules on the text of files: how long sources and lines of prose may be, and no marks of unfinished work.

use crate::machine;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// A Rust file longer than this must be split.
const MAX_LINES: usize = 700;

/// A line of prose longer than this must be broken. Tables and what a terminal shows are as wide as they are.
const MAX_COLUMNS: usize = 120;

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
    for file in String::from_utf8_lossy(&listing.stdout).lines() {
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        match Path::new(file).extension().and_then(|extension| extension.to_str()) {
            Some("rs") => {
                broken.extend(source(file, &text));
                broken.extend(machine::check(file, &text));
            }
            Some("md") => broken.extend(prose(file, &text)),
            _ => {}
        }
    }
    Ok(broken)
}

fn source(file: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    let is_long = lines > MAX_LINES;
    let length = is_long.then(|| format!("{file} has {lines} lines; the limit is {MAX_LINES}"));
    let marks = UNFINISHED.iter().filter(|mark| text.contains(**mark));
    length.into_iter().chain(marks.map(|mark| format!("{file} contains {mark}"))).collect()
}

fn prose(file: &str, text: &str) -> Vec<String> {
    let mut is_shown = false;
    let mut broken = Vec::new();
    for (number, line) in text.lines().enumerate() {
        is_shown ^= line.trim_start().starts_with("```");
        let is_table = line.trim_start().starts_with('|');
        let columns = line.chars().count();
        if !is_shown && !is_table && !line.starts_with("    ") && columns > MAX_COLUMNS {
            broken.push(format!("{file}:{} has {columns} columns; prose has {MAX_COLUMNS}", number + 1));
        }
    }
    broken
}
