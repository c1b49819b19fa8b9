//! Lists in braces of Rust: the fields of a declaration, or the values of fields, with the lines of each.

use crate::kinds::cold_part::rust_values::Evaluation;
use crate::text::rust_file::RustFile;
use std::collections::BTreeSet;
use std::ops::Range;
use tree_sitter::Node;

/// A field, or its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ListedField {
    /// The field; empty for `..base`.
    pub(crate) name: String,
    /// Its own bytes.
    pub(crate) bytes: Range<usize>,
    /// Its lines, with comments and attributes before it, the comma, and a comment behind.
    pub(crate) whole: Range<usize>,
    has_comma: bool,
    /// The evaluation of its value.
    pub(crate) evaluation: Evaluation,
}

/// A list that has each field on lines of its own, or all on one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FieldList {
    /// The bytes from behind the opening brace to before the closing one.
    pub(crate) inside: Range<usize>,
    pub(crate) fields: Vec<ListedField>,
    pub(crate) is_by_lines: bool,
    /// The blanks before each field.
    pub(crate) indent: String,
}

/// A part of an edited text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    /// These bytes of the text before.
    Old(Range<usize>),
    /// Other text.
    New(String),
}

impl FieldList {
    /// `None` where fields share lines with others.
    pub(crate) fn of(file: &RustFile<'_>, body: Node<'_>) -> Option<FieldList> {
        let text = file.text;
        let inside = body.start_byte() + 1..body.end_byte().checked_sub(1)?;
        let all = text.get(inside.clone())?;
        let is_by_lines = all.contains('\n');
        let mut fields: Vec<ListedField> = Vec::new();
        let mut start = match is_by_lines {
            true => inside.start + all.find('\n').filter(|end| all[..*end].trim().is_empty())? + 1,
            false => inside.start,
        };
        let mut cursor = body.walk();
        let children: Vec<Node<'_>> = body.children(&mut cursor).collect();
        for (index, child) in children.iter().enumerate() {
            let name = match child.kind() {
                "field_declaration" => child.child_by_field_name("name"),
                "field_initializer" => child.child_by_field_name("field"),
                "shorthand_field_initializer" | "base_field_initializer" => Some(*child),
                "line_comment" | "block_comment" if !is_by_lines => return None,
                _ => continue,
            };
            let is_base = child.kind() == "base_field_initializer";
            let comma = children.get(index + 1).filter(|next| next.kind() == ",");
            let mut end = comma.map_or(child.end_byte(), Node::end_byte);
            if is_by_lines {
                let rest = text.get(end..inside.end)?;
                let line = rest.find('\n')?;
                let behind = rest[..line].trim();
                if !behind.is_empty() && !behind.starts_with("//") {
                    return None;
                }
                end += line + 1;
            }
            fields.push(ListedField {
                name: if is_base { String::new() } else { file.str(name?).to_owned() },
                bytes: child.byte_range(),
                whole: start..end,
                has_comma: comma.is_some(),
                evaluation: Evaluation::of(file, *child),
            });
            start = end;
        }
        let first = text.get(fields.first()?.whole.clone())?;
        let last_line = fields.first().and_then(|field| text.get(field.whole.start..field.bytes.start));
        let indent = last_line.unwrap_or(first).rsplit('\n').next().unwrap_or_default();
        let indent: String = indent.chars().take_while(|c| c.is_whitespace()).collect();
        Some(FieldList { inside, fields, is_by_lines, indent })
    }

    /// The fields with these names, or the others.
    pub(crate) fn partition(&self, moved: &BTreeSet<String>) -> (Vec<&ListedField>, Vec<&ListedField>) {
        self.fields.iter().partition(|field| moved.contains(&field.name))
    }

    /// One level of indentation.
    pub(crate) fn step(&self) -> &'static str {
        if self.indent.contains('\t') { "\t" } else { "    " }
    }

    /// One field as a line, or as a part of the line, with a comma.
    pub(crate) fn field(
        &self,
        field: &ListedField,
        render: &dyn Fn(Range<usize>) -> Vec<Piece>,
    ) -> Vec<Piece> {
        let own = match self.is_by_lines {
            true => field.whole.clone(),
            false => field.bytes.clone(),
        };
        if field.has_comma && self.is_by_lines || field.name.is_empty() {
            return render(own);
        }
        let mut pieces = render(own.start..field.bytes.end);
        pieces.push(Piece::New(",".to_owned()));
        pieces.extend(render(field.bytes.end..own.end));
        pieces
    }
}

/// The pieces with one level more before each line that begins in the old text, but in strings.
pub(crate) fn indented(pieces: Vec<Piece>, text: &str, step: &str, strings: &[Range<usize>]) -> Vec<Piece> {
    let mut all = Vec::new();
    for piece in pieces {
        let Piece::Old(range) = piece else {
            all.push(piece);
            continue;
        };
        let mut at = range.start;
        for start in range.clone() {
            let begins = start == 0 || text.as_bytes().get(start - 1) == Some(&b'\n');
            let is_blank = text.as_bytes().get(start) == Some(&b'\n');
            let is_in_string = strings.iter().any(|one| one.start < start && start < one.end);
            if begins && !is_blank && !is_in_string {
                all.push(Piece::Old(at..start));
                all.push(Piece::New(step.to_owned()));
                at = start;
            }
        }
        all.push(Piece::Old(at..range.end));
    }
    all
}

/// A text made of pieces, and the places in the text before.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct PiecedText {
    pub(crate) text: String,
    /// Where old bytes begin in the new text, and which.
    origins: Vec<(usize, Range<usize>)>,
}

impl PiecedText {
    pub(crate) fn new(before: &str, pieces: Vec<Piece>) -> Self {
        let mut made = PiecedText::default();
        for piece in pieces {
            match piece {
                Piece::New(text) => made.text.push_str(&text),
                Piece::Old(range) if range.is_empty() => {}
                Piece::Old(range) => {
                    made.origins.push((made.text.len(), range.clone()));
                    made.text.push_str(before.get(range).unwrap_or_default());
                }
            }
        }
        made
    }

    /// The place in the text before that this line and column (in characters), from 1, come from, or the last one before
    /// them.
    pub(crate) fn origin(&self, line: u32, column: u32) -> Option<usize> {
        let rows = self.text.split_inclusive('\n').take(line.saturating_sub(1) as usize);
        let start: usize = rows.map(str::len).sum();
        let row = self.text.get(start..)?.split('\n').next()?;
        let chars = row.chars().take(column.saturating_sub(1) as usize);
        let at = start + chars.map(char::len_utf8).sum::<usize>();
        let (new, old) = self.origins.iter().rev().find(|(new, _)| *new <= at)?;
        Some((old.start + (at - new)).min(old.end.saturating_sub(1)))
    }
}
