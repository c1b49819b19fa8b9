//! Comments on lines of their own that refer to the member above them.

use crate::text::comment_words::is_heading;
use crate::text::lex::Lexed;
use crate::text::lines::{newlines, starts_line};
use std::ops::Range;

/// Whether comments of a body refer to the member above: some stand between a member and a blank line, and none between
/// a blank line, or the brace, and a member.
pub(crate) fn are_usual(lexed: &Lexed<'_>, body: &Range<usize>) -> bool {
    let comments = body.clone().filter(|&index| begins_run(lexed, index));
    let clear: Vec<bool> = comments.filter_map(|index| is_clear(lexed, index, body)).collect();
    !clear.is_empty() && clear.iter().all(|is_below| *is_below)
}

/// Whether a comment right behind a member and its text belongs to that member too.
pub(crate) fn belongs_above(lexed: &Lexed<'_>, comment: usize, are_below: bool) -> bool {
    let is_own_line = is_own_line(lexed, comment);
    let follows = comment > 0 && newlines(lexed, &lexed.tokens[comment - 1], &lexed.tokens[comment]) == 1;
    if !is_own_line || !follows || is_heading(lexed.str(comment)) {
        return false;
    }
    are_below || distance_to_next(lexed, comment).is_some_and(|newlines| newlines > 1)
}

/// Whether a run of comments clearly refers to the member above; `None` if that is not clear.
fn is_clear(lexed: &Lexed<'_>, comment: usize, body: &Range<usize>) -> Option<bool> {
    if is_heading(lexed.str(comment)) {
        return None;
    }
    let above = newlines(lexed, &lexed.tokens[comment - 1], &lexed.tokens[comment]);
    let is_first = comment == body.start;
    let below = distance_to_next(lexed, comment);
    match (is_first || above > 1, below) {
        (false, Some(newlines)) if newlines > 1 => Some(true),
        (true, Some(1)) => Some(false),
        _ => None,
    }
}

/// Whether a comment on a line of its own begins a run of comments.
fn begins_run(lexed: &Lexed<'_>, index: usize) -> bool {
    index > 0
        && is_own_line(lexed, index)
        && !(lexed.tokens[index - 1].is_comment()
            && newlines(lexed, &lexed.tokens[index - 1], &lexed.tokens[index]) == 1)
}

fn is_own_line(lexed: &Lexed<'_>, index: usize) -> bool {
    lexed.tokens.get(index).is_some_and(|token| token.is_comment() && starts_line(lexed.text, token.start()))
}

/// Lines from the end of a run of comments to the member behind it; `None` when the body ends there.
fn distance_to_next(lexed: &Lexed<'_>, comment: usize) -> Option<usize> {
    let mut last = comment;
    loop {
        let next = lexed.tokens.get(last + 1)?;
        let distance = newlines(lexed, &lexed.tokens[last], next);
        if !next.is_comment() || distance > 1 {
            return (lexed.str(last + 1) != "}").then_some(distance);
        }
        last += 1;
    }
}
