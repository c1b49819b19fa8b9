//! Kinds of nodes and types that several notes tell apart, and expressions without what is around them.

use crate::libclang::{Cursor, Type as ClangType};
use crate::read::reader;
use clang_sys::*;

pub(in crate::read) const INSIDE: &str = "it is declared inside another type or a function";
pub(in crate::read) const IN_UNION: &str = "a union holds a pointer to an object or to something else";

pub(in crate::read) fn is_function(kind: CXCursorKind) -> bool {
    reader::is_function(kind) || kind == CXCursor_LambdaExpr
}

/// libclang gives attributes the numbers between these two.
pub(in crate::read) fn is_attribute(kind: CXCursorKind) -> bool {
    (CXCursor_UnexposedAttr..CXCursor_PreprocessingDirective).contains(&kind)
}

pub(in crate::read) fn is_reference(ty: ClangType<'_>) -> bool {
    matches!(ty.canonical().kind(), CXType_LValueReference | CXType_RValueReference)
}

pub(in crate::read) fn is_pointer(ty: ClangType<'_>) -> bool {
    ty.canonical().kind() == CXType_Pointer
}

pub(in crate::read) fn is_array_kind(kind: CXTypeKind) -> bool {
    matches!(kind, CXType_ConstantArray | CXType_IncompleteArray | CXType_VariableArray)
}

/// An array becomes a pointer to its elements, or to bytes.
pub(in crate::read) fn decays(from: ClangType<'_>, to: ClangType<'_>) -> bool {
    let is_element = |to: ClangType<'_>| {
        let own = from.element().map(|of| unqualified(of.canonical()));
        to.kind() == CXType_Void || own.is_none_or(|own| own == unqualified(to))
    };
    is_array_kind(from.kind()) && to.pointee().is_none_or(|to| is_element(to.canonical()))
}

pub(in crate::read) fn is_array(ty: ClangType<'_>) -> bool {
    is_array_kind(ty.canonical().kind())
}

/// Numbers and enumerations.
pub(in crate::read) fn is_number(ty: ClangType<'_>) -> bool {
    let kind = ty.canonical().kind();
    (CXType_Bool..=CXType_LongDouble).contains(&kind) || kind == CXType_Enum
}

pub(in crate::read) fn unqualified(ty: ClangType<'_>) -> String {
    reader::unqualified(&ty.spelling())
}

/// An expression without parentheses and conversions that are not written.
pub(in crate::read) fn bare(mut cursor: Cursor<'_>) -> Cursor<'_> {
    while matches!(cursor.kind(), CXCursor_ParenExpr | CXCursor_UnexposedExpr) {
        let [inner] = cursor.children()[..] else { break };
        cursor = inner;
    }
    cursor
}

/// The same, without casts.
pub(in crate::read) fn uncast(mut cursor: Cursor<'_>) -> Cursor<'_> {
    loop {
        cursor = bare(cursor);
        let inner = cursor.children().last().copied();
        match inner.filter(|_| cursor.kind() == CXCursor_CStyleCastExpr) {
            Some(inner) => cursor = inner,
            None => return cursor,
        }
    }
}

/// `0`, `NULL`, `(void *)0`.
pub(in crate::read) fn is_null(cursor: Cursor<'_>) -> bool {
    let inner = uncast(cursor);
    is_number(inner.ty()) && inner.kind() == CXCursor_IntegerLiteral && inner.evaluate() == Some(0)
}
