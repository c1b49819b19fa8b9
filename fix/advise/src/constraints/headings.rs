//! Comments that head members: a group moves under its heading, a section's heading stays where it is.

use crate::constraints::comment_rules::{Lifts, binding, run};
use crate::constraints::constraint::{Binding, Constraint};
use crate::text::body::{Body, TextUnit};
use crate::text::body_parts::BodyPartKind;
use crate::text::comment_words::{bare_text, is_heading, is_numbered};
use crate::text::lex::{Kind, Token};
use std::ops::Range;

/// Joins the members that a heading stands over, so that they move with it and no other comes under it; leaves the
/// headings of sections on top of them; and parts members at comments that stand alone.
pub(crate) fn obey(body: &mut Body<'_>, lifts: Lifts<'_>) {
    leave_sections(body, lifts);
    join_groups(body, lifts);
    part_at_lone_comments(body, lifts);
}

/// Members stay in their section, and its heading on top of it, whichever member comes first.
fn leave_sections(body: &mut Body<'_>, lifts: Lifts<'_>) {
    for unit in 0..body.units.len() {
        let names = body.units[unit].names.clone();
        let Some(comments) = section_heading(body, unit).filter(|_| !lifts.frees(&names)) else { continue };
        bind(body, comments.start, names);
        if unit > 0 {
            part(body, unit);
        }
        let lexed = &body.found.lexed;
        let between = lexed.tokens[comments.end - 1].end()..lexed.tokens[comments.end].start();
        let is_above = lexed.text[between].contains('\n');
        match is_above {
            true => body.units[unit].comments_left = comments.len(),
            false => body.units[unit].is_heading_line = true,
        }
    }
}

/// The comments, by token, that head a section of which the unit is the first: one with a number, or a heading above
/// another comment.
fn section_heading(body: &Body<'_>, unit: usize) -> Option<Range<usize>> {
    let lexed = &body.found.lexed;
    let comments = body.leading_comments(&body.units[unit]);
    let text = lexed.str(comments.clone().next()?);
    let is_block = |index: usize| lexed.tokens[index].kind == Kind::BlockComment;
    let is_above_another = comments.len() > 1 && is_heading(text) && comments.clone().all(is_block);
    let lines = comments.clone().take_while(|&index| lexed.tokens[index].kind == Kind::LineComment).count();
    let end = comments.start + lines.max(1);
    (is_numbered(&bare_text(text)) || is_above_another).then_some(comments.start..end)
}

fn join_groups(body: &mut Body<'_>, lifts: Lifts<'_>) {
    let mut at = 0;
    while at < body.units.len() {
        let group = run(body, at);
        let is_plain = |unit: &TextUnit| {
            matches!(unit.kind, BodyPartKind::Data | BodyPartKind::Bits) && !unit.names.is_empty()
        };
        let units = &body.units[group.clone()];
        let names: Vec<String> = units.iter().flat_map(|unit| unit.names.iter().cloned()).collect();
        let heading = heading_of(body, at).filter(|_| group.len() > 1 && units.iter().all(is_plain));
        if let Some(comment) = heading.filter(|_| !lifts.frees(&names)) {
            bind(body, comment, names);
            body.join_headed(group);
        }
        at += 1;
    }
}

fn part_at_lone_comments(body: &mut Body<'_>, lifts: Lifts<'_>) {
    let alone = |unit| Some((unit, comment_between(body, unit)?));
    let alone: Vec<(usize, usize)> = (1..body.units.len()).filter_map(alone).collect();
    for (unit, comment) in alone {
        let names = body.units[unit].names.clone();
        if lifts.frees(&names) {
            continue;
        }
        bind(body, comment, names);
        part(body, unit);
        // The members up to a blank line are those that it heads.
        if is_heading(body.found.lexed.str(comment)) {
            part(body, run(body, unit).end);
        }
    }
}

fn bind(body: &mut Body<'_>, comment: usize, names: Vec<String>) {
    let binding = Binding { constraint: Constraint::Heading, ..binding(body, comment, names) };
    body.bindings.push(binding);
}

/// Members do not cross the place before this unit.
pub(crate) fn part(body: &mut Body<'_>, unit: usize) {
    body.units.iter_mut().skip(unit).for_each(|unit| unit.segment += 1);
}

/// The comment above a unit that heads a group.
fn heading_of(body: &Body<'_>, unit: usize) -> Option<usize> {
    let first = body.leading_comments(&body.units[unit]).next();
    first.filter(|&index| is_heading(body.found.lexed.str(index)))
}

/// A comment between a unit and the one before it that belongs to neither, nor to a method or the like.
fn comment_between(body: &Body<'_>, unit: usize) -> Option<usize> {
    let between = body.span(&body.units[unit - 1]).end..body.span(&body.units[unit]).start;
    let tokens = body.found.lexed.tokens.iter().enumerate();
    let is_free = |token: &Token| {
        token.is_comment()
            && between.start <= token.start()
            && token.end() <= between.end
            && !body
                .pieces
                .iter()
                .any(|piece| piece.span.start <= token.start() && token.end() <= piece.span.end)
    };
    tokens.rev().find(|(_, token)| is_free(token)).map(|(index, _)| index)
}
