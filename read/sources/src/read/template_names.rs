//! Names, sizes and numbers in templates that only their instances resolve.

use super::reader::Reader;
use crate::libclang::Cursor;
use crate::tree::{Kind, Name, NodeId, TypeKind};
use clang_sys::*;

impl<'u> Reader<'u, '_> {
    /// The declaration that a name or a call means. In a template a call's arguments choose the function: it is known
    /// where the project has one of that name.
    pub(super) fn meant(&mut self, cursor: Cursor<'u>) -> Option<Cursor<'u>> {
        let overloads =
            |cursor: Cursor<'u>| cursor.referenced().filter(|decl| decl.kind() == CXCursor_OverloadedDeclRef);
        let callee = || cursor.children().first().copied().filter(|_| cursor.kind() == CXCursor_CallExpr);
        let decl = match cursor.referenced() {
            None => callee().and_then(overloads),
            decl => decl,
        };
        if decl.is_none_or(|decl| decl.kind() != CXCursor_OverloadedDeclRef) {
            return decl;
        }
        let one = decl.and_then(Cursor::only_overload).filter(|one| !self.is_foreign(*one));
        one.or_else(|| cursor.referenced())
    }

    /// The name behind `.` or `->`, where the object's type is not known.
    pub(super) fn dependent_member(&mut self, cursor: Cursor<'u>, children: &[Cursor<'u>]) -> Option<Name> {
        let [_, from] = children.first()?.extent();
        let [_, to] = cursor.extent();
        let file = self.site(cursor).file;
        let text = self.texts.between(&self.tree, file, from, to)?;
        let text = String::from_utf8(text).ok()?;
        let name = text.trim().trim_start_matches("->").trim_start_matches('.').trim();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        is_name.then(|| name.into())
    }

    /// `sizeof(T)` in a template.
    pub(super) fn note_dependent_size(&mut self, id: NodeId) {
        let node = &self.tree.nodes[id];
        let Some(&measured) = node.children.first().filter(|_| node.kind == Kind::SizeOf) else { return };
        let ty = self.tree.nodes[measured].ty;
        if self.tree.types[ty].kind == TypeKind::Dependent && !self.templates.is_empty() {
            self.tree.dependent_sizes.insert(id, self.templates.clone());
        }
    }

    /// `at<16>`, `load<int, offsetof(struct t, m)>(x)`: the numbers in the order of the template's parameters.
    pub(super) fn note_template_numbers(&mut self, id: NodeId, cursor: Cursor<'u>) {
        let children = cursor.children();
        let reference = children.iter().position(|child| child.kind() == CXCursor_TemplateRef);
        let template = match reference {
            Some(at) => children[at].referenced(),
            None if matches!(cursor.kind(), CXCursor_DeclRefExpr | CXCursor_MemberRefExpr) => {
                cursor.referenced().and_then(|decl| decl.template())
            }
            None => return,
        };
        let Some(template) = template.filter(|template| !self.is_foreign(*template)) else { return };
        let mut parameters = template.children();
        parameters.retain(|child| child.kind() == CXCursor_NonTypeTemplateParameter);
        let given = self.tree.nodes[id].children.iter().copied().skip(reference.map_or(0, |at| at + 1));
        let is_number = |&given: &NodeId| {
            let node = &self.tree.nodes[given];
            let is_type =
                matches!(node.kind, Kind::TypeRef | Kind::InitList | Kind::Function | Kind::Variable);
            !is_type && matches!(self.tree.types[node.ty].kind, TypeKind::Scalar | TypeKind::Byte)
        };
        let given: Vec<NodeId> = given.filter(is_number).collect();
        let numbers = parameters.into_iter().map(|parameter| parameter.usr().into()).zip(given);
        self.tree.template_numbers.extend(numbers);
    }
}
