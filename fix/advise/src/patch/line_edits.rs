//! Edits of the same texts by several hands, put together where they touch other lines.

use similar::{Algorithm, capture_diff_slices};
use std::collections::BTreeMap;
use std::ops::Range;

/// Edits that do not touch each other, by path.
#[derive(Default)]
pub(crate) struct LineEdits {
    files: BTreeMap<String, Vec<LineEdit>>,
}

/// New text in place of some lines of the old one.
struct LineEdit {
    lines: Range<usize>,
    text: String,
}

impl LineEdits {
    /// Adds the edits that lead to `texts`; false, and nothing is added, when one touches a line of an earlier edit or
    /// the line next to it.
    pub(crate) fn take<'s>(
        &mut self,
        texts: &BTreeMap<String, String>,
        old: impl Fn(&str) -> Option<&'s str>,
    ) -> bool {
        let edits: BTreeMap<&String, Vec<LineEdit>> =
            texts.iter().map(|(path, text)| (path, between(old(path).unwrap_or(""), text))).collect();
        let is_touched = |(path, edits): (&&String, &Vec<LineEdit>)| {
            let earlier = self.files.get(*path).map_or(&[][..], Vec::as_slice);
            edits.iter().any(|one| earlier.iter().any(|other| one.touches(other)))
        };
        if edits.iter().any(is_touched) {
            return false;
        }
        for (path, edits) in edits {
            self.files.entry(path.clone()).or_default().extend(edits);
        }
        true
    }

    /// The texts with all edits.
    pub(crate) fn written<'s>(self, old: impl Fn(&str) -> Option<&'s str>) -> BTreeMap<String, String> {
        let write = |(path, mut edits): (String, Vec<LineEdit>)| {
            edits.sort_by_key(|edit| edit.lines.start);
            let lines: Vec<&str> = old(&path).unwrap_or("").split_inclusive('\n').collect();
            let (mut text, mut next) = (String::new(), 0);
            for edit in edits {
                text.extend(lines[next..edit.lines.start].iter().copied());
                text.push_str(&edit.text);
                next = edit.lines.end;
            }
            text.extend(lines[next..].iter().copied());
            (path, text)
        };
        self.files.into_iter().map(write).collect()
    }
}

impl LineEdit {
    fn touches(&self, other: &LineEdit) -> bool {
        self.lines.start <= other.lines.end && other.lines.start <= self.lines.end
    }
}

/// The edits that lead from one text to another.
fn between(old: &str, new: &str) -> Vec<LineEdit> {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    // Most of a text is the same, and what compares it is the slower for it.
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tails = old[head..].iter().rev().zip(new[head..].iter().rev());
    let tail = tails.take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    capture_diff_slices(Algorithm::Myers, old, new)
        .into_iter()
        .filter(|op| op.tag() != similar::DiffTag::Equal)
        .map(|op| {
            let lines = op.old_range();
            LineEdit { lines: lines.start + head..lines.end + head, text: new[op.new_range()].concat() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[&str]) -> BTreeMap<String, String> {
        BTreeMap::from([("a.c".to_string(), lines.iter().map(|line| format!("{line}\n")).collect())])
    }

    #[test]
    fn edits_of_other_lines_are_put_together_and_neighbours_are_not() {
        let old = text(&["a", "b", "c", "d", "e", "f", "g", "h"]);
        let get = |path: &str| old.get(path).map(String::as_str);
        let mut edits = LineEdits::default();
        assert!(edits.take(&text(&["b", "a", "c", "d", "e", "f", "h", "g"]), get));
        assert!(!edits.take(&text(&["a", "b", "C", "d", "e", "f", "g", "h"]), get));
        assert!(edits.take(&text(&["a", "b", "c", "d", "x", "y", "f", "g", "h"]), get));
        assert_eq!(edits.written(get), text(&["b", "a", "c", "d", "x", "y", "f", "h", "g"]));
    }
}
