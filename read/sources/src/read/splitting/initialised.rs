//! Values that a constructor's list gives to members, and which of them its body may give instead.

use super::nodes::{is_number, is_pointer};
use crate::libclang::Cursor;
use crate::read::reader::Reader;
use clang_sys::*;
use lineup_model::object_uses::NamedMember;
use std::collections::BTreeSet;

/// The reason why values of a list stay there.
const DOES_MORE: &str = "a constructor's list gives it a value, and does more";

impl<'u> Reader<'u, '_> {
    /// The list of a constructor's definition. A value may move into the body where nothing in the list can tell: it is
    /// a number or a pointer, made of constants and of parameters that no other value changes, and no value of the list
    /// looks at the object.
    pub(super) fn note_initialisers(&mut self, constructor: Cursor<'u>, children: &[Cursor<'u>]) {
        let Some(class) = constructor.parent().and_then(|class| self.name_of_class(class)) else { return };
        let mut values: Vec<(Cursor<'u>, Option<Cursor<'u>>)> = Vec::new();
        for (at, &child) in children.iter().enumerate() {
            if child.kind() == CXCursor_MemberRef {
                let is_value = |next: &&Cursor<'u>| {
                    !matches!(next.kind(), CXCursor_MemberRef | CXCursor_CompoundStmt | CXCursor_TypeRef)
                };
                values.push((child, children.get(at + 1).filter(is_value).copied()));
            }
        }
        let all: Vec<Cursor<'u>> = values.iter().filter_map(|(_, value)| *value).collect();
        let looks = all.iter().any(|value| any_below(*value, &looks_at_object));
        let others_use: BTreeSet<usize> =
            all.iter().filter(|value| !is_quiet(**value)).flat_map(|value| parameters(*value)).collect();
        for (name, value) in values {
            let Some(field) = name.referenced().filter(|field| field.kind() == CXCursor_FieldDecl) else {
                continue;
            };
            let at = name.name_location();
            let is_plain =
                value.is_some_and(|value| is_quiet(value) && parameters(value).is_disjoint(&others_use));
            let member = field.spelling();
            let is_in_text = !at.is_in_macro
                && value.is_some_and(|value| !value.location().is_in_macro)
                && self.is_there(&at, &member);
            let holds_number = is_number(field.ty()) || is_pointer(field.ty());
            if looks || !is_plain || !is_in_text || !holds_number {
                self.hold(class.clone(), Some(member), DOES_MORE, name);
                continue;
            }
            let file = self.file(at.file);
            let path = self.tree.files[file].to_string();
            let named = NamedMember { path, line: at.line, column: at.column, member, object: None };
            self.splitting.facts.classes.entry(class.clone()).or_default().initialised.insert(named);
        }
    }
}

fn any_below(cursor: Cursor<'_>, is_it: &impl Fn(Cursor<'_>) -> bool) -> bool {
    is_it(cursor) || cursor.children().into_iter().any(|child| any_below(child, is_it))
}

/// `this`, also unwritten: a member or a method of the object that is made.
fn looks_at_object(cursor: Cursor<'_>) -> bool {
    let is_unwritten = || {
        let is_object =
            |child: &Cursor<'_>| !matches!(child.kind(), CXCursor_TypeRef | CXCursor_NamespaceRef);
        !cursor.children().iter().any(is_object)
    };
    match cursor.kind() {
        CXCursor_CXXThisExpr | CXCursor_LambdaExpr => true,
        CXCursor_MemberRefExpr => is_unwritten(),
        _ => false,
    }
}

/// A value that calls nothing and changes nothing.
fn is_quiet(value: Cursor<'_>) -> bool {
    let loud = |cursor: Cursor<'_>| match cursor.kind() {
        CXCursor_IntegerLiteral
        | CXCursor_FloatingLiteral
        | CXCursor_CharacterLiteral
        | CXCursor_CXXBoolLiteralExpr
        | CXCursor_CXXNullPtrLiteralExpr
        | CXCursor_GNUNullExpr
        | CXCursor_UnexposedExpr
        | CXCursor_ParenExpr
        | CXCursor_CStyleCastExpr
        | CXCursor_CXXStaticCastExpr
        | CXCursor_TypeRef
        | CXCursor_NamespaceRef => false,
        CXCursor_DeclRefExpr => cursor.referenced().is_none_or(|decl| match decl.kind() {
            CXCursor_ParmDecl => !(is_number(decl.ty()) || is_pointer(decl.ty())),
            CXCursor_EnumConstantDecl => false,
            _ => !(cursor.ty().is_const() && is_number(cursor.ty())),
        }),
        CXCursor_InitListExpr => cursor.children().len() > 1,
        _ => true,
    };
    !any_below(value, &loud)
}

/// The declarations that a value names, by their identity.
fn parameters(value: Cursor<'_>) -> BTreeSet<usize> {
    let mut found: BTreeSet<usize> = value.referenced().map(Cursor::identity).into_iter().collect();
    for child in value.children() {
        found.extend(parameters(child));
    }
    found
}
