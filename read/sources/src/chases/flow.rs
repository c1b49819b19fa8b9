//! The order in which a loop's parts run: its header, the expressions that every turn evaluates, and the ways out.

use super::syntax::{Function, PieceId};
use crate::libclang::Cursor;
use clang_sys::*;
use std::collections::HashSet;

/// A loop, taken apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    pub(super) piece: PieceId,
    pub(super) first: Option<PieceId>,
    pub(super) condition: Option<PieceId>,
    pub(super) step: Option<PieceId>,
    pub(super) body: PieceId,
    /// The condition holds at the beginning of the body.
    pub(super) tests_first: bool,
}

impl Loop {
    /// The loop at a node; `None` for other nodes and for loops whose header is not understood.
    pub(super) fn at(function: &Function<'_>, piece: PieceId) -> Option<Loop> {
        let children = &function.at(piece).children;
        let (&body, header) = children.split_last()?;
        let bare = Loop { piece, first: None, condition: None, step: None, body, tests_first: true };
        match function.at(piece).kind {
            CXCursor_WhileStmt => Some(Loop { condition: header.first().copied(), ..bare }),
            CXCursor_DoStmt => {
                let (&condition, rest) = children.split_last()?;
                let body = *rest.first()?;
                Some(Loop { body, condition: Some(condition), tests_first: false, ..bare })
            }
            CXCursor_ForStmt => {
                let parts = parts_of_for(function, piece, header);
                Some(Loop { first: parts[0], condition: parts[1], step: parts[2], ..bare })
            }
            _ => None,
        }
    }

    /// The statements of the body, in order.
    pub(super) fn statements(&self, function: &Function<'_>) -> Vec<PieceId> {
        match function.at(self.body).kind {
            CXCursor_CompoundStmt => function.at(self.body).children.clone(),
            _ => vec![self.body],
        }
    }

    /// True when this is the innermost loop around a node.
    pub(super) fn is_nearest(&self, function: &Function<'_>, id: PieceId) -> bool {
        function.above(id).find(|above| is_loop(function.at(*above).kind)) == Some(self.piece)
    }
}

pub(super) fn is_loop(kind: CXCursorKind) -> bool {
    matches!(kind, CXCursor_WhileStmt | CXCursor_DoStmt | CXCursor_ForStmt | CXCursor_CXXForRangeStmt)
}

/// The first statement, the condition and the step of a `for`. A macro that writes the header hides the semicolons:
/// then only a header with all three parts is understood.
fn parts_of_for(function: &Function<'_>, piece: PieceId, header: &[PieceId]) -> [Option<PieceId>; 3] {
    let whole = function.slice(piece);
    let mut parts = [None; 3];
    if !whole.strip_prefix("for").is_some_and(|rest| rest.trim_start().starts_with('(')) {
        if let &[first, condition, step] = header {
            parts = [Some(first), Some(condition), Some(step)];
        }
        return parts;
    }
    let start = function.at(piece).span.start;
    for &child in header {
        let at = function.at(child).span.start;
        let before = function.text.get(start..at).unwrap_or_default();
        let part = semicolons(before);
        if let Some(part) = parts.get_mut(part) {
            *part = Some(child);
        }
    }
    parts
}

/// The semicolons of a `for` header's beginning, outside of comments, characters and texts.
fn semicolons(text: &str) -> usize {
    let mut count = 0;
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let skip = match next {
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => quoted(rest, next),
            ';' => {
                count += 1;
                1
            }
            other => other.len_utf8(),
        };
        rest = rest.get(skip..).unwrap_or_default();
    }
    count
}

