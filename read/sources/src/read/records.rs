//! Structs, classes and unions, and their members.

use super::reader::Reader;
use crate::facts::Where;
use crate::libclang::Cursor;
use crate::tree::{Field, Record, RecordId, TypeKind};
use clang_sys::*;

impl<'u> Reader<'u, '_> {
    pub(super) fn record(&mut self, decl: Cursor<'u>) -> RecordId {
        let key = decl.identity();
        if let Some(&known) = self.record_of_decl.get(&key) {
            return known;
        }
        let decl = decl.definition().unwrap_or(decl);
        let usr = self.name_of_record(decl);
        if let Some(&known) = self.records.get(&usr) {
            self.record_of_decl.insert(key, known);
            return known;
        }
        let id = self.tree.records.len();
        self.tree.records.push(Record::default());
        self.records.insert(usr.clone(), id);
        self.record_of_decl.insert(key, id);
        let site = self.site(decl);
        let spelling = decl.spelling();
        let template = decl.template().map(|template| template.usr().into());
        let record = &mut self.tree.records[id];
        record.usr = Some(usr.into());
        record.names = plain_name(&spelling).into_iter().collect();
        record.template = template;
        record.is_union = decl.kind() == CXCursor_UnionDecl;
        record.is_foreign = self.is_foreign_file[site.file];
        record.file = Some(self.tree.files[site.file].clone());
        record.line = site.line;
        if decl.is_definition() {
            record.is_complete = true;
            self.waiting.push((id, decl));
        }
        id
    }

    /// libclang's name, with a number where several types have it.
    fn name_of_record(&mut self, decl: Cursor<'u>) -> String {
        let usr = decl.usr();
        if self.variants.is_empty() || !decl.is_definition() {
            return usr;
        }
        let site = self.site(decl);
        let at = Where { file: self.tree.files[site.file].clone(), line: site.line };
        self.variants.name(&usr, &at).unwrap_or(usr)
    }

    /// A record's members, once the tree is read.
    pub(super) fn fill(&mut self, id: RecordId, cursor: Cursor<'u>) {
        let size_bytes = cursor.ty().size_bytes().unwrap_or(0);
        // Members of a packed record lie at any byte.
        let most_align = cursor.ty().align_bytes().unwrap_or(u64::MAX);
        let (mut fields, mut bases): (Vec<Field>, Vec<RecordId>) = (Vec::new(), Vec::new());
        let children = cursor.children();
        let (mut is_ordered, mut runs_code, mut is_closed) = (false, false, false);
        let mut ends_named = std::collections::HashSet::new();
        for child in &children {
            if child.kind() == CXCursor_FieldDecl {
                ends_named.extend(child.ty().canonical().declaration().map(Cursor::identity));
            }
        }
        for child in children {
            match child.kind() {
                CXCursor_FieldDecl => {
                    runs_code |= calls_something(child);
                    let ty = self.type_of(child.ty());
                    let offset_bits = child.offset_bits().unwrap_or(0);
                    is_closed |= child.is_hidden();
                    let align_bytes = align_bytes(child).min(most_align);
                    let (name, bits) = (child.spelling().into(), child.bits());
                    fields.push(Field { name, ty, offset_bits, align_bytes, bits });
                }
                CXCursor_StructDecl | CXCursor_UnionDecl
                    if child.is_definition()
                        && plain_name(&child.spelling()).is_none()
                        && !ends_named.contains(&child.identity()) =>
                {
                    let ty = self.type_of(child.ty());
                    let align_bytes = child.ty().align_bytes().unwrap_or(1).min(most_align);
                    fields.push(Field {
                        name: "".into(),
                        ty,
                        offset_bits: u64::MAX,
                        align_bytes,
                        bits: None,
                    });
                }
                CXCursor_CXXBaseSpecifier => {
                    if let Some(base) = child.ty().canonical().declaration() {
                        bases.push(self.record(base));
                    }
                }
                CXCursor_Constructor | CXCursor_Destructor => runs_code |= !child.is_defaulted(),
                CXCursor_CXXMethod if child.spelling() == "operator=" => runs_code |= !child.is_defaulted(),
                CXCursor_CXXMethod if child.is_defaulted() => is_ordered |= child.spelling() == "operator<=>",
                CXCursor_FriendDecl => {
                    is_ordered |= child.children().iter().any(|known| known.spelling() == "operator<=>");
                }
                _ => {}
            }
        }
        self.place_anonymous(&mut fields);
        let record = &mut self.tree.records[id];
        (record.is_ordered, record.runs_code, record.is_closed) = (is_ordered, runs_code, is_closed);
        (record.size_bytes, record.fields, record.bases) = (size_bytes, fields, bases);
    }

    /// libclang gives no offset of anonymous members: they start at the end of the member before them, or with the
    /// type.
    fn place_anonymous(&self, fields: &mut [Field]) {
        let mut end = 0;
        for field in fields {
            if field.offset_bits == u64::MAX {
                field.offset_bits = end;
            }
            end = field.offset_bits + self.tree.types[field.ty].size_bytes.unwrap_or(0) * 8;
        }
    }

    /// `typedef struct … NAME`.
    pub(super) fn name_record(&mut self, cursor: Cursor<'u>) {
        let ty = self.type_of(cursor.ty());
        if let TypeKind::Record(record) = self.tree.types[ty].kind {
            let name = cursor.spelling();
            let names = &mut self.tree.records[record].names;
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
    }
}

/// The alignment that a member's type and its own attributes require.
fn align_bytes(member: Cursor<'_>) -> u64 {
    let of_type = member.ty().align_bytes().unwrap_or(1);
    let has_attribute = member.children().iter().any(|child| child.kind() == CXCursor_AlignedAttr);
    let own = if has_attribute { asked_alignment(&member.written()) } else { None };
    own.unwrap_or(1).max(of_type)
}

/// `__attribute__((aligned(16)))`, `_Alignas(16)`, `alignas(16)`.
fn asked_alignment(written: &str) -> Option<u64> {
    const WORDS: [&str; 3] = ["aligned(", "_Alignas(", "alignas("];
    let number = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    WORDS.iter().filter_map(|word| number(written.split(word).nth(1)?)).max()
}

/// True when an expression below calls a function or a constructor.
fn calls_something(cursor: Cursor<'_>) -> bool {
    let is_call = |child: Cursor<'_>| child.kind() == CXCursor_CallExpr || calls_something(child);
    cursor.children().into_iter().any(is_call)
}

/// A tag; `None` for a name that libclang gives as `(unnamed at …)`.
fn plain_name(spelling: &str) -> Option<String> {
    (!spelling.is_empty() && !spelling.contains('(')).then(|| spelling.to_string())
}
