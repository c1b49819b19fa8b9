//! Comments and attributes of a declaration that say how its members must lie. Members are pinned, or
//! kept together, and the words are quoted.

use crate::constraints::constraint::{Binding, Constraint};
use crate::layout::spelling::bare;
use crate::options::Options;
use crate::text::attributes::{self, Meaning};
use crate::text::body::{Body, TextUnit};
use crate::text::body_parts::{BodyPart, BodyPartKind};
use crate::text::comment_words::{bare_text, words};
use crate::text::lex::Token;
use std::ops::Range;

/// The demand of a comment on the members that it mentions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Demand {
    First,
    Last,
    /// Next to each other, or in their order.
    Run,
}

/// Longest quotation.
const QUOTE_CHARACTERS: usize = 100;

/// The types and members that `--lift` frees from comments' demands.
#[derive(Clone, Copy)]
pub(crate) struct Lifts<'o> {
    options: &'o Options,
    class: &'o str,
}

impl<'o> Lifts<'o> {
    pub(crate) fn new(options: &'o Options, class: &'o str) -> Self {
        Lifts { options, class }
    }

    /// Whether the user lifts the whole type.
    pub(crate) fn frees_type(&self) -> bool {
        self.frees(&[])
    }

    pub(crate) fn frees(&self, names: &[String]) -> bool {
        self.options.lifts.iter().filter(|(ty, _)| bare(ty) == self.class).any(|(_, member)| match member {
            Some(member) => names.contains(member),
            None => true,
        })
    }
}

/// The demands of comments in and above the declaration, each with the members that stay for it; without members the
/// whole type stays.
pub(crate) fn read(body: &Body<'_>, lifts: Lifts<'_>) -> Vec<Binding> {
    let lexed = &body.found.lexed;
    let declaration = &body.found.declaration;
    let mut found = Vec::new();
    for index in declaration.open + 1..declaration.close {
        if let Some(demand) =
            lexed.tokens.get(index).filter(|token| token.is_comment()).and(demand(lexed.str(index)))
        {
            let names = inside(body, index, demand);
            let is_elsewhere =
                is_of_constant(body, index) || (demand != Demand::Run && is_of_code(body, index));
            if !is_elsewhere || !mentioned(body, lexed.str(index)).is_empty() {
                found.push(binding(body, index, names));
            }
        }
    }
    for index in above(body) {
        if let Some(demand) = demand(lexed.str(index)) {
            let mentioned = mentioned(body, lexed.str(index));
            let names = match (demand, mentioned.is_empty()) {
                (Demand::First, true) => {
                    body.units.first().map(|unit| unit.names.clone()).unwrap_or_default()
                }
                (Demand::Last, true) => body.units.last().map(|unit| unit.names.clone()).unwrap_or_default(),
                _ => mentioned,
            };
            found.push(binding(body, index, names));
        }
    }
    found.extend(body.units.iter().filter_map(|unit| pinning(body, unit)));
    found.retain(|binding| !lifts.frees(&binding.names));
    found
}

/// The attribute that pins a unit of text. An attribute behind a body is that of a type.
fn pinning(body: &Body<'_>, unit: &TextUnit) -> Option<Binding> {
    let lexed = &body.found.lexed;
    let tokens = || body.pieces[unit.pieces.clone()].iter().flat_map(|piece| piece.tokens.clone());
    let pins = |index: &usize| lexed.is_word(*index) && attributes::is(lexed.str(*index), Meaning::Pins);
    let index = tokens().find(pins).filter(|_| !tokens().any(|index| lexed.str(index) == "{"))?;
    let line = lexed.line_at(lexed.tokens[index].start());
    let binding = Binding::new(Constraint::Comment).on(unit.names.clone()).at(&body.found.path, line);
    Some(binding.because(lexed.str(index)))
}

/// True when a comment stands directly above a `static` member, which takes no room in objects.
fn is_of_constant(body: &Body<'_>, comment: usize) -> bool {
    let lexed = &body.found.lexed;
    let range = lexed.tokens[comment].range();
    body.pieces.iter().any(|piece| {
        piece.kind == BodyPartKind::Fixed
            && lexed.str(piece.tokens.start) == "static"
            && piece.span.start <= range.start
            && range.end <= lexed.tokens[piece.tokens.start].range().start
    })
}

