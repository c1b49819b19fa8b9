//! Reads the C++ classes that `pahole` prints: the members' places at the outermost level.

use crate::pahole::declaration;
use std::collections::BTreeMap;

/// A class as printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Class {
    /// Without namespaces.
    pub(crate) name: String,
    pub(crate) size_bytes: u64,
    /// In the order printed, static members left out.
    pub(crate) parts: Vec<Part>,
}

/// A member or base class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// For a base class, its type's name.
    pub(crate) name: String,
    pub(crate) is_base: bool,
    pub(crate) offset_bits: u64,
    /// For a bit-field its width, else the bytes times eight.
    pub(crate) size_bits: u64,
}

/// All classes in a listing, by name.
pub(crate) fn read(listing: &str) -> BTreeMap<String, Vec<Class>> {
    let mut all: BTreeMap<String, Vec<Class>> = BTreeMap::new();
    let mut current: Option<Class> = None;
    let mut depth = 0;
    let mut is_in_comment = false;
    for line in listing.lines() {
        let text = line.trim();
        if is_in_comment || text.starts_with("/* vtable has") {
            is_in_comment = !text.ends_with("*/");
            continue;
        }
        let Some(class) = &mut current else {
            let head = ["struct ", "class "].iter().find_map(|keyword| line.strip_prefix(keyword));
            if let Some(head) = head.and_then(|head| head.strip_suffix(" {")) {
                current = Some(Class { name: head_name(head), ..Class::default() });
                depth = 1;
            }
            continue;
        };
        let (code, comment) = split(text);
        if code.ends_with('{') {
            depth += 1;
            continue;
        }
        if code.starts_with('}') {
            depth -= 1;
            if depth == 0 {
                all.entry(class.name.clone()).or_default().extend(current.take());
                continue;
            }
        }
        if depth > 1 {
            continue;
        }
        if let Some(size) = text.strip_prefix("/* size: ") {
            class.size_bytes = size.split(',').next().and_then(|size| size.parse().ok()).unwrap_or(0);
        }
        let is_static = code.starts_with("static ") || code.starts_with("extern ");
        if !is_static {
            class.parts.extend(part(code, comment));
        }
    }
    all
}

/// `Both : Base, Other` without the bases, `std::Both` without the namespace.
fn head_name(head: &str) -> String {
    bare(head.split(" : ").next().unwrap_or(head)).to_owned()
}

/// A name without the text before its last `::` outside of angle brackets.
pub(crate) fn bare(name: &str) -> &str {
    let (mut depth, mut start) = (0, 0);
    for (at, found) in name.char_indices() {
        match found {
            '<' => depth += 1,
            '>' => depth -= 1,
            ':' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    name[start..].trim()
}

/// The code and the last comment of a line; a base class is a comment itself.
fn split(text: &str) -> (&str, &str) {
    match (text.rfind("/*"), text.ends_with("*/")) {
        (Some(at), true) => (text[..at].trim(), text[at + 2..text.len() - 2].trim()),
        _ => (text, ""),
    }
}

fn part(code: &str, comment: &str) -> Option<Part> {
    let numbers: Vec<u64> =
        comment.replace(':', " ").split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let base = code.strip_prefix("/* ").and_then(|base| base.split_once("<ancestor>")).map(|(base, _)| base);
    if let Some(base) = base {
        let name = base.trim().split_once(' ').map_or(base.trim(), |(_, name)| name);
        let [offset, size] = numbers[..] else { return None };
        let (offset_bits, size_bits) = (offset * 8, size * 8);
        return Some(Part { name: bare(name).to_owned(), is_base: true, offset_bits, size_bits });
    }
    let name = declaration::name(code);
    match numbers[..] {
        [offset, size] => Some(Part { name, is_base: false, offset_bits: offset * 8, size_bits: size * 8 }),
        [storage, bit, _] => {
            let width = code.trim_end_matches(';').rsplit(':').next()?.parse().ok()?;
            Some(Part { name, is_base: false, offset_bits: storage * 8 + bit, size_bits: width })
        }
        _ => None,
    }
}
