//! Each use of a member: reads, writes, and values in braces.

use super::bounds::range_of;
use super::context::TypeRole;
use crate::libclang::Cursor;
use crate::member_facts::{Change, IntegerMember};
use crate::read::reader::{Reader, unexposed};
use crate::read::splitting::nodes::{is_array, is_null, unqualified};
use crate::tree::Kind;
use clang_sys::*;
use lineup_model::object_uses::{HeldPart, MemberAccess, MemberUse};

/// The use of a place that holds a value.
#[derive(Clone, Copy)]
pub(super) enum Access<'u> {
    /// The value is read by the node that has this many nodes around it.
    Read { node: usize },
    /// The node that has this many nodes around it writes a value, which is known where it does not depend on what was
    /// there.
    Write { node: usize, value: Option<(Cursor<'u>, Change)> },
    /// Its address, size or type may be used.
    Other,
}

impl<'u> Reader<'u, '_> {
    /// The use of the place that the present node names.
    pub(super) fn access(&mut self, cursor: Cursor<'u>) -> Access<'u> {
        let mut inner = cursor;
        let above = &self.splitting.above;
        let Some(node) = above.iter().rposition(|outer| outer.kind() != CXCursor_ParenExpr) else {
            return Access::Other;
        };
        if let Some(&paren) = above.get(node + 1) {
            inner = paren;
        }
        let outer = above[node];
        let children = outer.children();
        let is_first =
            children.first().map(|first| first.expression_identity()) == Some(inner.expression_identity());
        match outer.kind() {
            CXCursor_UnexposedExpr if children.len() == 1 && !is_array(cursor.ty()) => Access::Read { node },
            CXCursor_BinaryOperator if is_first && self.operator_text(outer).as_deref() == Some("=") => {
                let value = children.get(1).map(|value| (*value, Change::Replaced));
                Access::Write { node, value }
            }
            CXCursor_CompoundAssignOperator if is_first => {
                let change = match self.operator_text(outer).as_deref() {
                    Some("|=" | "^=") => Some(Change::Joined),
                    Some("&=") => Some(Change::Masked),
                    _ => None,
                };
                let value = children.get(1).copied().zip(change);
                Access::Write { node, value }
            }
            CXCursor_UnaryOperator
                if unqualified(outer.ty().canonical()) == unqualified(cursor.ty().canonical()) =>
            {
                Access::Write { node, value: None }
            }
            _ => Access::Other,
        }
    }

    /// `x.m`, `p->m`.
    pub(super) fn note_member_use(&mut self, cursor: Cursor<'u>, children: &[Cursor<'u>]) {
        let Some(field) = cursor.referenced() else { return };
        let Some(class) = self.class_of(field) else { return };
        let member = field.spelling();
        let access = self.access(cursor);
        self.note_access(field.usr(), access, cursor);
        let Some((path, line, column)) = self.written_place(cursor.name_location(), &member) else {
            let part = if matches!(access, Access::Read { .. }) {
                HeldPart::Presence
            } else {
                HeldPart::Declaration
            };
            self.keep(class.clone(), Some(member.clone()), part, "a macro names it", cursor);
            if let Access::Read { node } = access
                && self.matters(node, field)
            {
                self.keep(class, Some(member), HeldPart::Type, "a macro names it", cursor);
            }
            return;
        };
        let object = children.first().copied();
        let access = match access {
            Access::Read { node } => {
                let mut cast_at = None;
                if self.matters(node, field) {
                    let place = object.and_then(|object| self.object_place(object));
                    cast_at = place.map(|place| (place.line, place.column));
                    if cast_at.is_none() || self.type_role(node) == TypeRole::Asked {
                        let reason = "its type decides the meaning of an expression";
                        self.keep(class.clone(), Some(member.clone()), HeldPart::Type, reason, cursor);
                    }
                }
                MemberAccess::Read { cast_at }
            }
            Access::Write { node, value } => {
                if self.matters(node, field) {
                    let reason = "the value of an assignment to it is used";
                    self.keep(class.clone(), Some(member.clone()), HeldPart::Type, reason, cursor);
                }
                let object_acts = object.is_some_and(|object| self.has_effects(object));
                let value = value.map(|(value, _)| value).or_else(|| {
                    let write = self.splitting.above[node];
                    write.children().get(1).copied()
                });
                let has_effects = value.is_some_and(|value| self.has_effects(value));
                MemberAccess::Written(self.statement(node, has_effects).filter(|_| !object_acts))
            }
            Access::Other => {
                let reason = "its address, its size or a part of it is used";
                return self.keep(class, Some(member), HeldPart::Declaration, reason, cursor);
            }
        };
        let used = MemberUse { path, line, column, member, access };
        self.members.classes.entry(class).or_default().uses.insert(used);
    }

    /// Whether the type of a member may decide the meaning of what is around a node. Integers that are promoted to `int`
    /// keep all but their own type when they get smaller.
    fn matters(&mut self, node: usize, field: Cursor<'u>) -> bool {
        match self.type_role(node) {
            TypeRole::None => false,
            TypeRole::Asked => true,
            TypeRole::Operand => !matches!(
                field.ty().canonical().kind(),
                CXType_Bool
                    | CXType_Char_U
                    | CXType_UChar
                    | CXType_UShort
                    | CXType_Char_S
                    | CXType_SChar
                    | CXType_Short
                    | CXType_Int
            ),
        }
    }

    /// `.m = value` in braces, or `offsetof`.
    pub(super) fn note_member_in_list(&mut self, cursor: Cursor<'u>) {
        let Some(field) = cursor.referenced() else { return };
        let Some(class) = self.class_of(field) else { return };
        let member = field.spelling();
        let entry = self.splitting.above.last().copied();
        let parts = entry.map(Cursor::children).unwrap_or_default();
        let is_entry = entry.is_some_and(|entry| entry.kind() == CXCursor_UnexposedExpr)
            && unexposed(&parts) == Kind::Designated;
        let [name, value] = parts[..] else {
            self.note_unbounded(field.usr(), cursor);
            return self.keep(class, Some(member), HeldPart::Declaration, "its offset is measured", cursor);
        };
        if !is_entry || name.kind() != CXCursor_MemberRef {
            self.note_unbounded(field.usr(), cursor);
            return self.keep(class, Some(member), HeldPart::Declaration, "its offset is measured", cursor);
        }
        if range_of(field.ty()).is_some() {
            let bound = self.bound(value);
            self.note_written(field.usr(), bound, Change::Replaced, cursor);
        }
        match self.written_place(cursor.name_location(), &member) {
            Some((path, line, column)) => {
                let access = MemberAccess::Listed { has_effects: self.has_effects(value) };
                let used = MemberUse { path, line, column, member, access };
                self.members.classes.entry(class).or_default().uses.insert(used);
            }
            None => self.keep(class, Some(member), HeldPart::Declaration, "a macro names it", cursor),
        }
    }

    /// Values in braces by position.
    pub(super) fn note_list(&mut self, list: Cursor<'u>, children: &[Cursor<'u>]) {
        const REASON: &str = "values in braces go to its members by position";
        if let [only] = children
            && is_null(*only)
        {
            return;
        }
        let is_named = |child: &Cursor<'u>| {
            child.kind() == CXCursor_UnexposedExpr
                && child.children().iter().any(|part| part.kind() == CXCursor_MemberRef)
        };
        if children.is_empty() || children.iter().all(is_named) {
            return;
        }
        let held = self.classes_in(list.ty());
        let is_whole =
            |ty: crate::libclang::Type<'u>| matches!(ty.canonical().kind(), CXType_Record) || is_array(ty);
        let is_list = |child: &Cursor<'u>| {
            matches!(child.kind(), CXCursor_InitListExpr | CXCursor_CompoundLiteralExpr)
                || is_whole(child.ty())
        };
        let own = self.own_class(list.ty());
        self.keep_all(own, HeldPart::Presence, REASON, list);
        let ty = list.ty().canonical();
        let Some(decl) = ty.declaration().filter(|_| ty.kind() == CXType_Record) else {
            // Values of elements that are no lists of their own go to members in turn.
            if ty.element().is_some_and(is_whole) && !children.iter().all(is_list) {
                self.keep_all(held, HeldPart::Declaration, REASON, list);
            }
            return;
        };
        let parts = decl.definition().unwrap_or(decl).children();
        let fields: Vec<Cursor<'u>> =
            parts.iter().copied().filter(|part| part.kind() == CXCursor_FieldDecl).collect();
        let is_plain = !children.iter().any(is_named)
            && children.len() <= fields.len()
            && !parts.iter().any(|part| matches!(part.kind(), CXCursor_StructDecl | CXCursor_UnionDecl))
            && children.iter().zip(&fields).all(|(child, field)| is_list(child) || !is_whole(field.ty()));
        if !is_plain {
            return self.keep_all(held, HeldPart::Declaration, REASON, list);
        }
        for (value, field) in children.iter().zip(&fields) {
            if range_of(field.ty()).is_some() {
                let bound = self.bound(*value);
                self.note_written(field.usr(), bound, Change::Replaced, *value);
            }
        }
    }

    /// The integers of a struct.
    pub(super) fn note_integer(&mut self, class: &str, field: Cursor<'u>) {
        if let Some(range) = range_of(field.ty()) {
            let member = IntegerMember { class: class.to_owned(), name: field.spelling(), range };
            self.members.members.insert(field.usr(), member);
        }
    }
}
