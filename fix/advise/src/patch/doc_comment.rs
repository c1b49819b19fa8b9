//! Doc comments that list members follow the members' order.

use crate::text::body::Body;
use std::ops::Range;

/// The doc comment before the declaration with its member entries in the new order: its byte range and new text. `None`
/// without such a comment, when it lists no members, or when nothing changes.
pub(crate) fn reordered(body: &Body<'_>, order: &[usize]) -> Option<(Range<usize>, String)> {
    let range = comment_range(body)?;
    let text = &body.found.lexed.text[range.clone()];
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut runs = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let run = run_of_entries(&lines, at);
        at = run.last().map_or(at + 1, |entry| entry.end);
        runs.extend((!run.is_empty()).then_some(run));
    }
    // Entries in several paragraphs have an order of their own.
    let [run] = runs.as_slice() else { return None };
    let sorted = sorted_entries(&lines, run, body, order)?;
    let span = run.first()?.start..run.last()?.end;
    if sorted == lines[span.clone()] {
        return None;
    }
    lines.splice(span, sorted);
    Some((range, lines.concat()))
}

/// The last comment before the declaration, when only specifiers and attributes stand between.
fn comment_range(body: &Body<'_>) -> Option<Range<usize>> {
    let lexed = &body.found.lexed;
    let mut at = body.found.declaration.keyword;
    loop {
        at = at.checked_sub(1)?;
        let token = &lexed.tokens[at];
        if token.is_comment() {
            return Some(token.range());
        }
        if !lexed.is_word(at) {
            return None;
        }
    }
}

/// The member that a line such as ` * @mult: the multiplier` or ` * \var mult` starts to describe.
fn entry_name(line: &str) -> Option<&str> {
    let rest = line.trim_start().trim_start_matches('*').trim_start();
    let rest = match rest.strip_prefix('@') {
        Some(rest) => rest,
        None => rest.strip_prefix("\\var ")?,
    };
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    let after = rest[end..].trim_start();
    (end > 0 && after.starts_with([':', '.', ','])).then(|| &rest[..end])
}

/// The entries, as line ranges, of the run that starts at line `start`; empty when none does.
fn run_of_entries(lines: &[&str], start: usize) -> Vec<Range<usize>> {
    let mut entries: Vec<Range<usize>> = Vec::new();
    for (index, line) in lines.iter().enumerate().skip(start) {
        let is_blank = line.trim().trim_matches('*').trim().is_empty();
        if line.contains("*/") || is_blank || line.trim_start().starts_with("/*") {
            break;
        }
        if entry_name(line).is_some() {
            entries.push(index..index + 1);
        } else if let Some(entry) = entries.last_mut() {
            entry.end = index + 1;
        } else {
            break;
        }
    }
    entries
}

/// The lines of a run, sorted by the new place of their members. `None` when the run was not in
/// declaration order before: then its order means something else.
fn sorted_entries<'t>(
    lines: &[&'t str],
    run: &[Range<usize>],
    body: &Body<'_>,
    order: &[usize],
) -> Option<Vec<&'t str>> {
    let unit_of = |entry: &Range<usize>| {
        let name = entry_name(lines[entry.start])?;
        body.units.iter().position(|unit| unit.names.iter().any(|known| known == name))
    };
    let units: Vec<Option<usize>> = run.iter().map(unit_of).collect();
    let known: Vec<usize> = units.iter().flatten().copied().collect();
    if known.is_empty() || !known.is_sorted() {
        return None;
    }
    let rank = |unit: usize| order.iter().position(|&candidate| candidate == unit).unwrap_or(unit);
    let mut last = 0;
    let mut entries: Vec<(usize, &Range<usize>)> = Vec::new();
    for (unit, entry) in units.iter().zip(run) {
        last = unit.map_or(last, rank);
        entries.push((last, entry));
    }
    entries.sort_by_key(|(rank, _)| *rank);
    Some(entries.into_iter().flat_map(|(_, entry)| lines[entry.clone()].iter().copied()).collect())
}
