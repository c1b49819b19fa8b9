//! Pointers that are put on a stack or into a queue: their objects are used when they are taken off again.

use super::expression::{one_line, written};
use super::flow::{Exits, is_loop};
use super::insertion;
use super::syntax::{Function, PieceId};
use clang_sys::*;
use lineup_model::chase::{Address, Ahead, Chase, Form};

/// Methods of the standard library's containers that put a value in.
const PUSHING: [&str; 3] = ["push", "push_back", "push_front"];

/// Pushes of pointers to objects in loops of a function.
pub(super) fn chases(function: &Function<'_>) -> Vec<Chase> {
    let statements = (0..function.pieces.len()).filter(|id| {
        let above = function.at(*id).parent.map(|above| function.at(above).kind);
        let stands_alone = matches!(above, Some(CXCursor_CompoundStmt | CXCursor_IfStmt));
        stands_alone && function.above(*id).any(|above| is_loop(function.at(above).kind))
    });
    let pushes = statements.filter_map(|id| Some((id, pushed(function, id)?)));
    pushes
        .map(|(statement, value)| Chase {
            form: Form::Stack,
            object: function.at(value).ty.record().map(str::to_owned),
            ahead: ahead(function, statement, value),
            ..function.unknown_chase(function.at(statement).span.start)
        })
        .collect()
}

/// The pointer that a statement puts on a stack: `s[n++] = p`, `*top++ = p`, `s.push_back(p)`.
fn pushed(function: &Function<'_>, statement: PieceId) -> Option<PieceId> {
    let id = function.bare(statement);
    let piece = function.at(id);
    let value = match piece.kind {
        CXCursor_BinaryOperator if function.operator(id) == Some("=") => {
            let [left, right] = piece.children[..] else { return None };
            counts(function, left).then_some(right)?
        }
        CXCursor_CallExpr if PUSHING.contains(&piece.name.as_str()) => {
            function.declaration(id)?.library_class.as_ref()?;
            *piece.arguments.last()?
        }
        _ => return None,
    };
    let is_place = function
        .below(value)
        .into_iter()
        .any(|id| matches!(function.at(id).kind, CXCursor_DeclRefExpr | CXCursor_MemberRefExpr));
    let ty = &function.at(function.bare(value)).ty;
    (is_place && ty.is_pointer() && ty.record().is_some()).then_some(value)
}

/// True of a place that a `++` or `--` in it chooses.
fn counts(function: &Function<'_>, place: PieceId) -> bool {
    let place = function.bare(place);
    let is_place = matches!(function.at(place).kind, CXCursor_ArraySubscriptExpr | CXCursor_UnaryOperator);
    let steps = |id: PieceId| {
        function.at(id).kind == CXCursor_UnaryOperator && matches!(function.prefix(id), Some("++" | "--"))
    };
    is_place && function.below(place).into_iter().any(steps)
}

fn ahead(function: &Function<'_>, statement: PieceId, value: PieceId) -> Result<Ahead, String> {
    let pointer = written(function, value, None)?;
    let bare = function.bare(statement);
    let exits = Exits::of(function).below(statement);
    if let Some(exit) = exits.into_iter().find(|exit| exit.at != bare) {
        return Err(format!("the statement does more: {}", exit.reason));
    }
    let changed = function.below(statement).into_iter().find(|id| {
        let piece = function.at(*id);
        let steps = piece.kind == CXCursor_UnaryOperator
            && !matches!(function.prefix(*id), Some("*" | "&" | "!" | "-" | "~"));
        let stores = *id != bare
            && (piece.kind == CXCursor_CompoundAssignOperator
                || piece.kind == CXCursor_BinaryOperator
                    && matches!(function.operator(*id), Some("=") | None));
        let operand = piece.children.first().copied().filter(|_| steps || stores);
        operand.is_some_and(|operand| {
            function.below(operand).into_iter().any(|id| {
                let decl = function.at(id).decl;
                decl.is_some_and(|decl| pointer.variables.contains(&decl) || pointer.members.contains(&decl))
            })
        })
    });
    if let Some(changed) = changed {
        let text = one_line(function.slice(changed));
        return Err(format!("`{text}` changes what the statement reads"));
    }
    Ok(Ahead {
        address: Address::Pointer { pointer: pointer.text, member: None },
        insert: insertion::before(function, statement)?,
        needs_whole_object: false,
        file_bytes: function.text.len(),
    })
}