/// True for a comment between the braces of a method: the first and the last in it are steps.
fn is_of_code(body: &Body<'_>, comment: usize) -> bool {
    let is_inside = |piece: &BodyPart| piece.tokens.start < comment && comment < piece.tokens.end;
    body.pieces.iter().any(|piece| piece.kind == BodyPartKind::Fixed && is_inside(piece))
}

pub(crate) fn binding(body: &Body<'_>, comment: usize, mut names: Vec<String>) -> Binding {
    names.sort();
    names.dedup();
    let lexed = &body.found.lexed;
    let line = lexed.tokens.get(comment).map_or(1, |token| lexed.line_at(token.start()));
    Binding::new(Constraint::Comment).on(names).at(&body.found.path, line).because(quote(lexed.str(comment)))
}

/// The comments directly above the declaration.
fn above(body: &Body<'_>) -> Vec<usize> {
    let lexed = &body.found.lexed;
    let mut at = body.found.declaration.keyword;
    while at > 0 && lexed.str(at - 1) == "typedef" {
        at -= 1;
    }
    let mut comments = Vec::new();
    while let Some(before) = at.checked_sub(1) {
        let between = gap(body, &lexed.tokens[before], &lexed.tokens[at]);
        if !lexed.tokens[before].is_comment() || between.matches('\n').count() > 1 {
            break;
        }
        comments.push(before);
        at = before;
    }
    comments
}

fn gap<'t>(body: &Body<'t>, from: &Token, to: &Token) -> &'t str {
    body.found.lexed.text.get(from.end()..to.start()).unwrap_or("")
}

/// The members that a comment in the body mentions.
fn inside(body: &Body<'_>, comment: usize, demand: Demand) -> Vec<String> {
    let lexed = &body.found.lexed;
    let range = &lexed.tokens[comment].range();
    let mut names = mentioned(body, lexed.str(comment));
    let of = |unit: &TextUnit| {
        let span = body.span(unit);
        span.start <= range.start && range.end <= span.end
    };
    let units = match body.units.iter().position(of) {
        Some(unit) if demand == Demand::Run && leads(body, &body.units[unit], range) => run(body, unit),
        Some(unit) => unit..unit + 1,
        // A comment on no member: it concerns the members behind it, or the end it names.
        None => match (demand, body.units.iter().position(|unit| body.span(unit).start >= range.end)) {
            (Demand::Last, _) => body.units.len().saturating_sub(1)..body.units.len(),
            (Demand::First, Some(next)) => next..next + 1,
            (Demand::Run, Some(next)) => run(body, next),
            (_, None) => 0..0,
        },
    };
    names.extend(body.units[units].iter().flat_map(|unit| unit.names.iter().cloned()));
    names
}

/// True when a comment stands before the declaration of the unit.
fn leads(body: &Body<'_>, unit: &TextUnit, comment: &Range<usize>) -> bool {
    let first = &body.pieces[unit.pieces.start];
    let code = body.found.lexed.tokens[first.tokens.start].start();
    comment.end <= code
}

pub(crate) fn has_leading_comment(body: &Body<'_>, unit: &TextUnit) -> bool {
    !body.leading_comments(unit).is_empty()
}

/// A unit and those after it up to a blank line, another comment on lines of its own, or text that is no member.
pub(crate) fn run(body: &Body<'_>, first: usize) -> Range<usize> {
    let mut end = first + 1;
    while let Some(next) = body.units.get(end) {
        let between = body.span(&body.units[end - 1]).end..body.span(next).start;
        let is_beside = body
            .found
            .lexed
            .text
            .get(between)
            .is_some_and(|gap| gap.trim().is_empty() && gap.matches('\n').count() < 1);
        let is_same = next.segment == body.units[first].segment;
        if !is_beside || !is_same || has_leading_comment(body, next) {
            break;
        }
        end += 1;
    }
    first..end
}

