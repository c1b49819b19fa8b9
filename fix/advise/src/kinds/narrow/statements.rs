//! Writes to members that leave: the statements and the values in braces that go with them.

use crate::constraints::constraint::{Binding, Constraint};
use crate::kinds::cold_part::c_text::line_behind;
use crate::kinds::cold_part::class_text::place;
use crate::patch::text_edits::Edit;
use crate::text::lex::{Kind, Lexed};
use crate::text::lines::line_start;
use crate::text::sources::Sources;
use lineup_model::object_uses::{MemberAccess, MemberUse, WriteStatement};

/// The edit that removes a write; `None` for a read.
pub(crate) fn removed(sources: &Sources, used: &MemberUse) -> Result<Option<Edit>, Binding> {
    let unclear = |why: &str| {
        Binding::new(Constraint::UnclearSource).on([&used.member]).at(&used.path, used.line).because(why)
    };
    let name = place(sources, &used.path, (used.line, used.column), &used.member)?;
    let lexed = sources.lexed(&used.path).ok_or_else(|| unclear("the file is not in the sources"))?;
    let index = lexed.tokens.partition_point(|token| token.start() < name);
    match used.access {
        MemberAccess::Read { .. } => Ok(None),
        MemberAccess::Written(None) => Err(unclear("the value of an assignment to it is used")),
        MemberAccess::Written(Some(statement)) => {
            let edit = without_statement(&lexed, index, statement);
            edit.map(Some).ok_or_else(|| unclear("the statement that writes it is not understood"))
        }
        MemberAccess::Listed { has_effects: true } => Err(unclear("its value in braces does more")),
        MemberAccess::Listed { has_effects: false } => {
            let edit = without_entry(&lexed, index);
            edit.map(Some).ok_or_else(|| unclear("the values in braces are not understood"))
        }
    }
}

/// The byte at a line and column, from 1.
pub(crate) fn byte_at(text: &str, (line, column): (u32, u32)) -> Option<usize> {
    let mut starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let start = starts.nth(line.checked_sub(1)? as usize)?;
    Some(start + column.checked_sub(1)? as usize).filter(|at| text.is_char_boundary(*at))
}

/// The first token from `from` on that is one of these and stands in no bracket.
fn at_depth_zero(lexed: &Lexed<'_>, from: usize, ends: &[&str]) -> Option<usize> {
    let mut at = lexed.next_code(from, lexed.tokens.len())?;
    loop {
        match lexed.str(at) {
            text if ends.contains(&text) => return Some(at),
            "(" | "[" | "{" => at = lexed.closing(at, lexed.tokens.len())?,
            ")" | "]" | "}" => return None,
            _ => {}
        }
        at = lexed.next_code(at + 1, lexed.tokens.len())?;
    }
}

fn without_statement(lexed: &Lexed<'_>, name: usize, statement: WriteStatement) -> Option<Edit> {
    let start = byte_at(lexed.text, (statement.line, statement.column))?;
    let end = at_depth_zero(lexed, name + 1, &[";"])?;
    let end_byte = lexed.tokens[end].end();
    let first = lexed.tokens.partition_point(|token| token.start() < start);
    (lexed.tokens.get(first)?.start() == start && first <= name).then_some(())?;
    let is_directive = |index: usize| lexed.tokens[index].kind == Kind::Directive;
    let before = (0..first).rev().find(|&index| !lexed.tokens[index].is_comment());
    let has_pragma = before.is_some_and(|index| is_directive(index) && lexed.str(index).contains("pragma"));
    if has_pragma || (first..end).any(is_directive) {
        return None;
    }
    if statement.has_effects {
        let equals = at_depth_zero(lexed, name + 1, &["="])?;
        let value = lexed.text.get(lexed.tokens[equals].end()..lexed.tokens[end].start())?.trim();
        let text =
            if is_call(lexed, equals + 1, end) { value.to_owned() } else { format!("(void)({value})") };
        return Some((start..end_byte, text + ";"));
    }
    if !statement.is_in_block {
        return Some((start..end_byte, "{}".to_owned()));
    }
    let line = line_start(lexed.text, start);
    let has_own_lines = lexed.text.get(line..start)?.trim().is_empty();
    match line_behind(lexed.text, end_byte).filter(|_| has_own_lines) {
        Some(behind) => Some((line..behind, String::new())),
        None => {
            let blank = lexed.text.get(end_byte..)?.starts_with(' ');
            Some((start..end_byte + usize::from(blank), String::new()))
        }
    }
}

/// True of tokens that are one call of a function.
fn is_call(lexed: &Lexed<'_>, from: usize, end: usize) -> bool {
    let name = lexed.next_code(from, end).filter(|&name| lexed.is_word(name));
    let open = name.and_then(|name| lexed.next_code(name + 1, end)).filter(|&open| lexed.str(open) == "(");
    let close = open.and_then(|open| lexed.closing(open, end));
    close.is_some_and(|close| lexed.next_code(close + 1, end).is_none())
}

/// `.m = value` with the comma behind it, or the one before it.
fn without_entry(lexed: &Lexed<'_>, name: usize) -> Option<Edit> {
    let dot = lexed.previous_code(name).filter(|&dot| lexed.str(dot) == ".")?;
    let before = lexed.previous_code(dot)?;
    let end = end_of_entry(lexed, name)?;
    let start = lexed.tokens[dot].start();
    if lexed.str(end) == "," {
        let next = lexed.tokens.get(end + 1)?;
        let line = line_start(lexed.text, start);
        let has_own_line = lexed.text.get(line..start)?.trim().is_empty();
        return match line_behind(lexed.text, lexed.tokens[end].end()).filter(|_| has_own_line) {
            Some(behind) => Some((line..behind, String::new())),
            None => Some((start..next.start(), String::new())),
        };
    }
    let last = lexed.tokens[lexed.previous_code(end)?].end();
    match lexed.str(before) {
        "," => Some((lexed.tokens[before].start()..last, String::new())),
        "{" => Some((start..last, "0".to_owned())),
        _ => None,
    }
}

/// The comma behind an entry, or the brace that closes the list.
fn end_of_entry(lexed: &Lexed<'_>, name: usize) -> Option<usize> {
    let mut at = name;
    loop {
        at = lexed.next_code(at + 1, lexed.tokens.len())?;
        match lexed.str(at) {
            "," | "}" => return Some(at),
            "(" | "[" | "{" => at = lexed.closing(at, lexed.tokens.len())?,
            _ => {}
        }
    }
}
