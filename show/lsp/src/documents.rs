//! The texts that the editor has open.

use crate::position::Lines;
use lineup_advise::outline::{Declared, DeclaredMember, TextLanguage, declared};
use lsp_types::{Position, TextDocumentContentChangeEvent};
use std::path::{Path, PathBuf};

/// An open text and the types that it declares.
pub(crate) struct Document {
    pub(crate) path: PathBuf,
    pub(crate) version: i32,
    pub(crate) text: String,
    /// The language as which it is read.
    pub(crate) language: TextLanguage,
    /// The language that the editor takes it for.
    named: TextLanguage,
    pub(crate) declared: Vec<Declared>,
}

impl Document {
    /// `None` for a language that has no types to show.
    pub(crate) fn new(path: PathBuf, language_id: &str, version: i32, text: String) -> Option<Document> {
        let named = language(&path, language_id)?;
        let mut document = Document { path, version, text, language: named, named, declared: Vec::new() };
        document.read();
        Some(document)
    }

    /// Takes changes in their order: of the whole text, or of a part.
    pub(crate) fn change(&mut self, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        for change in changes {
            match change.range {
                None => self.text = change.text,
                Some(range) => {
                    let lines = Lines::of(&self.text);
                    let (start, end) = (lines.byte(range.start), lines.byte(range.end));
                    self.text.replace_range(start..end.max(start), &change.text);
                }
            }
        }
        self.version = version;
        self.read();
    }

    fn read(&mut self) {
        self.language = self.named;
        self.declared = declared(&self.text, self.named);
        // A header of C++ has the name that one of C has.
        if self.named == TextLanguage::C && self.path.extension().is_some_and(|end| end == "h") {
            let as_cpp = declared(&self.text, TextLanguage::Cpp);
            if as_cpp.len() > self.declared.len() {
                (self.language, self.declared) = (TextLanguage::Cpp, as_cpp);
            }
        }
    }

    /// The type, or the member of one, whose name is at a position.
    pub(crate) fn at(&self, position: Position) -> Option<(&Declared, Option<&DeclaredMember>)> {
        let byte = Lines::of(&self.text).byte(position);
        // A cursor behind the last letter is still at the name.
        let is_at = |bytes: &std::ops::Range<usize>| bytes.start <= byte && byte <= bytes.end;
        let at_member = self.declared.iter().find_map(|one| {
            let member = one.members.iter().find(|member| is_at(&member.bytes))?;
            Some((one, Some(member)))
        });
        at_member.or_else(|| {
            let at_name = self.declared.iter().find(|one| is_at(&(one.bytes.start..one.name_bytes.end)));
            // The name of a typedef stands behind the type.
            let at_typedef = || self.declared.iter().find(|one| is_at(&one.name_bytes));
            let is_before = |one: &&Declared| one.name_bytes.start < one.bytes.end;
            at_name.filter(is_before).or_else(at_typedef).map(|one| (one, None))
        })
    }
}

fn language(path: &Path, language_id: &str) -> Option<TextLanguage> {
    let by_name = match language_id {
        "c" => Some(TextLanguage::C),
        "cpp" | "cuda-cpp" | "c++" => Some(TextLanguage::Cpp),
        "rust" => Some(TextLanguage::Rust),
        _ => None,
    };
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    by_name.or(match ending {
        "c" | "h" => Some(TextLanguage::C),
        "cc" | "cpp" | "cxx" | "C" | "hh" | "hpp" | "hxx" | "inl" | "ipp" => Some(TextLanguage::Cpp),
        "rs" => Some(TextLanguage::Rust),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsp_types::Range;

    fn position(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    fn named(document: &Document, line: u32, character: u32) -> Option<String> {
        document.at(position(line, character)).map(|(one, member)| match member {
            Some(member) => format!("{}.{}", one.name, member.path.join(".")),
            None => one.name.clone(),
        })
    }

    #[test]
    fn names_of_types_and_members_are_found_by_their_places() {
        let text = "struct a {\n\tint b, c;\n};\ntypedef struct {\n\tint d;\n} e_t;\nint f;\n".to_string();
        let document = Document::new("/x.c".into(), "c", 1, text).expect("C");
        assert_eq!(named(&document, 0, 0).as_deref(), Some("a"), "at the keyword");
        assert_eq!(named(&document, 0, 8).as_deref(), Some("a"), "behind the name");
        assert_eq!(named(&document, 0, 9), None, "at the brace");
        assert_eq!(named(&document, 1, 8).as_deref(), Some("a.c"));
        assert_eq!(named(&document, 4, 5).as_deref(), Some("e_t.d"));
        assert_eq!(named(&document, 5, 3).as_deref(), Some("e_t"));
        assert_eq!(named(&document, 6, 4), None);
    }

    #[test]
    fn changes_are_taken_as_they_come_and_wrong_places_do_no_harm() {
        let mut document = Document::new("/x.c".into(), "", 1, "struct a { int ä; };".into()).expect("C");
        let change = |from, to, text: &str| TextDocumentContentChangeEvent {
            range: Some(Range { start: from, end: to }),
            range_length: None,
            text: text.into(),
        };
        document.change(2, vec![change(position(0, 15), position(0, 16), "bb")]);
        assert_eq!(document.text, "struct a { int bb; };");
        document.change(
            3,
            vec![change(position(9, 9), position(0, 0), "\n"), change(position(0, 7), position(0, 8), "c")],
        );
        assert_eq!((document.text.as_str(), document.version), ("struct c { int bb; };\n", 3));
        assert_eq!(document.declared[0].name, "c");
    }

    #[test]
    fn a_header_is_read_as_the_language_it_is_in() {
        let header =
            |text: &str| Document::new("/x.h".into(), "c", 1, text.into()).expect("a header").language;
        assert_eq!(header("struct a { int class; };"), TextLanguage::C);
        assert_eq!(header("class a { int b; };"), TextLanguage::Cpp);
        assert!(Document::new("/x.py".into(), "python", 1, String::new()).is_none());
    }
}
