//! Text in members: where it may have no end, where it is read to its end, and where it is longer than its member.

use super::Collector;
use crate::facts::{Act, Saying, Value};
use crate::library_functions::{self, TextRule};
use crate::tree::{Kind, Name, NodeId, RecordId, TypeKind};

/// A conversion of a format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Conversion {
    /// The index of its argument behind the format.
    argument: usize,
    /// Its letter.
    kind: char,
    /// For text, how much is read.
    length: Length,
}

/// The text that a conversion of a format reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Length {
    /// To its end.
    Whole,
    /// At most this many bytes.
    Most(u64),
    /// At most as many bytes as the argument with this index says.
    Given(usize),
}

/// A member that is an array of bytes.
struct TextMember {
    record: RecordId,
    name: Name,
    bytes: u64,
}

impl Collector<'_> {
    /// The text among the arguments of a call: of a function of the C library, or of one that takes a format.
    pub(super) fn note_texts(
        &mut self,
        (function, named): (&str, usize),
        arguments: &[NodeId],
        values: &[Vec<Value>],
        id: NodeId,
    ) {
        if self.is_kernel {
            return;
        }
        if let Some(rule) = library_functions::text_rule(function) {
            self.note_text_copied(rule, arguments, id);
            for &at in rule.reads() {
                self.read_to_end(values.get(at), id);
            }
        }
        let format = (0..named.min(arguments.len())).rev().find_map(|at| {
            let text = self.tree.texts.get(&self.tree.bare(arguments[at]))?;
            text.contains('%').then(|| (at, text.clone()))
        });
        let Some((at, format)) = format.filter(|_| arguments.len() > named) else { return };
        for Conversion { argument, kind, length } in conversions(&format) {
            let given = at + 1 + argument;
            match kind {
                's' => self.note_conversion((given, length), (at + 1, arguments), values, id),
                // `scanf` writes there.
                'p' if !function.contains("scanf") => {
                    self.note_address_shown(arguments.get(given).copied(), id);
                }
                _ => {}
            }
        }
    }

    fn read_to_end(&mut self, values: Option<&Vec<Value>>, id: NodeId) {
        let values = values.map(|values| Self::objects(values)).unwrap_or_default();
        self.act(&values, &Act::ReadToEnd, id);
    }

    fn note_conversion(
        &mut self,
        (argument, length): (usize, Length),
        (first, arguments): (usize, &[NodeId]),
        values: &[Vec<Value>],
        id: NodeId,
    ) {
        let most = match length {
            Length::Whole => return self.read_to_end(values.get(argument), id),
            Length::Most(most) => Some(most),
            Length::Given(at) => {
                let given = arguments.get(first + at);
                given.and_then(|&given| self.known_number(given)).map(|known| known.most)
            }
        };
        let member = arguments.get(argument).and_then(|&argument| self.text_member(argument));
        match (member, most) {
            (Some(member), Some(most)) if most > member.bytes && self.ends_with_a_member(&member, most) => {
                self.note_text_span(&member, most, id);
            }
            (Some(member), Some(most)) if most > member.bytes => self.read_to_end(values.get(argument), id),
            _ => {}
        }
    }

    /// `strncpy(x->name, text, sizeof x->name)`, `strcpy(x->name, "longer than that")`.
    fn note_text_copied(&mut self, rule: TextRule, arguments: &[NodeId], id: NodeId) {
        let Some(member) = arguments.first().and_then(|&to| self.text_member(to)) else { return };
        let from = |at: usize| arguments.get(at).copied();
        match rule {
            TextRule::CopiesPart => {
                let size = from(2).and_then(|size| self.known_number(size));
                let fills = size.is_some_and(|size| size.most >= member.bytes);
                // An array that is no longer has its own end.
                let is_short =
                    from(1).and_then(|from| self.array_bytes(from)).is_some_and(|from| from <= member.bytes);
                let usr = self.usr(member.record);
                if let Some(usr) = usr.filter(|_| fills && !is_short) {
                    self.facts.endless_texts.insert((usr, member.name));
                }
            }
            TextRule::Copies | TextRule::Appends => {
                let text = from(1).filter(|&text| self.tree.texts.contains_key(&self.tree.bare(text)));
                let bytes = text.and_then(|text| self.array_bytes(text));
                if let Some(bytes) = bytes.filter(|&bytes| bytes > member.bytes) {
                    self.note_text_span(&member, bytes, id);
                }
            }
            TextRule::Prints => {
                let format = from(1).and_then(|format| self.tree.texts.get(&self.tree.bare(format)));
                let is_plain = format.is_some_and(|format| !format.contains('%'));
                let bytes = from(1).and_then(|format| self.array_bytes(format)).filter(|_| is_plain);
                if let Some(bytes) = bytes.filter(|&bytes| bytes > member.bytes) {
                    self.note_text_span(&member, bytes, id);
                }
            }
            TextRule::Reads => {}
        }
    }

    fn note_text_span(&mut self, member: &TextMember, bytes: u64, id: NodeId) {
        let at = self.at(id);
        if let Some(usr) = self.usr(member.record) {
            self.facts.sayings.insert((usr, Saying::Span(member.name.clone(), Some(bytes)), at));
        }
    }

    /// `x->name[7] = 0`, `*(x->name + n) = 0`: the code writes an end.
    pub(super) fn note_end_of_text(&mut self, left: NodeId) {
        let tree = self.tree;
        let node = tree.node(tree.bare(left));
        let Some(&first) = node.children.first() else { return };
        let base = match node.kind {
            Kind::Subscript => first,
            Kind::Deref => *tree.node(tree.uncast(first)).children.first().unwrap_or(&first),
            _ => return,
        };
        if let Some((usr, member)) = self.member_named(tree.uncast(base)) {
            self.facts.ended_texts.insert((usr, member));
        }
    }

    /// `char name[4] = "four"`: the array has no room for the end.
    pub(super) fn note_full_text(&mut self, record: RecordId, name: &Name, value: NodeId) {
        let tree = self.tree;
        let Some(text) = tree.texts.get(&tree.bare(value)) else { return };
        let field = tree.records[record].fields.iter().find(|field| field.name == *name);
        let Some(TypeKind::Array(of, Some(count))) = field.map(|field| tree.ty(field.ty).kind) else {
            return;
        };
        let is_full = tree.ty(of).kind == TypeKind::Byte && written_bytes(text) >= count;
        if let Some(usr) = self.usr(record).filter(|_| is_full && !self.is_kernel) {
            self.facts.endless_texts.insert((usr, name.clone()));
        }
    }

    /// The member that an argument names, when it is an array of bytes.
    fn text_member(&self, argument: NodeId) -> Option<TextMember> {
        let tree = self.tree;
        let inner = tree.uncast(argument);
        let (usr, name) = self.member_named(inner)?;
        let record = tree.record_called(&usr)?;
        let bytes = self.array_bytes(inner)?;
        Some(TextMember { record, name, bytes })
    }

    /// The size of an array of bytes.
    fn array_bytes(&self, id: NodeId) -> Option<u64> {
        let tree = self.tree;
        match tree.ty(tree.node(tree.uncast(id)).ty).kind {
            TypeKind::Array(of, Some(count)) if tree.ty(of).kind == TypeKind::Byte => Some(count),
            _ => None,
        }
    }

    /// True when a member that follows ends so many bytes behind the start of this one, and all between are bytes.
    fn ends_with_a_member(&self, member: &TextMember, bytes: u64) -> bool {
        let tree = self.tree;
        let fields = &tree.records[member.record].fields;
        let following = fields.iter().skip_while(|field| field.name != member.name);
        let mut rest = bytes;
        for field in following {
            let size = match tree.ty(field.ty).kind {
                TypeKind::Array(of, Some(count)) if tree.ty(of).kind == TypeKind::Byte => count,
                _ => return false,
            };
            match rest.checked_sub(size) {
                Some(0) => return true,
                Some(left) => rest = left,
                None => return false,
            }
        }
        false
    }
}

