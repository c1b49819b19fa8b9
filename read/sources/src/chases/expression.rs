//! Expressions that only read, written out anew from the syntax tree: a macro's text never enters an edit.

use super::syntax::{DeclId, DeclaredKind, Function, PieceId};
use clang_sys::*;

/// Stands in a text for the number that counts the loop's turns.
pub(super) const HOLE: char = '\u{1}';

/// An expression without calls and side effects.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    /// The variables that it reads.
    pub(super) variables: Vec<DeclId>,
    /// The members of which it reads the value.
    pub(super) members: Vec<DeclId>,
    /// It needs brackets as an operand.
    is_operation: bool,
}

impl Expression {
    fn of(text: impl Into<String>) -> Expression {
        let text = text.into();
        Expression { text, variables: Vec::new(), members: Vec::new(), is_operation: false }
    }

    /// The text as an operand of a postfix operator.
    pub(super) fn operand(&self) -> String {
        if self.is_operation { format!("({})", self.text) } else { self.text.clone() }
    }

    fn and(mut self, other: &Expression) -> Expression {
        self.variables.extend(&other.variables);
        self.members.extend(&other.members);
        self
    }
}

/// Classes of the standard library of which `[]` and `size()` only read.
const LISTS: [&str; 2] = ["vector", "array"];

/// An expression, with [`HOLE`] in place of the node `hole`; or the reason why it cannot be written out.
pub(super) fn written(
    function: &Function<'_>,
    id: PieceId,
    hole: Option<PieceId>,
) -> Result<Expression, String> {
    let id = function.bare(id);
    if Some(id) == hole {
        return Ok(Expression::of(HOLE));
    }
    let piece = function.at(id);
    // A macro may have another value in another build: its name stands for all of them.
    if piece.is_constant && function.macros.give_values(function.slice(id).as_bytes()) {
        return Ok(Expression::of(function.slice(id)));
    }
    if piece.ty.is_guarded {
        return Err("it reads what is volatile or atomic".into());
    }
    match piece.kind {
        CXCursor_DeclRefExpr => {
            let (Some(decl), Some(declared)) = (piece.decl, function.declaration(id)) else {
                return Err(format!("`{}` is not understood", function.slice(id)));
            };
            if declared.ty.is_guarded {
                return Err(format!("`{}` is volatile or atomic", piece.name));
            }
            match declared.kind {
                DeclaredKind::Local | DeclaredKind::Global => {
                    let own = Expression::of(&piece.name);
                    Ok(Expression { variables: vec![decl], ..own })
                }
                DeclaredKind::Constant => Ok(Expression::of(&piece.name)),
                _ => Err(format!("`{}` is no variable", piece.name)),
            }
        }
        CXCursor_MemberRefExpr => {
            let (Some(decl), Some(declared)) = (piece.decl, function.declaration(id)) else {
                return Err(format!("`{}` is not understood", function.slice(id)));
            };
            if declared.kind != DeclaredKind::Member || piece.name.is_empty() {
                return Err(format!("`{}` is no member with a name", function.slice(id)));
            }
            if declared.ty.is_guarded {
                return Err(format!("the member `{}` is volatile or atomic", piece.name));
            }
            let whole = match piece.children[..] {
                [] => Expression::of(&piece.name),
                [object] => {
                    let arrow = if function.at(object).ty.is_pointer() { "->" } else { "." };
                    let object = written(function, object, hole)?;
                    Expression {
                        text: format!("{}{arrow}{}", object.operand(), piece.name),
                        is_operation: false,
                        ..object
                    }
                }
                _ => return Err(format!("`{}` names a member of a class by its name", function.slice(id))),
            };
            let mut members = whole.members.clone();
            members.push(decl);
            Ok(Expression { members, ..whole })
        }
        CXCursor_ArraySubscriptExpr => {
            let [list, index] = piece.children[..] else { return Err("an index is not understood".into()) };
            indexed(function, (list, index), hole)
        }
        CXCursor_CallExpr => {
            let class = function.declaration(id).and_then(|declared| declared.library_class.as_deref());
            let is_list = class.is_some_and(|class| LISTS.contains(&class));
            match (is_list, piece.name.as_str(), &piece.arguments[..]) {
                (true, "operator[]", &[list, index]) => indexed(function, (list, index), hole),
                (true, "size", []) => {
                    let object =
                        piece.children.first().and_then(|member| function.at(*member).children.first());
                    let object = *object.ok_or("the object of `size()` is not named")?;
                    let arrow = if function.at(object).ty.is_pointer() { "->" } else { "." };
                    let object = written(function, object, hole)?;
                    Ok(Expression {
                        text: format!("{}{arrow}size()", object.operand()),
                        is_operation: false,
                        ..object
                    })
                }
                _ => Err(format!("it calls `{}`", piece.name)),
            }
        }
        CXCursor_IntegerLiteral => {
            let text = function.slice(id);
            let is_plain = text.starts_with(|c: char| c.is_ascii_digit())
                && text.chars().all(|c| c.is_ascii_alphanumeric());
            match is_plain {
                true => Ok(Expression::of(text)),
                false => Err(format!("`{}` gives a number that other builds may change", one_line(text))),
            }
        }
        CXCursor_BinaryOperator => {
            let [left, right] = piece.children[..] else {
                return Err("an operation is not understood".into());
            };
            let sign = match function.operator(id) {
                Some(sign @ ("+" | "-" | "*" | "&" | "|" | "^" | "%" | "/" | ">>" | "<<"))
                    if piece.ty.is_integer() =>
                {
                    sign
                }
                _ => return Err(format!("`{}` is not understood", function.slice(id))),
            };
            let (left, right) = (written(function, left, hole)?, written(function, right, hole)?);
            // A value that changes before its turn must not divide, nor shift.
            if right.text.contains(HOLE) && matches!(sign, "/" | "%" | ">>" | "<<") {
                return Err(format!("`{}` divides or shifts by it", one_line(function.slice(id))));
            }
            let text = format!("{} {sign} {}", left.operand(), right.operand());
            Ok(Expression { text, is_operation: true, ..left.and(&right) })
        }
        _ => Err(format!("`{}` is not understood", one_line(function.slice(id)))),
    }
}

fn indexed(
    function: &Function<'_>,
    (list, index): (PieceId, PieceId),
    hole: Option<PieceId>,
) -> Result<Expression, String> {
    let list = written(function, list, hole)?;
    let index = written(function, index, hole)?;
    let text = format!("{}[{}]", list.operand(), index.text);
    Ok(Expression { text, is_operation: false, ..list.and(&index) })
}

/// Characters of the source that a reason quotes.
const QUOTED: usize = 60;

/// A text on one line, shortened.
pub(super) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
