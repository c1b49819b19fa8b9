//! Notes on structs of C for edits that remove members or give them smaller types: each use of a member, the values
//! that are written to members and to the variables they are copied from, and uses of objects for which their size or
//! their bytes count.
//!
//! Every rule here errs towards holding.

mod bounds;
mod context;
mod objects;
mod sources;
mod uses;

use crate::libclang::Cursor;
use crate::member_facts::MemberHold;
use crate::read::reader::Reader;
use clang_sys::*;
use lineup_model::object_uses::HeldPart;
use std::collections::BTreeSet;

impl<'u> Reader<'u, '_> {
    /// Notes what a node says. The nodes around it are known.
    pub(in crate::read) fn note_members(&mut self, cursor: Cursor<'u>, children: &[Cursor<'u>]) {
        match cursor.kind() {
            CXCursor_MemberRefExpr => self.note_member_use(cursor, children),
            CXCursor_MemberRef => self.note_member_in_list(cursor),
            CXCursor_InitListExpr => self.note_list(cursor, children),
            CXCursor_DeclRefExpr => self.note_source_use(cursor),
            CXCursor_VarDecl => self.note_source(cursor, children),
            CXCursor_FunctionDecl => self.note_function(cursor),
            CXCursor_ReturnStmt => self.note_result(children),
            CXCursor_CallExpr => self.note_arguments(cursor),
            CXCursor_UnaryExpr => self.note_measure(cursor),
            CXCursor_CStyleCastExpr | CXCursor_UnexposedExpr => self.note_pointer_change(cursor, children),
            CXCursor_StructDecl if cursor.is_definition() => self.note_struct_declaration(cursor),
            CXCursor_UnionDecl if cursor.is_definition() => self.note_union_declaration(cursor),
            _ => {}
        }
    }

    fn keep_all(&mut self, classes: BTreeSet<String>, part: HeldPart, reason: &str, at: Cursor<'u>) {
        for class in classes {
            self.keep(class, None, part, reason, at);
        }
    }

    fn keep(&mut self, class: String, member: Option<String>, part: HeldPart, reason: &str, at: Cursor<'u>) {
        let site = self.site(at);
        let path = self.tree.files[site.file].to_string();
        let hold = MemberHold { member, part, reason: reason.to_owned(), path, line: site.line };
        self.members.classes.entry(class).or_default().holds.insert(hold);
    }
}