/// The conversions in a format.
fn conversions(format: &str) -> Vec<Conversion> {
    let mut found = Vec::new();
    let mut argument = 0;
    let mut pieces = format.split('%');
    pieces.next();
    while let Some(piece) = pieces.next() {
        // `%%`.
        if piece.is_empty() {
            pieces.next();
            continue;
        }
        // Arguments by their number.
        if piece.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('$') {
            return Vec::new();
        }
        let is_part = |c: char| c.is_ascii_digit() || "-+ #'0.*hlLqjzt".contains(c);
        let end = piece.find(|c| !is_part(c)).unwrap_or(piece.len());
        let (part, kind) = (&piece[..end], piece[end..].chars().next());
        let (width, precision) = part.split_once('.').map_or((part, None), |(w, p)| (w, Some(p)));
        argument += usize::from(width.contains('*'));
        let length = match precision {
            None => Length::Whole,
            Some(precision) if precision.starts_with('*') => {
                argument += 1;
                Length::Given(argument - 1)
            }
            Some(precision) => {
                let digits = precision.trim_end_matches(|c: char| !c.is_ascii_digit());
                Length::Most(digits.parse().unwrap_or(0))
            }
        };
        found.extend(kind.map(|kind| Conversion { argument, kind, length }));
        argument += usize::from(kind != Some('m'));
    }
    found
}

/// The bytes of a text as it is written, with its escapes and quotation marks.
fn written_bytes(text: &str) -> u64 {
    let text = text.trim_start_matches(|c| c != '"').trim_matches('"');
    let mut bytes = 0;
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        bytes += 1;
        let digits = behind.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
        rest = match first {
            b'\\' => &behind[digits.max(1).min(behind.len())..],
            _ => behind,
        };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_says_how_much_of_a_text_is_read() {
        let all = conversions("\"%d %s %5.8s %-*.*s %% %lu %s\\n\"");
        let texts = all.iter().filter(|one| one.kind == 's').map(|one| (one.argument, one.length));
        let expected = [(1, Length::Whole), (2, Length::Most(8)), (5, Length::Given(4)), (7, Length::Whole)];
        assert_eq!(texts.collect::<Vec<_>>(), expected);
        let letters: String = all.iter().map(|one| one.kind).collect();
        assert_eq!(letters, "dsssus");
        assert_eq!(conversions("\"%2$s\""), []);
    }

    #[test]
    fn escapes_are_one_byte() {
        assert_eq!(written_bytes("\"ab\\n\\000c\""), 5);
        assert_eq!(written_bytes("u8\"abc\""), 3);
    }
}
