//! Writing a declaration's members in another order.
//!
//! Members that keep their relative order are not touched. The others are cut out, with their comments, and inserted
//! next to their new neighbours; every other byte of the file is unchanged.

use crate::constraints::constraint::{Binding, Constraint};
use crate::patch::doc_comment;
use crate::search::score::kept_around;
use crate::text::body::{Body, Mode};
use crate::text::located_declaration;
use crate::text::sources::Sources;
use std::collections::BTreeMap;

/// The movable units of a type's declaration, as text: an order for [`reorder`] permutes them.
///
/// # Errors
/// The constraint that forbids editing the declaration.
pub fn units(sources: &Sources, type_name: &str) -> Result<Vec<String>, Binding> {
    let body = Body::read(located_declaration::find(sources, type_name, None)?, &[])?;
    Ok(body.units.iter().map(|unit| body.found.lexed.text[body.span(unit)].to_string()).collect())
}

/// The path and new text of the file that declares `type_name`, its units in `order`.
///
/// # Errors
/// The constraint that forbids editing the declaration, or that the order breaks.
pub fn reorder(sources: &Sources, type_name: &str, order: &[usize]) -> Result<(String, String), Binding> {
    let body = Body::read(located_declaration::find(sources, type_name, None)?, &[])?;
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..body.units.len()) {
        return Err(Binding::new(Constraint::UnclearSource)
            .because(format!("an order of {} units is needed", body.units.len())));
    }
    if let Some((&unit, position)) =
        order.iter().zip(0..).find(|&(&unit, at)| body.units[unit].segment != body.units[at].segment)
    {
        return Err(Binding::new(Constraint::AccessSection)
            .on(body.units[unit].names.clone())
            .because(format!("position {position} is in another section")));
    }
    Ok((body.found.path.clone(), apply(&body, order)))
}

/// The file's text with the units in `order`, a permutation that keeps segments.
pub(crate) fn apply(body: &Body<'_>, order: &[usize]) -> String {
    let text = body.found.lexed.text;
    let Some(first) = body.units.first().map(|unit| body.span(unit).start) else { return text.to_string() };
    let Some(last) = body.units.last().map(|unit| body.span(unit).end) else { return text.to_string() };
    let members = match body.mode {
        Mode::Slots => exchange(body, order),
        Mode::Lines => cut_and_insert(body, order),
    };
    let doc = doc_comment::reordered(body, order);
    let mut new = String::with_capacity(text.len());
    match doc {
        Some((range, comment)) => {
            new.push_str(&text[..range.start]);
            new.push_str(&comment);
            new.push_str(&text[range.end..first]);
        }
        None => new.push_str(&text[..first]),
    }
    new.push_str(&members);
    new.push_str(&text[last..]);
    new
}

/// Texts change places; the text between them stays.
fn exchange(body: &Body<'_>, order: &[usize]) -> String {
    let text = body.found.lexed.text;
    let mut new = String::new();
    for (position, &unit) in order.iter().enumerate() {
        new.push_str(&text[body.span(&body.units[unit])]);
        if let Some(next) = body.units.get(position + 1) {
            new.push_str(&text[body.span(&body.units[position]).end..body.span(next).start]);
        }
    }
    new
}

/// Moved units follow the unit that now precedes them, or precede the one that follows.
fn cut_and_insert(body: &Body<'_>, order: &[usize]) -> String {
    let text = body.found.lexed.text;
    let stays = kept_around(order, &|unit| body.units[unit].is_still);
    let (mut before, mut after): (Neighbours, Neighbours) = Default::default();
    let mut anchor: Option<usize> = None;
    let mut waiting: Vec<usize> = Vec::new();
    for &unit in order {
        let segment = |unit: usize| body.units[unit].segment;
        if stays.contains(&unit) {
            before.entry(unit).or_default().append(&mut waiting);
            anchor = Some(unit);
        } else if let Some(anchor) = anchor.filter(|&anchor| segment(anchor) == segment(unit)) {
            after.entry(anchor).or_default().push(unit);
        } else {
            waiting.push(unit);
        }
    }
    let mut new = String::new();
    let push_all = |new: &mut String, units: Option<&Vec<usize>>| {
        for &unit in units.into_iter().flatten() {
            new.push_str(&text[body.span(&body.units[unit])]);
            if body.units[unit].is_headed {
                new.push('\n');
            }
        }
    };
    for (unit, text_unit) in body.units.iter().enumerate() {
        let span = body.span(text_unit);
        let is_kept = stays.contains(&unit);
        if is_kept {
            push_all(&mut new, before.get(&unit));
            new.push_str(&text[span.clone()]);
            let is_apart = text_unit.is_headed || text_unit.ends_group;
            if is_apart && after.contains_key(&unit) {
                new.push('\n');
            }
            push_all(&mut new, after.get(&unit));
        }
        if let Some(next) = body.units.get(unit + 1) {
            let gap = &text[span.end..body.span(next).start];
            let follows_heading = text_unit.comments_left > 0;
            let is_double_gap =
                !is_kept && gap.trim().is_empty() && (follows_heading || ends_blank(&new, text, body));
            if !is_double_gap {
                new.push_str(gap);
            }
        }
    }
    new
}

type Neighbours = BTreeMap<usize, Vec<usize>>;

/// True when the text so far ends in a blank line, or nothing is written and `{` precedes.
fn ends_blank(written: &str, text: &str, body: &Body<'_>) -> bool {
    if !written.is_empty() {
        return written.lines().next_back().is_some_and(|line| line.trim().is_empty());
    }
    let first = body.units.first().map_or(0, |unit| body.span(unit).start);
    let open = body.found.lexed.tokens[body.found.declaration.open].end();
    text[open..first].trim().is_empty()
}
