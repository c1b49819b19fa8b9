//! Uses of objects for which their size or their bytes count. The rules for orders find code that knows the order of
//! members; these find code that knows no more than a number of bytes.

use crate::libclang::{Cursor, Type as ClangType};
use crate::read::reader::Reader;
use crate::read::splitting::nodes::{
    IN_UNION, INSIDE, bare, decays, is_attribute, is_null, uncast, unqualified,
};
use clang_sys::*;
use lineup_model::object_uses::HeldPart;
use std::collections::BTreeSet;

/// Functions that are given a size in bytes, and use it for that many bytes of memory.
const SIZED: [&str; 14] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "posix_memalign",
    "alloca",
    "__builtin_alloca",
    "memset",
    "memcpy",
    "memmove",
    "bzero",
    "qsort",
    "bsearch",
];

/// Functions that write or copy as many bytes as a number says.
const COPYING: [&str; 6] = ["memset", "memcpy", "memmove", "bzero", "qsort", "bsearch"];

/// Functions that use no byte of the object.
const INDIFFERENT: [&str; 3] = ["free", "realloc", "reallocarray"];

impl<'u> Reader<'u, '_> {
    pub(super) fn note_struct_declaration(&mut self, cursor: Cursor<'u>) {
        let Some(class) = self.name_of_class(cursor) else { return };
        self.members.classes.entry(class.clone()).or_default();
        if self.is_inside_declaration() {
            self.keep(class.clone(), None, HeldPart::Declaration, INSIDE, cursor);
        }
        for child in cursor.children() {
            let kind = child.kind();
            if kind == CXCursor_FieldDecl {
                if let Some(reason) = reason_of_declaration(child) {
                    self.keep(class.clone(), Some(child.spelling()), HeldPart::Declaration, reason, child);
                }
                self.note_integer(&class, child);
            } else if is_attribute(kind) {
                self.keep(
                    class.clone(),
                    None,
                    HeldPart::Declaration,
                    "its declaration has an attribute",
                    child,
                );
            }
        }
    }

    pub(super) fn note_union_declaration(&mut self, cursor: Cursor<'u>) {
        let members: Vec<ClangType<'u>> = cursor
            .children()
            .into_iter()
            .filter(|member| member.kind() == CXCursor_FieldDecl)
            .map(Cursor::ty)
            .collect();
        for ty in &members {
            let held = self.classes_in(*ty);
            self.keep_all(held, HeldPart::Declaration, "it shares the memory of a union", cursor);
        }
        let held = self.pointed_to_in_union(cursor);
        self.keep_all(held, HeldPart::Declaration, IN_UNION, cursor);
    }

    /// `sizeof`.
    pub(super) fn note_measure(&mut self, cursor: Cursor<'u>) {
        let held = self.measured(cursor);
        if held.is_empty() || self.is_given_as_size() || self.is_count_of_elements(cursor) {
            return;
        }
        self.keep_all(held, HeldPart::Declaration, "its size is measured", cursor);
    }

    /// True of a part of a size that is given to one of [`SIZED`].
    fn is_given_as_size(&self) -> bool {
        for outer in self.splitting.above.iter().rev() {
            match outer.kind() {
                CXCursor_ParenExpr
                | CXCursor_UnexposedExpr
                | CXCursor_CStyleCastExpr
                | CXCursor_BinaryOperator => {}
                CXCursor_CallExpr => return is_one_of(&SIZED, *outer),
                _ => return false,
            }
        }
        false
    }

    /// Pointers to objects that become pointers to something else.
    pub(super) fn note_pointer_change(&mut self, cursor: Cursor<'u>, children: &[Cursor<'u>]) {
        const AS_OTHER: &str = "a pointer to an object becomes one to something else, or comes from one";
        let Some(inner) = children.last().copied() else { return };
        let (to, from) = (cursor.ty().canonical(), inner.ty().canonical());
        let (target, source) = (self.pointed_to(to), self.pointed_to(from));
        if target != source {
            let is_plain = |ty: ClangType<'u>| {
                let pointed = ty.pointee().map(|to| to.canonical().kind());
                ty.kind() == CXType_Pointer && pointed == Some(CXType_Void)
            };
            if !target.is_empty() && !is_null(inner) && !is_plain(from) {
                self.keep_all(target, HeldPart::Declaration, AS_OTHER, cursor);
            }
            let is_dropped = matches!(to.kind(), CXType_Void | CXType_Bool);
            if !source.is_empty() && !is_dropped {
                let reason = if is_plain(to) { self.reason_of_call(&source) } else { Some(AS_OTHER.into()) };
                if let Some(reason) = reason {
                    self.keep_all(source, HeldPart::Declaration, &reason, cursor);
                }
            }
            return;
        }
        let is_same = unqualified(to) == unqualified(from)
            || decays(from, to)
            || matches!(from.kind(), CXType_FunctionProto | CXType_FunctionNoProto);
        if target.is_empty() && !is_same && !is_null(inner) {
            let mut held = self.classes_behind(to);
            held.extend(self.classes_behind(from));
            let reason = "a pointer to pointers to objects changes its type";
            self.keep_all(held, HeldPart::Declaration, reason, cursor);
        }
    }

    /// The reason why objects of these structs are held by the call that is given a pointer to one as `void *`.
    fn reason_of_call(&mut self, structs: &BTreeSet<String>) -> Option<String> {
        let above = self.splitting.above.iter().rev();
        let is_around = |outer: &&Cursor<'u>| {
            !matches!(outer.kind(), CXCursor_ParenExpr | CXCursor_UnexposedExpr | CXCursor_CStyleCastExpr)
        };
        let call =
            above.copied().find(|outer| is_around(&outer)).filter(|outer| outer.kind() == CXCursor_CallExpr);
        let Some(call) = call else { return Some("a pointer to an object becomes one to anything".into()) };
        let name = call.referenced().map(Cursor::spelling).unwrap_or_default();
        if is_one_of(&INDIFFERENT, call) {
            return None;
        }
        if !is_one_of(&COPYING, call) {
            return Some(format!("{name}() is given an object"));
        }
        let arguments = call.arguments();
        if !arguments.iter().any(|argument| self.measures(*argument, structs)) {
            return Some(format!("{name}() is given a number of bytes"));
        }
        let pointed: Vec<BTreeSet<String>> =
            arguments.iter().map(|argument| self.pointed_to(uncast(*argument).ty().canonical())).collect();
        let is_kept = match &*name {
            "memset" => arguments.get(1).is_some_and(|value| bare(*value).evaluate() == Some(0)),
            "memcpy" | "memmove" => pointed.iter().take(2).all(|found| found == structs),
            _ => true,
        };
        (!is_kept).then(|| format!("{name}() writes bytes of objects"))
    }

    /// True of an expression with a `sizeof` of one of these structs.
    fn measures(&mut self, expression: Cursor<'u>, structs: &BTreeSet<String>) -> bool {
        if expression.kind() == CXCursor_UnaryExpr {
            return self.measured(expression) == *structs;
        }
        expression.children().into_iter().any(|child| self.measures(child, structs))
    }
}

/// The reason why a member is kept as it is declared.
fn reason_of_declaration(field: Cursor<'_>) -> Option<&'static str> {
    let mut inner = field.ty().canonical();
    while let Some(of) = inner.element() {
        inner = of.canonical();
    }
    let is_qualified = |ty: ClangType<'_>| ty.is_const() || ty.is_volatile() || ty.is_atomic();
    if field.children().iter().any(|child| is_attribute(child.kind())) {
        return Some("its declaration has an attribute");
    }
    if field.is_bit_field() {
        return Some("it is a bit-field");
    }
    if is_qualified(inner) || is_qualified(field.ty()) {
        return Some("its type is const, volatile or atomic");
    }
    field.spelling().is_empty().then_some("it has no name")
}

fn is_one_of(names: &[&str], call: Cursor<'_>) -> bool {
    let name = call.referenced().map(Cursor::spelling).unwrap_or_default();
    names.contains(&&*name)
}
