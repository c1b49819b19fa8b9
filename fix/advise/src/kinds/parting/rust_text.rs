//! Data of threads apart in Rust's sources: an attribute on a type, or fields that make room in a `repr(C)` struct.
//!
//! The compiler checks whether all code that builds a value names the new fields. This module checks the rest: whether
//! something could look at the bytes of an object.

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::rust_uses::check_uses;
use crate::text::rust_file::{RustFile, attributes, declaration, words};
use crate::text::sources::Sources;
use crate::text::syntax::visit;
use crate::text::word_set::has_word;
use std::collections::BTreeMap;
use tree_sitter::Node;

/// The edit of the sources.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Edit {
    /// Each object begins a line.
    Align { bytes: u64 },
    /// This number of words of eight bytes before each of these fields.
    Room { before: Vec<String>, words: u64 },
}

/// Derived traits that do not show an object's alignment.
const DERIVES: [&str; 9] =
    ["Clone", "Copy", "Default", "PartialEq", "Eq", "PartialOrd", "Ord", "Hash", "Debug"];
/// The number of these, from the first, that do not show its fields either.
const SILENT_DERIVES: usize = 7;
/// Attributes that mean nothing for a layout.
const ATTRIBUTES: [&str; 9] =
    ["allow", "warn", "deny", "expect", "doc", "must_use", "derive", "repr", "non_exhaustive"];
/// The edited texts, and the file that declares the type.
pub(crate) type Edited = (String, BTreeMap<String, String>);

/// Writes an edit of the struct of this name, or says why it may not be.
pub(crate) fn edit(sources: &Sources, name: &str, edit: &Edit) -> Result<Edited, Binding> {
    let files = RustFile::all_that_name(sources, name)?;
    let (number, declaration) = declaration(&files, name)?;
    let file = &files[number];
    check_declaration(file, declaration, edit)?;
    check_uses(sources, name)?;
    let mut texts = BTreeMap::new();
    for (index, file) in files.iter().enumerate() {
        let mut insertions = match edit {
            Edit::Room { before, words } => in_values(file, (name, before.len()), *words)?,
            Edit::Align { .. } => Vec::new(),
        };
        if index == number {
            insertions.extend(in_declaration(file, declaration, edit)?);
        }
        if !insertions.is_empty() {
            texts.insert(file.path.to_owned(), inserted(file.text, insertions));
        }
    }
    Ok((file.path.to_owned(), texts))
}

/// The name of a field that makes room.
fn room(number: usize) -> String {
    format!("_apart{number}")
}

fn check_declaration(file: &RustFile<'_>, declaration: Node<'_>, edit: &Edit) -> Result<(), Binding> {
    let mut is_c = false;
    for attribute in attributes(declaration) {
        let words = words(file.str(attribute));
        let Some((own, inside)) = words.split_first().filter(|(own, _)| ATTRIBUTES.contains(own)) else {
            return Err(file.at(attribute, "an attribute whose meaning for the layout is not known"));
        };
        let may_derive = match edit {
            Edit::Align { .. } => &DERIVES[..],
            Edit::Room { .. } => &DERIVES[..SILENT_DERIVES],
        };
        if *own == "derive" && inside.iter().any(|derived| !may_derive.contains(derived)) {
            return Err(file.at(attribute, "a derived trait may show the new layout"));
        }
        if *own == "repr" {
            is_c |= inside.contains(&"C");
            if inside.iter().any(|word| matches!(*word, "packed" | "transparent" | "simd")) {
                return Err(file.at(attribute, "its layout is asked for"));
            }
        }
    }
    let is_struct = declaration.kind() == "struct_item"
        && declaration
            .child_by_field_name("body")
            .is_some_and(|body| body.kind() == "field_declaration_list");
    match edit {
        _ if !is_struct => Err(file.at(declaration, "it is no struct with named fields")),
        _ if declaration.child_by_field_name("type_parameters").is_some() => {
            Err(file.at(declaration, "it is generic"))
        }
        Edit::Room { .. } if !is_c => {
            let why = "the compiler orders its fields, as it is not repr(C): a type with #[repr(align(64))] around a field parts it";
            Err(file.at(declaration, why))
        }
        _ => Ok(()),
    }
}

