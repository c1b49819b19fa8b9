//! What joins two numbers: libclang does not tell one operator from another.

use super::Reader;
use crate::libclang::Cursor;
use crate::tree::{Kind, Operator, Site, TypeId, TypeKind};

impl<'u> Reader<'u, '_> {
    /// The operator between two operands of numbers, from the text between them; in a macro from the macro's text. A kernel's
    /// macros are not read.
    pub(super) fn operator(
        &mut self,
        kind: Kind,
        ty: TypeId,
        site: Site,
        children: &[Cursor<'u>],
    ) -> Option<Operator> {
        let is_number = matches!(self.tree.types[ty].kind, TypeKind::Scalar | TypeKind::Byte);
        let [left, right] = children else { return None };
        if kind != Kind::Binary || !is_number || self.known.is_some() {
            return None;
        }
        let ([_, end], [start, _]) = (left.extent(), right.extent());
        let between = self.texts.between(&self.tree, site.file, end, start);
        match between.as_deref().and_then(operator) {
            None => self.texts.line_from(&self.tree, site).and_then(|text| self.macros.operator(text)),
            known => known,
        }
    }
}

/// The operator that a text is, whatever spaces stand around it.
fn operator(text: &[u8]) -> Option<Operator> {
    Some(match text.trim_ascii() {
        b"+" => Operator::Plus,
        b"-" => Operator::Minus,
        b"*" => Operator::Times,
        b"<<" => Operator::ShiftLeft,
        b"&" => Operator::And,
        b"%" => Operator::Remainder,
        b"=" => Operator::Assign,
        _ => return None,
    })
}
