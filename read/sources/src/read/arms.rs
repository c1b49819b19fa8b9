//! Arms of a `switch` that never run: macros that take a value of any size switch by `sizeof`, with an arm for each
//! size.

use crate::libclang::Cursor;
use clang_sys::*;

/// The statements of a `switch` that its condition, a constant, never reaches. The list is empty when a `goto` may lead
/// to them.
pub(super) fn never_run<'u>(switch: Cursor<'u>) -> Vec<Cursor<'u>> {
    let children = switch.children();
    let [condition, body] = children.as_slice() else { return Vec::new() };
    if body.kind() != CXCursor_CompoundStmt || any_below(*condition, &[CXCursor_CallExpr]) {
        return Vec::new();
    }
    let Some(chosen) = condition.evaluate() else { return Vec::new() };
    let statements = body.children();
    match statements.iter().map(|&statement| labels(statement)).collect::<Option<Vec<_>>>() {
        Some(labels) => unreached(&statements, &labels, chosen),
        None => Vec::new(),
    }
}

/// The labels before a statement of a `switch`.
#[derive(Default)]
struct Labels {
    values: Vec<i64>,
    is_default: bool,
    /// Control does not continue behind it.
    ends: bool,
}

/// `None` where the labels are not all at the front, are not plain numbers, or where a `goto` may lead.
fn labels(mut statement: Cursor<'_>) -> Option<Labels> {
    let mut labels = Labels::default();
    loop {
        let children = statement.children();
        match (statement.kind(), children.as_slice()) {
            (CXCursor_CaseStmt, [value, inner]) => {
                labels.values.push(value.evaluate()?);
                statement = *inner;
            }
            (CXCursor_DefaultStmt, [inner]) => {
                labels.is_default = true;
                statement = *inner;
            }
            (CXCursor_CaseStmt | CXCursor_DefaultStmt, _) => return None,
            _ => break,
        }
    }
    labels.ends = ends(statement);
    let others = [CXCursor_CaseStmt, CXCursor_DefaultStmt, CXCursor_LabelStmt, CXCursor_SwitchStmt];
    (!any_below(statement, &others)).then_some(labels)
}

fn unreached<'u>(statements: &[Cursor<'u>], labels: &[Labels], chosen: i64) -> Vec<Cursor<'u>> {
    let is_named = labels.iter().any(|labels| labels.values.contains(&chosen));
    let mut is_reached = false;
    let mut all = Vec::new();
    for (statement, labels) in statements.iter().zip(labels) {
        is_reached |= if is_named { labels.values.contains(&chosen) } else { labels.is_default };
        if !is_reached {
            all.push(*statement);
        }
        is_reached &= !labels.ends;
    }
    all
}

/// True when control leaves the `switch` there for certain.
fn ends(statement: Cursor<'_>) -> bool {
    match statement.kind() {
        CXCursor_BreakStmt | CXCursor_ReturnStmt | CXCursor_ContinueStmt | CXCursor_GotoStmt => true,
        CXCursor_CompoundStmt => statement.children().last().is_some_and(|&last| ends(last)),
        _ => false,
    }
}

/// True when the expression or statement, or a part of it, is of one of these kinds.
fn any_below(cursor: Cursor<'_>, kinds: &[CXCursorKind]) -> bool {
    kinds.contains(&cursor.kind()) || cursor.children().into_iter().any(|child| any_below(child, kinds))
}
