//! Places in a file where a statement can be added without another statement taking its place.

use super::expression::one_line;
use super::flow::Loop;
use super::syntax::{Function, PieceId};
use clang_sys::*;
use lineup_model::chase::Insertion;

/// At the beginning of a loop's body.
pub(super) fn at_beginning(function: &Function<'_>, one: &Loop) -> Result<Insertion, String> {
    let body = function.at(one.body);
    if body.kind != CXCursor_CompoundStmt {
        return around(function, one.body);
    }
    let start = body.span.start;
    match function.slice(one.body).starts_with('{') {
        true => Ok(Insertion::Behind(start + 1)),
        false => Err("a macro writes the loop's body".into()),
    }
}

/// Behind a statement of a block.
pub(super) fn after(function: &Function<'_>, statement: PieceId) -> Result<Insertion, String> {
    plain(function, statement)?;
    end(function, statement).map(Insertion::Behind)
}

/// Before a statement.
pub(super) fn before(function: &Function<'_>, statement: PieceId) -> Result<Insertion, String> {
    let above = function.at(statement).parent.map(|above| function.at(above).kind);
    if above != Some(CXCursor_CompoundStmt) {
        return around(function, statement);
    }
    plain(function, statement)?;
    Ok(Insertion::Before(function.at(statement).span.start))
}

fn around(function: &Function<'_>, statement: PieceId) -> Result<Insertion, String> {
    plain(function, statement)?;
    let start = function.at(statement).span.start;
    let above = function.at(statement).parent.map(|above| function.at(above).span.start);
    let before = function.text.get(..start).unwrap_or_default().trim_end();
    let is_below = above.is_some_and(|above| above < start);
    if !is_below || !(before.ends_with(')') || before.ends_with("else")) {
        return Err(format!("braces cannot be put around `{}`", one_line(function.slice(statement))));
    }
    Ok(Insertion::Around { start, end: end(function, statement)? })
}

/// The end of a statement, its semicolon included.
fn end(function: &Function<'_>, statement: PieceId) -> Result<usize, String> {
    let own = &function.at(statement).span;
    let rest = function.text.get(own.end..).unwrap_or_default();
    let gap = rest.len() - rest.trim_start().len();
    let slice = function.slice(statement);
    match rest.trim_start().starts_with(';') {
        true if !slice.ends_with(';') => Ok(own.end + gap + 1),
        _ if slice.ends_with(['}', ';']) => Ok(own.end),
        _ => Err(format!("the end of `{}` is not understood", one_line(slice))),
    }
}

/// A statement of which no macro writes more than an expression.
fn plain(function: &Function<'_>, statement: PieceId) -> Result<(), String> {
    let slice = function.slice(statement);
    match slice.is_empty() || function.macros.write_statements(slice.as_bytes()) {
        true => Err(format!("a macro writes `{}`", one_line(slice))),
        false => Ok(()),
    }
}
