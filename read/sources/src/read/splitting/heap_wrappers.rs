//! Functions of a program that do no more with memory than return the result of `malloc` or `calloc`, or give their
//! argument to `free`: `xmalloc`, which ends the program when memory runs out, or `xfree`.

use super::heap_objects::is_void_pointer;
use super::nodes::{bare, is_null, is_number, uncast};
use crate::libclang::Cursor;
use crate::read::reader::Reader;
use crate::split_facts::{Dependence, SplitHold, WrappedCall};
use clang_sys::*;
use lineup_model::object_uses::{HeapCall, HeapFunction, HeapWrapper};
use std::collections::BTreeSet;

/// The memory that a wrapper gives.
pub(super) struct Memory<'u> {
    /// The call of the C library's function.
    pub(super) call: Cursor<'u>,
    /// The variable that holds it.
    pub(super) variable: Option<Cursor<'u>>,
}

/// The nodes of a function's body, each with the index of the one around it.
pub(super) type Body<'u> = Vec<(Cursor<'u>, Option<usize>)>;

/// Functions of the C library that may be given memory before the program has it.
pub(super) const FILLS: [&str; 2] = ["memset", "bzero"];

impl<'u> Reader<'u, '_> {
    /// Notes a definition that may be a wrapper.
    pub(super) fn note_heap_wrapper(&mut self, definition: Cursor<'u>) {
        let parameters = definition.arguments();
        let Some(result) = definition.result().map(|result| result.canonical()) else { return };
        let is_number_alone = |parameter: &Cursor<'u>| is_number(parameter.ty());
        let makes = is_void_pointer(result)
            && matches!(parameters.len(), 1 | 2)
            && parameters.iter().all(is_number_alone);
        let ends = result.kind() == CXType_Void
            && matches!(&parameters[..], [one] if is_void_pointer(one.ty().canonical()));
        if !(makes || ends) {
            return;
        }
        let body = body(definition);
        let function = match makes {
            true => self.gives_memory(&body, &parameters),
            false => self.ends_memory(&body, &parameters[0]),
        };
        let site = self.site(definition);
        let is_static = definition.is_static();
        let wrapping = function.map(|function| {
            let types: Vec<String> = parameters.iter().map(|one| one.ty().spelling()).collect();
            let (before, gives) =
                (if is_static { "static " } else { "" }, if makes { "void *" } else { "void " });
            let name = definition.spelling();
            let declaration = format!("{before}{gives}{name}({})", types.join(", "));
            let path = self.tree.files[site.file].to_string();
            (function, HeapWrapper { name, declaration, path, is_static, takes_count: parameters.len() == 2 })
        });
        self.splitting.facts.wrappers.entry(definition.usr()).or_default().insert(wrapping);
    }

    /// The function whose memory a function of the program gives.
    fn gives_memory(&mut self, body: &Body<'u>, parameters: &[Cursor<'u>]) -> Option<HeapFunction> {
        let (call, function) = self.only_heap_call(body)?;
        if function == HeapFunction::Free || !self.is_size(body[call].0, function, parameters) {
            return None;
        }
        let outer = outer(body, call)?;
        let variable = match outer.kind() {
            CXCursor_ReturnStmt => None,
            CXCursor_VarDecl => Some(outer),
            _ => Some(self.assigned(outer).and_then(|[to, _]| uncast(to).referenced())?),
        };
        let is_here = |one: Cursor<'u>| {
            !one.is_static()
                && body.iter().any(|(node, _)| node.kind() == CXCursor_VarDecl && is_same(*node, one))
        };
        if !variable.is_none_or(is_here) {
            return None;
        }
        let to_variable = |to: Cursor<'u>| variable.is_some_and(|variable| names(uncast(to), variable));
        let own = body[call].0;
        let memory = Memory { call: own, variable };
        let is_quiet = |at: usize, reader: &mut Self| {
            !reader.shows(body, at) || reader.has_no_object(body, at, (&memory, parameters))
        };
        if !(0..body.len()).all(|at| at == call || is_quiet(at, self)) {
            return None;
        }
        let is_own_or_null = |value: Cursor<'u>| {
            is_null(value) || uncast(value).expression_identity() == own.expression_identity()
        };
        for (at, &(node, _)) in body.iter().enumerate() {
            let is_kept = match node.kind() {
                CXCursor_ReturnStmt => {
                    let value = node.children().first().copied()?;
                    is_own_or_null(value) || to_variable(value)
                }
                CXCursor_DeclRefExpr if to_variable(node) => {
                    self.is_test(body, at) || {
                        let around = self::outer(body, at)?;
                        let is_filled = || FILLS.contains(&&*around.spelling());
                        match around.kind() {
                            CXCursor_ReturnStmt => true,
                            CXCursor_CallExpr => is_filled(),
                            _ => {
                                let set = self.assigned(around);
                                set.is_some_and(|[to, value]| to_variable(to) && is_own_or_null(value))
                            }
                        }
                    }
                }
                CXCursor_DeclRefExpr if parameters.iter().any(|one| names(node, *one)) => {
                    self.keeps_its_value(body, at)
                }
                _ => true,
            };
            if !is_kept {
                return None;
            }
        }
        Some(function)
    }

    /// True when the call asks for as much memory as the parameters say.
    fn is_size(&mut self, call: Cursor<'u>, function: HeapFunction, parameters: &[Cursor<'u>]) -> bool {
        let arguments: Vec<Cursor<'u>> = call.arguments().into_iter().map(bare).collect();
        let is_one =
            |value: &Cursor<'u>| value.evaluate() == Some(1) && value.kind() == CXCursor_IntegerLiteral;
        let is_whole = |value: Cursor<'u>, parameter: &Cursor<'u>| {
            let children: Vec<Cursor<'u>> = value.children().into_iter().map(bare).collect();
            match (value.kind(), &children[..]) {
                // `size ? size : 1`.
                (CXCursor_ConditionalOperator, [_, some, none]) => names(*some, *parameter) && is_one(none),
                _ => names(value, *parameter),
            }
        };
        let both = |one: Cursor<'u>, two: Cursor<'u>| match parameters {
            [a, b] => is_whole(one, a) && is_whole(two, b) || is_whole(one, b) && is_whole(two, a),
            [a] => is_one(&one) && is_whole(two, a) || is_one(&two) && is_whole(one, a),
            _ => false,
        };
        match (function, &arguments[..]) {
            (HeapFunction::Malloc, [size]) => match parameters {
                [parameter] => is_whole(*size, parameter),
                _ => {
                    let children: Vec<Cursor<'u>> = size.children().into_iter().map(bare).collect();
                    matches!(children[..], [one, two] if both(one, two))
                        && size.kind() == CXCursor_BinaryOperator
                        && self.operator_text(*size).as_deref() == Some("*")
                }
            },
            (HeapFunction::Calloc, [one, two]) => both(*one, *two),
            _ => false,
        }
    }

    /// `free`, of a function that gives it its parameter and does no more with it than compare it with null.
    fn ends_memory(&mut self, body: &Body<'u>, parameter: &Cursor<'u>) -> Option<HeapFunction> {
        let (call, function) = self.only_heap_call(body)?;
        let given = body[call].0.arguments();
        if function != HeapFunction::Free || !given.first().is_some_and(|one| names(uncast(*one), *parameter))
        {
            return None;
        }
        let own = body[call].0.expression_identity();
        let is_kept = |at: usize, reader: &mut Self| {
            reader.is_test(body, at) || outer(body, at).is_some_and(|one| one.expression_identity() == own)
        };
        let uses = body.iter().enumerate().filter(|(_, (node, _))| names(*node, *parameter));
        let uses: Vec<usize> = uses.map(|(at, _)| at).collect();
        let is_quiet = (0..body.len()).all(|at| at == call || !self.shows(body, at));
        (is_quiet && uses.into_iter().all(|at| is_kept(at, self))).then_some(function)
    }

    /// The one call of a function of the C library for memory.
    fn only_heap_call(&mut self, body: &Body<'u>) -> Option<(usize, HeapFunction)> {
        let mut found = None;
        for (at, (node, _)) in body.iter().enumerate() {
            if node.kind() == CXCursor_CallExpr
                && let Some(function) = self.heap_function(*node)
                && found.replace((at, function)).is_some()
            {
                return None;
            }
        }
        found
    }

    /// `!p`, `p == NULL`, `if (p)`.
    fn is_test(&mut self, body: &Body<'u>, at: usize) -> bool {
        let Some(around) = outer(body, at) else { return false };
        let is_truth = around.ty().canonical().kind() == CXType_Int;
        match around.kind() {
            CXCursor_IfStmt | CXCursor_WhileStmt | CXCursor_ForStmt | CXCursor_DoStmt => true,
            CXCursor_UnaryOperator | CXCursor_BinaryOperator => is_truth,
            _ => false,
        }
    }

    /// True unless this use of a parameter changes it to more than 1 or lets others change it.
    fn keeps_its_value(&mut self, body: &Body<'u>, at: usize) -> bool {
        let Some(around) = outer(body, at) else { return false };
        match around.kind() {
            CXCursor_UnaryOperator => {
                let is_not = around.ty().canonical().kind() == CXType_Int;
                is_not && body[at].0.ty().canonical().kind() != CXType_Int
            }
            CXCursor_CompoundAssignOperator => {
                let to = around.children().first().copied();
                to.is_none_or(|to| bare(to).expression_identity() != body[at].0.expression_identity())
            }
            CXCursor_BinaryOperator => match self.assigned(around) {
                Some([to, value]) if bare(to).expression_identity() == body[at].0.expression_identity() => {
                    bare(value).evaluate() == Some(1) && bare(value).kind() == CXCursor_IntegerLiteral
                }
                _ => true,
            },
            _ => true,
        }
    }

    /// A call of the program's own function with as many arguments as this function of the C library, where its name is
    /// written.
    pub(super) fn call_by_wrapper(
        &mut self,
        call: Cursor<'u>,
        form: HeapFunction,
    ) -> Option<(String, HeapCall)> {
        let function = call.referenced().filter(|_| call.kind() == CXCursor_CallExpr)?;
        let count = if form == HeapFunction::Calloc { 2 } else { 1 };
        let is_own = function.kind() == CXCursor_FunctionDecl && !self.is_foreign(function);
        if !is_own || call.arguments().len() != count {
            return None;
        }
        let (path, line, column) = self.written_place(call.location(), &function.spelling())?;
        let call = HeapCall { path, line, column, function: form, wrapper: None, variable: None };
        Some((function.usr(), call))
    }

    pub(super) fn note_wrapped_call(
        &mut self,
        (function, call): (String, HeapCall),
        classes: &BTreeSet<String>,
        reason: &str,
        at: Cursor<'u>,
    ) {
        let site = self.site(at);
        let hold = SplitHold {
            member: None,
            on: Dependence::Address,
            reason: reason.to_owned(),
            path: self.tree.files[site.file].to_string(),
            line: site.line,
        };
        let wrapped = WrappedCall { function, call, hold };
        for class in classes {
            self.splitting.facts.wrapped_calls.entry(class.clone()).or_default().insert(wrapped.clone());
        }
    }
}

fn body(definition: Cursor<'_>) -> Body<'_> {
    let mut body: Body<'_> = vec![(definition, None)];
    let mut at = 0;
    while let Some(&(node, _)) = body.get(at) {
        body.extend(node.children().into_iter().map(|child| (child, Some(at))));
        at += 1;
    }
    body
}

/// The node around one, without parentheses and conversions.
fn outer<'u>(body: &Body<'u>, at: usize) -> Option<Cursor<'u>> {
    let mut around = body[at].1;
    while let Some((node, next)) = around.map(|at| body[at]) {
        let is_conversion =
            matches!(node.kind(), CXCursor_ParenExpr | CXCursor_UnexposedExpr | CXCursor_CStyleCastExpr);
        if !is_conversion {
            return Some(node);
        }
        around = next;
    }
    None
}

fn is_same(one: Cursor<'_>, other: Cursor<'_>) -> bool {
    one.identity() == other.identity()
}

/// True for an expression that is this variable's name.
pub(super) fn names(expression: Cursor<'_>, variable: Cursor<'_>) -> bool {
    expression.kind() == CXCursor_DeclRefExpr
        && expression.referenced().is_some_and(|named| is_same(named, variable))
}
