//! Parts of a wrapper that another number of calls, or other sizes, would show: a count of calls, a limit, a message. A
//! split calls it twice for an object, and for fewer bytes.

use super::heap_wrappers::{Body, FILLS, Memory, names};
use super::nodes::{is_null, uncast};
use crate::libclang::Cursor;
use crate::read::reader::Reader;
use clang_sys::*;

/// A function that gives its first argument.
const EXPECT: &str = "__builtin_expect";

impl<'u> Reader<'u, '_> {
    /// True of a call, and of a change of more than the function's own variables; of a result that is no memory.
    pub(super) fn shows(&mut self, body: &Body<'u>, at: usize) -> bool {
        let node = body[at].0;
        let children = node.children();
        let is_own = |place: Cursor<'u>| {
            let place = uncast(place);
            let decl = place.referenced().filter(|_| place.kind() == CXCursor_DeclRefExpr);
            decl.is_some_and(|decl| match decl.kind() {
                CXCursor_ParmDecl => true,
                CXCursor_VarDecl => {
                    let is_here = |(one, _): &(Cursor<'u>, Option<usize>)| one.identity() == decl.identity();
                    !decl.is_static() && !decl.is_extern() && body.iter().any(is_here)
                }
                _ => false,
            })
        };
        match (node.kind(), &children[..]) {
            (CXCursor_CallExpr, _) => {
                let name = node.spelling();
                !FILLS.contains(&&*name) && name != EXPECT
            }
            (CXCursor_AsmStmt, _) => true,
            // Operations that libclang has no kind for.
            (CXCursor_UnexposedExpr, [_, _, ..]) => true,
            (CXCursor_BinaryOperator, [to, _]) => {
                self.operator_text(node).is_none_or(|operator| operator == "=") && !is_own(*to)
            }
            (CXCursor_CompoundAssignOperator, [to, _]) => !is_own(*to),
            (CXCursor_UnaryOperator, [to]) => {
                let site = self.site(node);
                // The operand of `*p` is read first, below a conversion.
                let is_place = matches!(
                    to.kind(),
                    CXCursor_DeclRefExpr
                        | CXCursor_MemberRefExpr
                        | CXCursor_ArraySubscriptExpr
                        | CXCursor_UnaryOperator
                        | CXCursor_ParenExpr
                );
                is_place && !self.changes_nothing(site) && !is_own(*to)
            }
            (CXCursor_ReturnStmt, [value]) => is_null(*value),
            _ => false,
        }
    }

    /// True of code that runs only where there is no memory, or where none is asked for.
    pub(super) fn has_no_object(
        &mut self,
        body: &Body<'u>,
        at: usize,
        (memory, parameters): (&Memory<'u>, &[Cursor<'u>]),
    ) -> bool {
        let mut at = at;
        while let Some(around) = body[at].1 {
            let (node, inner) = (body[around].0, body[at].0);
            let children = node.children();
            let place =
                children.iter().position(|one| one.expression_identity() == inner.expression_identity());
            let condition = children.first().copied();
            let tells = match (node.kind(), place) {
                (CXCursor_IfStmt | CXCursor_ConditionalOperator | CXCursor_WhileStmt, Some(place @ 1..)) => {
                    let Some(condition) = condition else { return false };
                    let has_none = self.is_null_where(condition, place == 1, memory);
                    has_none || place == 1 && self.asks_for_nothing(condition, parameters)
                }
                (CXCursor_BinaryOperator, Some(1)) => match self.operator_text(node).as_deref() {
                    Some("||") => condition.is_some_and(|left| self.is_null_where(left, false, memory)),
                    Some("&&") => condition.is_some_and(|left| self.is_null_where(left, true, memory)),
                    _ => false,
                },
                (CXCursor_CompoundStmt, Some(place)) => {
                    children[..place].iter().any(|before| self.returns_memory(*before, memory))
                }
                _ => false,
            };
            if tells {
                return true;
            }
            at = around;
        }
        false
    }

    /// `if (p) return p;`: what stands behind it has no memory.
    fn returns_memory(&mut self, statement: Cursor<'u>, memory: &Memory<'u>) -> bool {
        let children = statement.children();
        let ends = |body: &Cursor<'u>| {
            let last = body.children().last().copied().filter(|_| body.kind() == CXCursor_CompoundStmt);
            last.unwrap_or(*body).kind() == CXCursor_ReturnStmt
        };
        match (statement.kind(), &children[..]) {
            (CXCursor_IfStmt, [condition, body]) => {
                ends(body) && self.is_null_where(*condition, false, memory)
            }
            _ => false,
        }
    }

    /// True when there is no memory for certain where a condition has this truth.
    fn is_null_where(&mut self, condition: Cursor<'u>, truth: bool, memory: &Memory<'u>) -> bool {
        let condition = uncast(condition);
        let children = condition.children();
        let is_memory = |one: Cursor<'u>| {
            let one = uncast(one);
            let is_call = one.expression_identity() == memory.call.expression_identity();
            is_call || memory.variable.is_some_and(|variable| names(one, variable))
        };
        match (condition.kind(), &children[..]) {
            (CXCursor_UnaryOperator, [inner]) => {
                let site = self.site(condition);
                let is_number = ["-", "~", "+"].into_iter().any(|sign| self.is_written(site, sign));
                !is_number && self.is_null_where(*inner, !truth, memory)
            }
            (CXCursor_BinaryOperator, [left, right]) => match self.operator_text(condition).as_deref() {
                Some("==") if truth => {
                    is_null(*right) && self.gives(*left, &is_memory) || is_null(*left) && is_memory(*right)
                }
                Some("!=") if !truth => {
                    is_null(*right) && self.gives(*left, &is_memory) || is_null(*left) && is_memory(*right)
                }
                Some("&&") if truth => {
                    [left, right].into_iter().any(|one| self.is_null_where(*one, true, memory))
                }
                Some("||") if !truth => {
                    [left, right].into_iter().any(|one| self.is_null_where(*one, false, memory))
                }
                Some("=") => !truth && self.gives(condition, &is_memory),
                _ => false,
            },
            (CXCursor_CallExpr, _) if condition.spelling() == EXPECT => {
                let inner = condition.arguments().first().copied();
                inner.is_some_and(|inner| self.is_null_where(inner, truth, memory))
            }
            _ => !truth && is_memory(condition),
        }
    }

    /// True of the memory, and of `p = malloc(size)`.
    fn gives(&mut self, expression: Cursor<'u>, is_memory: &impl Fn(Cursor<'u>) -> bool) -> bool {
        let expression = uncast(expression);
        is_memory(expression) || self.assigned(expression).is_some_and(|[_, value]| is_memory(value))
    }

    /// True of a condition that no object's size meets: `size == 0`, `!size`, or a check for overflow by a quotient.
    fn asks_for_nothing(&mut self, condition: Cursor<'u>, parameters: &[Cursor<'u>]) -> bool {
        let condition = uncast(condition);
        let children = condition.children();
        let is_parameter =
            |one: Cursor<'u>| parameters.iter().any(|parameter| names(uncast(one), *parameter));
        match (condition.kind(), &children[..]) {
            (CXCursor_UnaryOperator, [inner]) => {
                let site = self.site(condition);
                self.is_written(site, "!") && is_parameter(*inner)
            }
            (CXCursor_BinaryOperator, [left, right]) => match self.operator_text(condition).as_deref() {
                Some("==") => {
                    is_parameter(*left) && is_null(*right) || is_parameter(*right) && is_null(*left)
                }
                Some("&&") => [left, right].into_iter().any(|one| self.asks_for_nothing(*one, parameters)),
                Some("||") => [left, right].into_iter().all(|one| self.asks_for_nothing(*one, parameters)),
                Some(">" | "<") => [(*left, *right), (*right, *left)].into_iter().any(|(one, other)| {
                    let other = uncast(other);
                    let is_quotient = other.kind() == CXCursor_BinaryOperator
                        && self.operator_text(other).as_deref() == Some("/");
                    is_parameter(one) && is_quotient
                }),
                _ => false,
            },
            _ => false,
        }
    }
}