/// The length of a quoted text.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, next) in text.char_indices().skip(1) {
        match next {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if next == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The parts of a condition that all hold where it holds.
pub(super) fn conjuncts(function: &Function<'_>, condition: PieceId) -> Vec<PieceId> {
    let bare = function.bare(condition);
    match (function.at(bare).kind, function.operator(bare)) {
        (CXCursor_BinaryOperator, Some("&&")) => {
            let children = function.at(bare).children.clone();
            children.into_iter().flat_map(|child| conjuncts(function, child)).collect()
        }
        _ => vec![condition],
    }
}

/// Adds the expressions that a statement evaluates whenever it is reached. True when the next statement follows.
pub(super) fn evaluated(function: &Function<'_>, id: PieceId, found: &mut Vec<PieceId>) -> bool {
    let children = &function.at(id).children;
    let first = children.first().copied();
    match function.at(id).kind {
        CXCursor_CompoundStmt => children.iter().all(|&child| evaluated(function, child, found)),
        CXCursor_DeclStmt => {
            children.iter().for_each(|&child| {
                evaluated(function, child, found);
            });
            true
        }
        CXCursor_VarDecl => {
            let values = children.iter().filter(|child| is_expression(function.at(**child).kind));
            values.for_each(|&value| expression(function, value, found));
            true
        }
        CXCursor_NullStmt => true,
        CXCursor_IfStmt | CXCursor_SwitchStmt => {
            first.into_iter().for_each(|first| {
                evaluated(function, first, found);
            });
            false
        }
        CXCursor_WhileStmt | CXCursor_ForStmt | CXCursor_DoStmt => {
            if let Some(inner) = Loop::at(function, id) {
                let parts = match inner.tests_first {
                    true => [inner.first, inner.condition],
                    false => [Some(inner.body), None],
                };
                parts.into_iter().flatten().for_each(|part| {
                    evaluated(function, part, found);
                });
            }
            false
        }
        CXCursor_ReturnStmt => {
            first.into_iter().for_each(|first| expression(function, first, found));
            false
        }
        kind if is_expression(kind) => {
            expression(function, id, found);
            true
        }
        _ => false,
    }
}

fn is_expression(kind: CXCursorKind) -> bool {
    (CXCursor_UnexposedExpr..CXCursor_UnexposedStmt).contains(&kind)
}

/// Adds an expression, and those below it that are evaluated with it.
fn expression(function: &Function<'_>, id: PieceId, found: &mut Vec<PieceId>) {
    let piece = function.at(id);
    let first = piece.children.first().copied();
    let is_whole = match piece.kind {
        CXCursor_BinaryOperator => !matches!(function.operator(id), Some("&&" | "||") | None),
        CXCursor_UnexposedExpr => piece.children.len() < 2 && !function.slice(id).starts_with("noexcept"),
        CXCursor_ParenExpr
        | CXCursor_DeclRefExpr
        | CXCursor_MemberRefExpr
        | CXCursor_CallExpr
        | CXCursor_ArraySubscriptExpr
        | CXCursor_CompoundAssignOperator
        | CXCursor_UnaryOperator
        | CXCursor_CStyleCastExpr
        | CXCursor_CXXStaticCastExpr
        | CXCursor_CXXFunctionalCastExpr
        | CXCursor_InitListExpr
        | CXCursor_IntegerLiteral
        | CXCursor_FloatingLiteral => true,
        CXCursor_ConditionalOperator => false,
        _ => return,
    };
    found.push(id);
    match is_whole {
        true => piece.children.iter().for_each(|&child| expression(function, child, found)),
        false => first.into_iter().for_each(|first| expression(function, first, found)),
    }
}

/// True when `later` runs after `sooner` where both run.
pub(super) fn follows(function: &Function<'_>, later: PieceId, sooner: PieceId) -> bool {
    let Some(common) =
        std::iter::once(later).chain(function.above(later)).find(|one| function.is_below(sooner, *one))
    else {
        return false;
    };
    let place =
        |id: PieceId| function.at(common).children.iter().position(|child| function.is_below(id, *child));
    let in_order = match function.at(common).kind {
        CXCursor_BinaryOperator => matches!(function.operator(common), Some("&&" | "||" | ",")),
        CXCursor_ConditionalOperator
        | CXCursor_CompoundStmt
        | CXCursor_DeclStmt
        | CXCursor_IfStmt
        | CXCursor_SwitchStmt
        | CXCursor_WhileStmt => true,
        _ => false,
    };
    in_order && place(sooner) < place(later)
}

/// The ways to leave a loop's turn other than by its end.
pub(super) struct Exits<'f, 'u> {
    function: &'f Function<'u>,
    /// Functions that return, and those that may not, as far as they were looked at.
    returning: HashSet<usize>,
}

/// A place at which a turn may end early, and the reason.
pub(super) struct Exit {
    pub(super) at: PieceId,
    pub(super) reason: String,
}

/// Functions of C's library that return and write nothing.
const PURE: [&str; 43] = [
    "abs", "acos", "asin", "atan", "atan2", "cbrt", "ceil", "cos", "cosh", "exp", "exp2", "fabs", "fabsf",
    "floor", "fma", "fmax", "fmin", "fmod", "hypot", "isalpha", "isdigit", "isspace", "labs", "log", "log10",
    "log2", "memchr", "memcmp", "pow", "rint", "round", "sin", "sinh", "sqrt", "sqrtf", "strchr", "strcmp",
    "strlen", "strncmp", "tan", "tanh", "tolower", "trunc",
];

/// Functions of C's library that return and write to memory that they are given, or to a stream.
const WRITING: [&str; 11] = [
    "calloc", "fprintf", "malloc", "memcpy", "memmove", "memset", "printf", "putchar", "puts", "snprintf",
    "sprintf",
];

/// The first call below a node that may write what any pointer leads to.
pub(super) fn writing_call(function: &Function<'_>, id: PieceId) -> Option<String> {
    let calls = function.below(id).into_iter().filter(|one| function.at(*one).kind == CXCursor_CallExpr);
    let mut writing = calls.filter(|call| {
        let callee = function.at(*call).decl.and_then(|decl| function.callees.get(&decl));
        let is_pure = callee.is_some_and(|callee| {
            callee.definition().is_none() && PURE.contains(&callee.spelling().as_str())
        });
        !is_pure && super::expression::written(function, *call, None).is_err()
    });
    writing.next().map(|call| function.at(call).name.clone())
}

impl<'f, 'u> Exits<'f, 'u> {
    pub(super) fn of(function: &'f Function<'u>) -> Exits<'f, 'u> {
        Exits { function, returning: HashSet::new() }
    }

    /// The exits below a node, for the loop that the node belongs to.
    pub(super) fn below(&mut self, id: PieceId) -> Vec<Exit> {
        let mut found = Vec::new();
        self.collect(id, (true, true), &mut found);
        found
    }

    fn collect(&mut self, id: PieceId, (breaks, continues): (bool, bool), found: &mut Vec<Exit>) {
        let piece = self.function.at(id);
        let kind = piece.kind;
        let reason = match kind {
            CXCursor_BreakStmt if breaks => Some("it may end by `break`".to_owned()),
            CXCursor_ContinueStmt if continues => Some("a turn may end by `continue`".to_owned()),
            CXCursor_ReturnStmt => Some("it may end by `return`".to_owned()),
            CXCursor_GotoStmt | CXCursor_IndirectGotoStmt => Some("it may end by `goto`".to_owned()),
            CXCursor_CXXThrowExpr => Some("it may end by an exception".to_owned()),
            CXCursor_CXXNewExpr => Some("`new` may throw".to_owned()),
            CXCursor_AsmStmt | CXCursor_MSAsmStmt => Some("it has assembly".to_owned()),
            CXCursor_LambdaExpr | CXCursor_StmtExpr | CXCursor_BlockExpr | CXCursor_CXXTryStmt => {
                Some("it has an expression that is not followed".to_owned())
            }
            CXCursor_CallExpr => {
                let callee = piece.decl.and_then(|decl| self.function.callees.get(&decl)).copied();
                let is_silent = self.is_reading_call(id);
                let returns =
                    is_silent || callee.is_some_and(|callee| !callee.is_virtual() && self.returns(callee));
                let name = if piece.name.is_empty() { "a pointer" } else { &piece.name };
                (!returns).then(|| format!("it calls `{name}`, which might not return"))
            }
            _ => None,
        };
        found.extend(reason.map(|reason| Exit { at: id, reason }));
        let inner = match kind {
            CXCursor_SwitchStmt => (false, continues),
            kind if is_loop(kind) => (false, false),
            _ => (breaks, continues),
        };
        let (whole, inner) = (self.function.at(id).children.clone(), inner);
        whole.into_iter().for_each(|child| self.collect(child, inner, found));
    }

    /// `[]` and `size()` of the standard library's lists.
    fn is_reading_call(&self, id: PieceId) -> bool {
        super::expression::written(self.function, id, None).is_ok()
    }

    /// True of a function that certainly returns, unless it runs for ever.
    fn returns(&mut self, callee: Cursor<'u>) -> bool {
        let definition = callee.definition();
        let Some(definition) = definition else {
            let name = callee.spelling();
            return PURE.contains(&name.as_str()) || WRITING.contains(&name.as_str());
        };
        if !self.returning.insert(definition.identity()) {
            return true;
        }
        let returns = self.body_returns(definition);
        if !returns {
            // Functions that were taken to return because of this one are looked at anew.
            self.returning.clear();
        }
        returns
    }

    fn body_returns(&mut self, cursor: Cursor<'u>) -> bool {
        let own = match cursor.kind() {
            CXCursor_CXXThrowExpr | CXCursor_CXXNewExpr | CXCursor_AsmStmt | CXCursor_MSAsmStmt => false,
            CXCursor_IndirectGotoStmt | CXCursor_LambdaExpr => false,
            CXCursor_CallExpr => cursor.referenced().is_some_and(|callee| {
                !callee.is_virtual()
                    && matches!(callee.kind(), CXCursor_FunctionDecl | CXCursor_CXXMethod)
                    && self.returns(callee)
            }),
            _ => true,
        };
        own && cursor.children().into_iter().all(|child| self.body_returns(child))
    }
}

/// Words in the names of functions that order the accesses of threads.
const ORDERING: [&str; 8] = ["lock", "mutex", "atomic", "sync", "fence", "barrier", "sem_", "rcu"];

/// The first call below a node that, by its name or those that it calls, may order the accesses of threads.
pub(super) fn ordering_call(function: &Function<'_>, id: PieceId) -> Option<String> {
    let calls = function.below(id).into_iter().filter(|one| function.at(*one).kind == CXCursor_CallExpr);
    let mut seen = HashSet::new();
    let mut callees = calls.filter_map(|call| function.callees.get(&function.at(call).decl?).copied());
    callees.find_map(|callee| orders(callee, &mut seen))
}

fn orders(callee: Cursor<'_>, seen: &mut HashSet<usize>) -> Option<String> {
    let name = callee.spelling();
    let lower = name.to_ascii_lowercase();
    if ORDERING.iter().any(|word| lower.contains(word)) && !lower.contains("block") {
        return Some(name);
    }
    let definition = callee.definition().filter(|definition| seen.insert(definition.identity()))?;
    calls_of(definition).into_iter().find_map(|callee| orders(callee, seen))
}

pub(super) fn calls_of(cursor: Cursor<'_>) -> Vec<Cursor<'_>> {
    let own = (cursor.kind() == CXCursor_CallExpr).then(|| cursor.referenced()).flatten();
    own.into_iter().chain(cursor.children().into_iter().flat_map(calls_of)).collect()
}
