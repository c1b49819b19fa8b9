//! Room between members, written into a declaration.

use crate::constraints::constraint::{Binding, Constraint};
use crate::kinds::parting::room_layout::ROOM_BITS;
use crate::layout::spelling::Spelling;
use crate::layout::subject::{Subject, has_one_type, member_names};
use crate::text::body::{Body, Mode};
use crate::text::located_declaration;
use crate::text::marker_names::{ROOM_STEMS, is_room};
use crate::text::sources::Sources;
use std::ops::Range;

/// Room to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// The member before which it is; `None` for behind the last.
    pub(crate) before: Option<String>,
    /// Bit-fields of 32 bits.
    pub(crate) fields: u64,
}

/// The way room is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RoomStyle {
    /// `char pad[52];`, by the name that the file gives to such members.
    Arrays,
    /// `int : 32, : 32;`, which is no member.
    BitFields,
}

const WHY: &str = "/* other threads use what lies before and behind */";

/// The text of the file that declares the type, with room in the declaration.
pub(crate) fn write_room(
    sources: &Sources,
    subject: &Subject<'_>,
    spelling: &Spelling,
    all: &[Room],
    style: RoomStyle,
) -> Result<String, Binding> {
    let found = located_declaration::find(sources, &spelling.name, spelling.declared_at.as_ref())?;
    let mut body = Body::read(found, &member_names(subject))?;
    if has_one_type(subject) {
        body.part_declarators();
    }
    let text = body.found.lexed.text;
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    let mut names = names_of_room(&body);
    for room in all {
        let declared = match style {
            RoomStyle::Arrays => {
                let name = names.next().ok_or_else(|| unclear(&body, "no name is left for room"))?;
                format!("char {name}[{}];", room.fields * ROOM_BITS / 8)
            }
            RoomStyle::BitFields => bit_fields(room.fields),
        };
        changes.push(match &room.before {
            Some(member) => before(&body, member, &declared)?,
            None => behind(&body, &declared)?,
        });
    }
    changes.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut new = text.to_owned();
    for (range, room) in changes {
        new.replace_range(range, &room);
    }
    Ok(new)
}

/// Names for members that only make room, as the file calls others; none that it uses already.
fn names_of_room<'b>(body: &'b Body<'_>) -> impl Iterator<Item = String> + 'b {
    let lexed = &body.found.lexed;
    let words =
        || (0..lexed.tokens.len()).filter(|&index| lexed.is_word(index)).map(|index| lexed.str(index));
    let stem_of = |word: &str| ROOM_STEMS.iter().find(|stem| is_room(word) && word.starts_with(**stem));
    let stem = words().find_map(stem_of).copied().unwrap_or("pad");
    let names = std::iter::once(stem.to_owned()).chain((1..100).map(move |number| format!("{stem}{number}")));
    names.filter(move |name| words().all(|word| word != name))
}

/// `int : 32, : 32;`
fn bit_fields(fields: u64) -> String {
    let widths: Vec<&str> = (0..fields).map(|_| ": 32").collect();
    format!("int {};", widths.join(", "))
}

fn unclear(body: &Body<'_>, why: &str) -> Binding {
    Binding::new(Constraint::UnclearSource).at(&body.found.path, body.found.line()).because(why.to_owned())
}

fn before(body: &Body<'_>, member: &str, declared: &str) -> Result<(Range<usize>, String), Binding> {
    let text = body.found.lexed.text;
    let unit = body.units.iter().position(|unit| unit.names.first().is_some_and(|name| name == member));
    let Some(unit) = unit else {
        let later = between_declarators(body, member, declared);
        return later
            .ok_or_else(|| unclear(body, "no room can be made before a member that moves with others"));
    };
    let start = body.span(&body.units[unit]).start;
    if body.mode == Mode::Lines {
        let indent = indent(&text[body.span(&body.units[unit])]);
        return Ok((start..start, format!("{indent}{declared} {WHY}\n")));
    }
    let between = unit.checked_sub(1).map(|before| body.span(&body.units[before]).end..start);
    match between.filter(|between| text[between.clone()].trim() == ",") {
        // One declaration becomes two.
        Some(between) => {
            let open = body.found.lexed.tokens[body.found.declaration.open].end();
            let first = body.units.first().map_or(open, |first| body.span(first).start);
            let of = text[open..first].trim();
            Ok((between, format!("; {declared} {of} ")))
        }
        None => Ok((start..start, format!("{declared} "))),
    }
}

/// `std::atomic<long> a{0}, b{0};` becomes two declarations with room between.
fn between_declarators(body: &Body<'_>, member: &str, declared: &str) -> Option<(Range<usize>, String)> {
    let unit = body.units.iter().find(|unit| unit.names.iter().any(|name| name == member))?;
    let lexed = &body.found.lexed;
    let span = body.span(unit);
    let code = |index: &usize| lexed.is_code(*index);
    let mut tokens =
        (0..lexed.tokens.len()).filter(|index| span.contains(&lexed.tokens[*index].start())).filter(code);
    let start = tokens.next()?;
    let end = tokens.next_back()? + 1;
    let name = unit.names.first()?;
    let first = (start..end).find(|index| lexed.str(*index) == name)?;
    if (start..first).any(|index| matches!(lexed.str(index), "{" | "(" | "," | ";")) {
        return None;
    }
    let stars = (start..first).rev().take_while(|index| lexed.str(*index) == "*").count();
    let ty = &lexed.text[lexed.tokens[start].start()..lexed.tokens[first - stars - 1].end()];
    let mut comma = None;
    let mut at = first + 1;
    while let Some(index) = lexed.next_code(at, end) {
        match lexed.str(index) {
            "{" | "(" | "[" => at = lexed.closing(index, end)? + 1,
            // A value with a template's arguments may hold commas.
            ";" | "<" | "=" => return None,
            "," => (comma, at) = (Some(index), index + 1),
            word if word == member => {
                let comma = lexed.tokens[comma?].range();
                return Some((comma, format!("; {declared} {ty}")));
            }
            _ => at = index + 1,
        }
    }
    None
}

fn behind(body: &Body<'_>, declared: &str) -> Result<(Range<usize>, String), Binding> {
    let text = body.found.lexed.text;
    let last = body.units.last().ok_or_else(|| unclear(body, "it has no members"))?;
    let span = body.span(last);
    if body.mode == Mode::Lines {
        let end = if text[..span.end].ends_with('\n') { "" } else { "\n" };
        let indent = indent(&text[span.clone()]);
        return Ok((span.end..span.end, format!("{end}{indent}{declared} {WHY}\n")));
    }
    let close = body.found.lexed.tokens[body.found.declaration.close].start();
    Ok((close..close, format!("{declared} ")))
}

/// The white space before the last line of a member.
fn indent(unit: &str) -> String {
    let line = unit.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
}