/// Texts to be put in, with their places.
type Insertions = Vec<(usize, String)>;

fn inserted(text: &str, mut all: Insertions) -> String {
    all.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let mut new = text.to_owned();
    for (at, more) in all {
        new.insert_str(at, &more);
    }
    new
}

fn in_declaration(file: &RustFile<'_>, declaration: Node<'_>, edit: &Edit) -> Result<Insertions, Binding> {
    let (before, words) = match edit {
        Edit::Align { bytes } => {
            let at = declaration.start_byte();
            let line = file.text[..at].rfind('\n').map_or(0, |end| end + 1);
            let indent = &file.text[line..at];
            let (end, indent) = if indent.trim().is_empty() { ("\n", indent) } else { (" ", "") };
            return Ok(vec![(at, format!("#[repr(align({bytes}))]{end}{indent}"))]);
        }
        Edit::Room { before, words } => (before, words),
    };
    let body = declaration.child_by_field_name("body");
    let body = body.ok_or_else(|| file.at(declaration, "it has no fields"))?;
    let mut cursor = body.walk();
    let mut insertions = Vec::new();
    let mut comma = None;
    for child in body.children(&mut cursor) {
        let own = child.child_by_field_name("name").map(|own| file.str(own)).unwrap_or_default();
        if child.kind() == "," {
            comma = Some(child.end_byte());
        } else if let Some(number) = before.iter().position(|field| field == own) {
            let after = comma.ok_or_else(|| file.at(child, "no field is before it"))?;
            let room = format!("pub(crate) {}: [u64; {words}],", room(number));
            let line = file.text[after..].split('\n').next().unwrap_or_default();
            let indent: String = " ".repeat(child.start_position().column);
            let is_last = line.trim().is_empty();
            insertions.push((after, if is_last { format!("\n{indent}{room}") } else { format!(" {room}") }));
        }
    }
    match insertions.len() == before.len() {
        true => Ok(insertions),
        false => Err(file.at(declaration, "its fields are not those of the debug information")),
    }
}

/// The places where a value of the struct is built field by field.
fn in_values(
    file: &RustFile<'_>,
    (name, count): (&str, usize),
    room_words: u64,
) -> Result<Insertions, Binding> {
    let values: Vec<String> =
        (0..count).map(|number| format!("{}: [0; {room_words}],", room(number))).collect();
    let values = values.join(" ");
    let mut insertions = Vec::new();
    visit(file.tree.root_node(), |node| {
        if node.kind() != "struct_expression" || !is_of(file, node, name) {
            return;
        }
        let Some(body) = node.child_by_field_name("body") else { return };
        let mut cursor = body.walk();
        // The other value gives the fields that are not named.
        let has_base = body.children(&mut cursor).any(|child| child.kind() == "base_field_initializer");
        if !has_base {
            insertions.push((body.start_byte() + 1, format!(" {values}")));
        }
    });
    if (0..count).any(|number| has_word(file.text, &room(number))) {
        return Err(Binding::new(Constraint::UnclearSource).because("the name of the room is taken"));
    }
    Ok(insertions)
}

