//! The operators that join two numbers: libclang does not distinguish them.

use super::reader::Reader;
use crate::libclang::Cursor;
use crate::tree::{Kind, Operator, Site, TypeId, TypeKind};
use clang_sys::*;

impl<'u> Reader<'u, '_> {
    /// The operator between two operands of numbers, from the text between them; in a macro from the macro's text. A
    /// kernel's macros are not read.
    pub(super) fn operator(
        &mut self,
        kind: Kind,
        ty: TypeId,
        site: Site,
        children: &[Cursor<'u>],
    ) -> Option<Operator> {
        let is_number =
            matches!(self.tree.types[ty].kind, TypeKind::Scalar | TypeKind::Byte | TypeKind::Dependent);
        let [left, _] = children else { return None };
        let is_meant = kind == Kind::CompoundAssign || (kind == Kind::Binary && is_number);
        if !is_meant || self.known.is_some() {
            return None;
        }
        if let Some(known) = self.operator_between(site, children) {
            return Some(known);
        }
        let text = self.texts.line_from(&self.tree, site)?;
        let mask = || self.macros.masks(text).filter(|_| is_address(*left));
        self.macros.operator(text).or_else(mask)
    }

    /// The operator in the text between two operands, where no macro writes it.
    pub(super) fn operator_between(&mut self, site: Site, children: &[Cursor<'u>]) -> Option<Operator> {
        let [left, right] = children else { return None };
        let ([_, end], [start, _]) = (left.extent(), right.extent());
        let between = self.texts.between(&self.tree, site.file, end, start);
        between.as_deref().and_then(operator)
    }
}

/// `(uintptr_t)(pointer)`.
fn is_address(cursor: Cursor<'_>) -> bool {
    let is_pointer = |cursor: Cursor<'_>| {
        matches!(
            cursor.ty().canonical().kind(),
            CXType_Pointer | CXType_ConstantArray | CXType_IncompleteArray
        )
    };
    match (cursor.kind(), cursor.children().last()) {
        (CXCursor_ParenExpr | CXCursor_UnexposedExpr, Some(&inner)) => is_address(inner),
        (CXCursor_CStyleCastExpr | CXCursor_CXXReinterpretCastExpr, Some(&inner)) => {
            is_pointer(inner) || is_address(inner)
        }
        _ => false,
    }
}

/// The operator in a text, with any spaces around it.
fn operator(text: &[u8]) -> Option<Operator> {
    Some(match text.trim_ascii() {
        b"+" => Operator::Plus,
        b"-" => Operator::Minus,
        b"*" => Operator::Times,
        b"<<" => Operator::ShiftLeft,
        b">>" => Operator::ShiftRight,
        b"/" => Operator::Divide,
        b"+=" => Operator::Plus,
        b"-=" => Operator::Minus,
        b"&" => Operator::And,
        b"|" => Operator::Or,
        b"^" => Operator::Xor,
        b"==" | b"!=" => Operator::Equal,
        b"<" | b"<=" | b">" | b">=" => Operator::Less,
        b"%" => Operator::Remainder,
        b"=" => Operator::Assign,
        b".*" | b"->*" => Operator::PointedMember,
        _ => return None,
    })
}
