//! Rules on the text of files: how long sources and lines of prose may be, and no marks of unfinished work.

use crate::machine;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// A Rust file longer than this must be split.
const MAX_LINES: usize = 700;

/// The longest line of prose. Tables and terminal output may be wider.
const MAX_COLUMNS: usize = 120;

/// The longest length of pages, in lines, by how their path begins; the first match counts.
const PAGES: &[(&str, usize)] = &[
    ("README.md", 150),
    ("ARCHITECTURE.md", 200),
    // A section for each schema: a page for looking up, not for reading.
    ("docs/json.md", 1000),
    // Tables of the fleet's columns, which its tests read there.
    ("docs/fleet.md", 260),
    // A row for each use of a type.
    ("docs/sources.md", 160),
    ("docs/results/", 1000),
    // A chapter shows all that its commands print.
    ("docs/guide/", 210),
    ("docs/", 150),
];

/// Names of files that say nothing of their content.
const EMPTY_NAMES: &[&str] = &[
    "acts",
    "anyway",
    "as_it_lies",
    "beside",
    "beyond",
    "certain",
    "given",
    "kept",
    "made",
    "quiet",
    "sayings",
    "told",
    "ways",
];

/// Words that comments and pages do without: a subject and an active verb say more.
const EMPTY_WORDS: &[&str] = &["told", "what came of", "let be", "at best", "goes on", "come to", "comes to"];

/// Marks of unfinished work. Spelled in halves so that this file does not break its own rule.
const UNFINISHED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];

/// The broken rules, one sentence each, over all files that git tracks.
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
                broken.extend(comments(file, &text));
            }
            Some("md") => {
                broken.extend(prose(file, &text));
                broken.extend(page(file, &text));
            }
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
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_empty = EMPTY_NAMES.contains(&stem);
    let name = is_empty.then(|| format!("{file}: name it after the type or the job in it"));
    length.into_iter().chain(name).chain(marks.map(|mark| format!("{file} contains {mark}"))).collect()
}

/// Comments on lines of their own. Studies keep the texts that their results were made with.
fn comments(file: &str, text: &str) -> Vec<String> {
    if file.starts_with("studies/") || file == "xtask/src/text.rs" {
        return Vec::new();
    }
    let comments = text.lines().enumerate().filter_map(|(number, line)| {
        let comment = line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!']).trim_start();
        Some((number, empty_words(comment).or_else(|| comment.starts_with("What ").then_some("What …"))?))
    });
    comments.map(|(number, words)| says_nothing(file, number, words)).collect()
}

/// The message about such words; `number` counts lines from 0.
fn says_nothing(file: &str, number: usize, words: &str) -> String {
    format!("{file}:{} says \"{words}\": name the thing", number + 1)
}

/// The first of the words that a sentence does without.
fn empty_words(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let is_edge = |next: Option<char>| !next.is_some_and(|next| next.is_alphanumeric() || next == '_');
    let has = |words: &&&str| {
        let mut places = text.match_indices(**words);
        places.any(|(at, _)| {
            is_edge(text[..at].chars().next_back()) && is_edge(text[at + words.len()..].chars().next())
        })
    };
    EMPTY_WORDS.iter().find(has).copied()
}

/// The page is longer than a reader's patience.
fn page(file: &str, text: &str) -> Option<String> {
    let (_, most) = PAGES.iter().find(|(begin, _)| file.starts_with(begin))?;
    let lines = text.lines().count();
    (lines > *most).then(|| format!("{file} has {lines} lines; the limit of such pages is {most}"))
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
        let is_sentence = !is_shown && !is_table && !line.starts_with("    ") && file != "CHANGELOG.md";
        if let Some(words) = empty_words(line).filter(|_| is_sentence && !file.starts_with("studies/")) {
            broken.push(says_nothing(file, number, words));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_the_length_of_their_kind() {
        let lines = |count: usize| "a line\n".repeat(count);
        assert_eq!(page("README.md", &lines(150)), None);
        assert!(page("README.md", &lines(151)).is_some());
        assert!(page("docs/find.md", &lines(151)).is_some());
        assert_eq!(page("docs/results/find.md", &lines(900)), None);
        assert_eq!(page("studies/lua/README.md", &lines(900)), None);
    }

    #[test]
    fn sentences_do_without_empty_words() {
        let said = comments(
            "a.rs",
            "// What is told.\n/// It comes to this.\nlet told = 1;\n// A toldness.\n//! What a day.\n",
        );
        assert_eq!(said.len(), 3, "{said:?}");
        assert_eq!(prose("a.md", "The gain is at best 3 %.\n    told\n| told |\n").len(), 1);
    }

    #[test]
    fn a_file_is_named_after_its_content() {
        assert_eq!(source("fix/advise/src/anyway.rs", "").len(), 1);
        assert_eq!(source("fix/advise/src/background_lines.rs", "").len(), 0);
    }
}