/// Whether a value in braces is of the struct of this name. Inside the struct's own methods that is also `Self`.
fn is_of(file: &RustFile<'_>, value: Node<'_>, name: &str) -> bool {
    let Some(path) = value.child_by_field_name("name") else { return false };
    let last = |text: &str| words(text).last().map(|word| (*word).to_owned());
    let own = last(file.str(path)).unwrap_or_default();
    if own != "Self" {
        return own == name;
    }
    let mut above = value.parent();
    while let Some(node) = above {
        if node.kind() == "impl_item" {
            let of = node.child_by_field_name("type").and_then(|of| last(file.str(of)));
            return of.as_deref() == Some(name);
        }
        above = node.parent();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: &str =
        "#[repr(C)]\npub struct Stats {\n    sent: u64, // by one\n    received: u64,\n}\n";

    fn room() -> Edit {
        Edit::Room { before: vec!["received".to_owned()], words: 7 }
    }

    fn edited(more: &[(&str, &str)], wanted: &Edit) -> Result<BTreeMap<String, String>, String> {
        let all = more.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        let sources = Sources::new(all);
        edit(&sources, "Stats", wanted).map(|(_, texts)| texts).map_err(|binding| binding.to_string())
    }

    #[test]
    fn fields_get_room_and_every_value_names_it() {
        let user = "impl Stats {\n    fn new() -> Self { Self { sent: 0, received: 0 } }\n}\n\
                    impl Other { fn new() -> Self { Self { sent: 0 } } }\n\
                    fn f(old: Stats) -> Stats { Stats { sent: 1, ..old } }\n\
                    fn g() -> crate::Stats { crate::Stats { sent, received } }\n";
        let texts = edited(&[("a.rs", DECLARED), ("b.rs", user)], &room()).expect("an edit");
        assert!(
            texts["a.rs"].contains("sent: u64, pub(crate) _apart0: [u64; 7], // by one\n"),
            "{}",
            texts["a.rs"]
        );
        for value in [
            "Self { _apart0: [0; 7], sent: 0, received: 0 }",
            "Self { sent: 0 } }",
            "Stats { sent: 1, ..old }",
            "crate::Stats { _apart0: [0; 7], sent, received }",
        ] {
            assert!(texts["b.rs"].contains(value), "{value}: {}", texts["b.rs"]);
        }
    }

    #[test]
    fn an_object_is_aligned_where_it_is_declared() {
        let text = "mod m {\n    #[derive(Debug)]\n    pub struct Stats { sent: u64 }\n}\n";
        let texts = edited(&[("a.rs", text)], &Edit::Align { bytes: 64 }).expect("an edit");
        assert!(
            texts["a.rs"].contains("    #[repr(align(64))]\n    pub struct Stats {"),
            "{}",
            texts["a.rs"]
        );
    }

    #[test]
    fn what_may_see_the_bytes_refuses() {
        for (use_of_it, why) in [
            ("extern \"C\" { fn send(all: &Stats); }", "another language"),
            ("pub extern \"C\" fn send(all: &Stats) {}", "another language"),
            ("fn f(all: &Stats) -> usize { all as *const Stats as usize }", "casts pointers"),
            ("fn f(all: &Stats) -> u64 { unsafe { *(all as *const _ as *const u64) } }", "casts pointers"),
            ("fn f() -> usize { size_of::<Stats>() }", "may look at its layout"),
            ("fn f(all: Stats) -> [u64; 2] { unsafe { std::mem::transmute(all) } }", "casts pointers"),
            ("const AT: usize = std::mem::offset_of!(Stats, received);", "casts pointers"),
            ("static_assertions::assert_eq_size!(Stats, [u64; 2]);", "a macro"),
            ("unsafe impl Pod for Stats {}", "an unsafe trait"),
            ("union Both { all: std::mem::ManuallyDrop<Stats>, bytes: [u8; 16] }", "a union"),
            ("#[no_mangle] static ALL: Stats = Stats { sent: 0, received: 0 };", "others see"),
            ("fn f(all: *mut Stats) {}", "raw pointer"),
            ("struct Stats;", "not one declaration"),
        ] {
            let refused = edited(&[("a.rs", DECLARED), ("b.rs", use_of_it)], &room()).expect_err(use_of_it);
            assert!(refused.contains(why), "{use_of_it}: {refused}");
        }
        assert!(edited(&[("a.rs", DECLARED), ("a.h", "struct Stats { long sent; };")], &room()).is_err());
        for (declared, why) in [
            (DECLARED.replace("repr(C)", "derive(Debug)"), "derived trait"),
            (DECLARED.replace("repr(C)", "repr(C, packed)"), "layout is asked for"),
            (DECLARED.replace("repr(C)", "bitfield"), "an attribute"),
            (DECLARED.replace("#[repr(C)]\n", ""), "not repr(C)"),
            (DECLARED.replace("Stats", "Stats<T>"), "generic"),
            (DECLARED.replace("sent: u64", "_apart0: u64"), "the name of the room is taken"),
        ] {
            let refused = edited(&[("a.rs", &declared)], &room()).expect_err(&declared);
            assert!(refused.contains(why), "{declared}: {refused}");
        }
    }
}
