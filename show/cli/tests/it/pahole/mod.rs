//! Reads the text that `pahole` and `lineup layout --full` print: structs with their members' places,
//! holes and sums.

pub(crate) mod declaration;

use declaration::{name, without_attributes};
use std::collections::BTreeMap;

/// A struct as printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Printed {
    pub(crate) name: String,
    /// Nesting, name and place of every member, with the holes before it.
    pub(crate) members: Vec<Member>,
    /// The figures of the summary by their names.
    pub(crate) sums: BTreeMap<String, u64>,
}

/// A member as printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Member {
    pub(crate) depth: usize,
    pub(crate) name: String,
    /// `offset size`, or `offset:bit size` of a bit-field.
    pub(crate) place: String,
    pub(crate) hole_before_bytes: u64,
    pub(crate) hole_before_bits: u64,
}

/// All structs in a listing.
pub(crate) fn read(listing: &str) -> Vec<Printed> {
    let mut all = Vec::new();
    let mut current: Option<Printed> = None;
    let mut depth = 0;
    let (mut bytes, mut bits) = (0, 0);
    // The number of members when each nested type was opened.
    let mut opened = Vec::new();
    for line in listing.lines() {
        let text = line.trim();
        let Some(printed) = &mut current else {
            if let Some(name) = text.strip_prefix("struct ").and_then(|rest| rest.strip_suffix(" {")) {
                if !line.starts_with(char::is_whitespace) {
                    current = Some(Printed { name: name.to_owned(), ..Printed::default() });
                    (depth, bytes, bits) = (1, 0, 0);
                }
            } else if line == "typedef struct {" {
                current = Some(Printed::default());
                (depth, bytes, bits) = (1, 0, 0);
            }
            continue;
        };
        let (code, comment) = split_comment(text);
        if code.is_empty() {
            if let Some((count, unit)) = hole(comment) {
                *if unit == "byte" { &mut bytes } else { &mut bits } += count;
            } else if depth == 1 {
                note_sums(comment, &mut printed.sums);
            }
            continue;
        }
        if code.ends_with('{') {
            depth += 1;
            opened.push((printed.members.len(), bytes, bits));
            continue;
        }
        if code.starts_with('}') {
            depth -= 1;
            if depth == 0 {
                if printed.name.is_empty() {
                    printed.name = name(code);
                }
                all.extend(current.take());
                continue;
            }
            let Some((members, bytes_before, bits_before)) = opened.pop() else { continue };
            if without_attributes(code).contains('*') {
                // pahole also shows the content of a pointer's target; that is not part of the struct.
                printed.members.truncate(members);
                (bytes, bits) = (bytes_before, bits_before);
            }
        }
        if let Some(place) = place(comment) {
            let name = name(code);
            printed.members.push(Member {
                depth,
                name,
                place,
                hole_before_bytes: bytes,
                hole_before_bits: bits,
            });
            (bytes, bits) = (0, 0);
        }
    }
    all
}

fn split_comment(text: &str) -> (&str, &str) {
    // Comments inside a declaration precede it; the place is in the last one.
    match (text.rfind("/*"), text.ends_with("*/")) {
        (Some(at), true) => (text[..at].trim(), text[at + 2..text.len() - 2].trim()),
        _ => (text, ""),
    }
}

/// `4 bytes hole` or `XXX 4 bytes hole, try to pack`.
fn hole(comment: &str) -> Option<(u64, &'static str)> {
    let mut words = comment.trim_start_matches("XXX ").split([' ', ',']);
    let count = words.next()?.parse().ok()?;
    let unit = words.next()?;
    if words.next() != Some("hole") {
        return None;
    }
    Some((count, if unit.starts_with("byte") { "byte" } else { "bit" }))
}

/// `size: 16, cachelines: 1` and the like; a sum may carry a unit.
///
/// Newer versions of pahole also sum up the holes of structs that are members.
fn note_sums(comment: &str, sums: &mut BTreeMap<String, u64>) {
    if comment.starts_with("member types with ") {
        return;
    }
    for part in comment.split(", ") {
        if let Some((name, value)) = part.split_once(": ")
            && let Some(value) = value.split(' ').next().and_then(|value| value.parse().ok())
        {
            sums.insert(name.to_owned(), value);
        }
    }
}

/// A place in canonical spelling.
fn place(comment: &str) -> Option<String> {
    let is_place = !comment.is_empty() && comment.chars().all(|c| c.is_ascii_digit() || c == ' ' || c == ':');
    is_place.then(|| comment.replace(": ", ":").split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Names that our listing gives to structs through typedefs.
pub(crate) fn typedef_names(listing: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_typedef = false;
    for line in listing.lines() {
        if line.starts_with("typedef struct {") {
            is_typedef = true;
        } else if is_typedef && let Some(name) = line.strip_prefix("} ") {
            names.push(name.trim_end_matches(';').to_owned());
            is_typedef = false;
        }
    }
    names.sort();
    names.dedup();
    names
}

/// The first difference between two listings of a struct.
pub(crate) fn difference(theirs: &Printed, ours: &Printed) -> Option<String> {
    for (index, member) in theirs.members.iter().enumerate() {
        if ours.members.get(index) != Some(member) {
            return Some(format!("pahole {member:?}, lineup {:?}", ours.members.get(index)));
        }
    }
    if ours.members.len() != theirs.members.len() {
        return Some(format!("{} members instead of {}", ours.members.len(), theirs.members.len()));
    }
    const SUMS: [&str; 12] = [
        "size",
        "cachelines",
        "members",
        "sum members",
        "holes",
        "sum holes",
        "sum bitfield members",
        "bit holes",
        "sum bit holes",
        "padding",
        "bit_padding",
        "last cacheline",
    ];
    for name in SUMS {
        let (theirs, ours) = (theirs.sums.get(name), ours.sums.get(name));
        if theirs.is_some() && theirs != ours {
            return Some(format!("{name}: pahole {theirs:?}, lineup {ours:?}"));
        }
    }
    None
}
