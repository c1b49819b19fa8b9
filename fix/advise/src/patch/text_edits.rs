//! Edits of one text, by byte ranges.

use std::ops::Range;

/// An edit of one text: these bytes become this.
pub(crate) type Edit = (Range<usize>, String);

/// The text with these edits, those of one place in their order; `None` where they overlap.
pub(crate) fn apply(text: &str, mut edits: Vec<Edit>) -> Option<String> {
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut new, mut at) = (String::with_capacity(text.len()), 0);
    for (range, by) in edits {
        new.push_str(text.get(at..range.start)?);
        new.push_str(&by);
        at = range.end;
    }
    new.push_str(text.get(at..)?);
    Some(new)
}

/// Replaces byte ranges, which must not overlap.
pub(crate) fn replace(text: &str, mut edits: Vec<(Range<usize>, &str)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut new = String::with_capacity(text.len());
    let mut at = 0;
    for (range, replacement) in edits {
        new.push_str(text.get(at..range.start).unwrap_or(""));
        new.push_str(replacement);
        at = range.end;
    }
    new.push_str(text.get(at..).unwrap_or(""));
    new
}