/// Members whose names stand in the comment.
fn mentioned(body: &Body<'_>, comment: &str) -> Vec<String> {
    let words: Vec<&str> = comment.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let names = body.units.iter().flat_map(|unit| &unit.names);
    // Short names are words of the language as well.
    names.filter(|name| name.len() > 3 && words.contains(&name.as_str())).cloned().collect()
}

fn quote(comment: &str) -> String {
    let text = bare_text(comment);
    let mut quoted: String = text.chars().take(QUOTE_CHARACTERS).collect();
    if quoted.len() < text.len() {
        quoted.push('…');
    }
    format!("“{quoted}”")
}

/// Sequences of words that demand an order, at any place.
const ORDERS: [&str; 24] = [
    "in this order",
    "in that order",
    "in the same order",
    "order matters",
    "order is important",
    "order is significant",
    "do not reorder",
    "dont reorder",
    "never reorder",
    "not be reordered",
    "not reorder",
    "do not rearrange",
    "not be rearranged",
    "do not move",
    "dont move",
    "must not move",
    "not be moved",
    "in sync",
    "must match",
    "needs to match",
    "has to match",
    "hardcoded",
    "hard coded",
    "asm offsets",
];

/// Words that demand something of the words behind them.
const MUSTS: [&str; 8] = ["must", "should", "shall", "keep", "kept", "needs", "need", "has"];

/// Words that may stand between the demand and its object.
const FILLERS: [&str; 31] = [
    "be", "to", "the", "at", "in", "as", "a", "always", "come", "stay", "remain", "go", "appear", "this",
    "it", "these", "them", "very", "placed", "put", "declared", "defined", "kept", "live", "located",
    "member", "members", "field", "fields", "both", "all",
];

fn demand(comment: &str) -> Option<Demand> {
    let words = words(comment);
    let line = words.join(" ");
    if ORDERS.iter().any(|order| line.contains(order)) {
        return Some(Demand::Run);
    }
    for (index, _) in words.iter().enumerate().filter(|(_, word)| MUSTS.contains(&word.as_str())) {
        let object = words[index + 1..].iter().position(|word| !FILLERS.contains(&word.as_str()));
        let Some(object) = object.map(|position| index + 1 + position) else { continue };
        let next = words.get(object + 1).map_or("", String::as_str);
        match words[object].as_str() {
            "first" | "beginning" | "start" | "front" | "top" | "head" => return Some(Demand::First),
            "offset" if matches!(next, "0" | "zero") => return Some(Demand::First),
            "last" | "end" | "bottom" | "tail" => return Some(Demand::Last),
            "adjacent" | "contiguous" | "consecutive" | "together" | "adjacently" => {
                return Some(Demand::Run);
            }
            "next" if next == "to" => return Some(Demand::Run),
            "same" if matches!(next, "cache" | "cacheline" | "order" | "layout") => return Some(Demand::Run),
            "directly" | "immediately" | "right" | "follow" | "precede" | "before" | "after" => {
                return Some(Demand::Run);
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_comment_demands_is_told_from_what_it_explains() {
        for (text, wanted) in [
            ("/* These two members must be first to match sk_buff_head. */", Some(Demand::First)),
            (
                "/*\n * For reasons of header soup, this\n * must be the first element of task_struct.\n */",
                Some(Demand::First),
            ),
            ("/* must be at offset 0 */", Some(Demand::First)),
            ("// keep this last", Some(Demand::Last)),
            ("/* These elements must be at the end, see alloc_skb() for details.  */", Some(Demand::Last)),
            ("/* has to be kept together with y */", Some(Demand::Run)),
            ("/* Keep in sync with struct wire. */", Some(Demand::Run)),
            ("/* don't reorder */", Some(Demand::Run)),
            ("/* must be in this order */", Some(Demand::Run)),
            ("/* must be called with the lock held */", None),
            ("/* the first free slot, or -1 */", None),
            ("/* last error */", None),
        ] {
            assert_eq!(demand(text), wanted, "{text}");
        }
    }
}
