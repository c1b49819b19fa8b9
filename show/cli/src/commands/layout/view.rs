//! A type in full, in its source language's syntax, with offsets.

use super::shown::Shown;
use crate::types::subject::Subject;
use lineup_model::figure::counted;
use lineup_model::layout::{Gap, Layout, Row, indirect_virtual_bases};
use lineup_model::line::LineSize;
use lineup_model::types::{Aggregate, AggregateKind, Language, MemberRole, Selector, TypeId, TypeKind};
use lineup_report::text::{Extent, SCREEN_LINES, TextStyle, screen};
use lineup_report::visible::many_lines;
use rayon::prelude::*;
use std::borrow::Cow;
use std::fmt::Write;

/// Anonymous types nested deeper than this are not opened.
const MAX_NESTING: usize = 8;
/// Column of the comment with offset and size.
const COMMENT_COLUMN: usize = 52;

/// Types that are written by one thread at a time.
const AT_ONCE: usize = 64;

/// All declarations, an empty line between two, in pieces that follow each other.
pub(crate) fn all(subject: &Subject, shown: &[Shown<'_>]) -> Vec<String> {
    let piece = |(number, some): (usize, &[Shown<'_>])| {
        let mut text = String::new();
        for (place, one) in some.iter().enumerate() {
            if number + place > 0 {
                text.push('\n');
            }
            text.push_str(&full(subject, one));
        }
        match many_lines(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(visible) => visible,
        }
    };
    shown.par_chunks(AT_ONCE).enumerate().map(piece).collect()
}

/// The declarations that fit on a first screen. For the last one that is begun, sizes and holes are shown all the same.
pub(crate) fn first_screen(text: &str, style: TextStyle) -> String {
    let text = screen(text, style, Extent::All, "");
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= SCREEN_LINES {
        return text;
    }
    let is_end = |line: &&str| line.starts_with('}');
    let end_after = |from: usize| lines.iter().skip(from).position(is_end).map(|at| from + at);
    let begins = |end: usize| lines[..end].iter().rposition(|line| line.trim_start().starts_with(SUMMARY));
    // The summary of the declaration that the cut meets: from its sizes to its end.
    let summary = end_after(SCREEN_LINES - 1).and_then(|end| Some((begins(end)?, end)));
    let summary = summary.map_or(&[][..], |(from, end)| lines.get(from..=end).unwrap_or_default());
    let head = (SCREEN_LINES - 1).saturating_sub(summary.len());
    let left = lines.len().saturating_sub(head + summary.len());
    let more = format!("… {} more: --full", counted(left as u64, "line"));
    let shown = lines.iter().take(head).copied().chain([more.as_str()]).chain(summary.iter().copied());
    shown.flat_map(|line| [line, "\n"]).collect()
}

/// The first words of a declaration's figures.
const SUMMARY: &str = "/* size: ";

/// The declaration with offsets, holes and line boundaries.
pub(crate) fn full(subject: &Subject, shown: &Shown<'_>) -> String {
    let mut printer = Printer { subject, layout: &shown.layout, out: String::new(), next_line: 1 };
    let ty = subject.types().get(shown.id);
    let language = ty.map(|ty| ty.language).unwrap_or_default();
    if let Some(at) = ty.and_then(|ty| ty.declared_at.as_ref()) {
        let _ = writeln!(printer.out, "/* {}:{} */", at.file, at.line);
    }
    let is_typedef = ty.is_some_and(|ty| ty.name.is_none());
    let keyword = keyword(shown.layout.kind, language);
    match is_typedef {
        true => _ = writeln!(printer.out, "typedef {keyword} {{"),
        false => _ = writeln!(printer.out, "{keyword} {} {{", shown.name),
    }
    printer.rows(&shown.layout, language, 0, 1);
    printer.indirect_virtual_bases(shown);
    printer.summary(&shown.layout);
    match (is_typedef, ty.and_then(|ty| ty.declared_align)) {
        (true, _) => _ = writeln!(printer.out, "}} {};", shown.name),
        (false, Some(align)) => _ = writeln!(printer.out, "}} __attribute__((__aligned__({align})));"),
        (false, None) => printer.out.push_str("};\n"),
    }
    printer.out
}

fn keyword(kind: AggregateKind, language: Language) -> &'static str {
    match kind {
        AggregateKind::Variants if language == Language::Rust => "enum",
        AggregateKind::Struct | AggregateKind::Variants => "struct",
        AggregateKind::Class => "class",
        AggregateKind::Union => "union",
    }
}

/// A comment that a line ended before this offset, in bytes, when no earlier offset has reached so far. `next_line` is
/// the number of the next boundary to report.
pub(crate) fn boundary(offset: u128, line_size: LineSize, next_line: &mut u128) -> Option<String> {
    let line = u128::from(line_size.bytes());
    let reached = offset / line;
    if reached < *next_line {
        return None;
    }
    *next_line = reached + 1;
    let start = reached * line;
    let ago = match offset - start {
        0 => String::new(),
        bytes => format!(" was {bytes} bytes ago"),
    };
    Some(format!("/* --- cacheline {reached} boundary ({start} bytes){ago} --- */"))
}

/// Nested types begin further on than 64 bits can count bits: such sums have 128.
struct Printer<'p> {
    subject: &'p Subject,
    layout: &'p Layout,
    out: String,
    /// Number of the next line boundary to be announced.
    next_line: u128,
}

impl Printer<'_> {
    fn rows(&mut self, layout: &Layout, language: Language, base_bits: u128, depth: usize) {
        for row in &layout.rows {
            self.gap(row.gap_before, depth);
            if let Some(offset) = row.offset_bits {
                self.boundaries((base_bits + u128::from(offset)) / 8, depth);
            }
            self.row(layout, row, language, base_bits, depth);
        }
        if depth > 1 && layout.padding.bytes > 0 {
            let _ = writeln!(
                self.out,
                "{}/* {} byte{} padding */",
                indent(depth),
                layout.padding.bytes,
                plural(layout.padding.bytes)
            );
        }
    }

    /// They belong to no member, and hold bytes that would seem to be unused.
    fn indirect_virtual_bases(&mut self, shown: &Shown<'_>) {
        let types = self.subject.types();
        let Some((_, aggregate)) = types.aggregate(shown.layout.id) else { return };
        for base in indirect_virtual_bases(types, aggregate) {
            let spelled = types.spell(Some(base), "");
            let size = types.size_bytes(base).map_or("?".to_owned(), |size| size.to_string());
            let left = format!("{}/* virtual base of a base */ {spelled};", indent(1));
            let place = format!("known at run time only, size {size} with its padding");
            let _ = writeln!(self.out, "{left:<COMMENT_COLUMN$} /* {place} */");
        }
    }

    fn gap(&mut self, gap: Gap, depth: usize) {
        let mut note = |text: String| {
            let _ = writeln!(self.out, "{}/* {text} */", indent(depth));
        };
        if gap.bits > 0 {
            note(format!("{} bit{} hole", gap.bits, plural(gap.bits)));
        }
        if gap.bytes > 0 {
            note(format!("{} byte{} hole", gap.bytes, plural(gap.bytes)));
        }
    }

    /// Announces the line boundaries up to an offset.
    fn boundaries(&mut self, offset: u128, depth: usize) {
        if let Some(note) = boundary(offset, self.layout.line_size, &mut self.next_line) {
            let _ = writeln!(self.out, "{}{note}", indent(depth));
        }
    }

    fn row(&mut self, layout: &Layout, row: &Row, language: Language, base_bits: u128, depth: usize) {
        let nested = match row.role {
            _ if depth >= MAX_NESTING => None,
            MemberRole::Variant(_) => layout
                .variant(self.subject.types(), row)
                .filter(|variant| !variant.rows.is_empty())
                .map(|variant| (String::new(), variant, String::new())),
            _ => self.anonymous(row.ty),
        };
        let (Some((prefix, nested, counts)), Some(offset)) = (nested, row.offset_bits) else {
            self.member(&self.declaration(layout, row, language), row, base_bits, depth);
            return;
        };
        let keyword = match row.role {
            MemberRole::Variant(selector) => self.variant(layout, selector),
            _ => keyword(nested.kind, language).to_owned(),
        };
        let _ = writeln!(self.out, "{}{prefix}{keyword} {{", indent(depth));
        self.rows(&nested, language, base_bits + u128::from(offset), depth + 1);
        let close = row.name.as_deref().map_or("};".to_owned(), |name| format!("}} {name}{counts};"));
        self.member(&close, row, base_bits, depth);
    }

    /// The layout of a type without a name, with the qualifiers before it and the dimensions behind,
    /// when it is an array of it.
    fn anonymous(&self, id: TypeId) -> Option<(String, Layout, String)> {
        let types = self.subject.types();
        let (mut prefix, mut dimensions) = (String::new(), String::new());
        let mut id = id;
        for _ in 0..MAX_NESTING {
            let ty = types.get(id)?;
            match &ty.kind {
                TypeKind::Qualified(Some(target)) => {
                    let _ = write!(prefix, "{} ", ty.name.as_deref().unwrap_or_default());
                    id = *target;
                }
                TypeKind::Array { element, counts } => {
                    for count in counts {
                        let _ = write!(
                            dimensions,
                            "[{}]",
                            count.map_or(String::new(), |count| count.to_string())
                        );
                    }
                    id = *element;
                }
                TypeKind::Aggregate(_) if ty.name.is_none() => {
                    return Some((prefix, Layout::of(types, id, self.layout.line_size)?, dimensions));
                }
                _ => return None,
            }
        }
        None
    }

    /// The values that select a variant, as a comment.
    fn variant(&self, layout: &Layout, selector: Selector) -> String {
        let types = self.subject.types();
        let Some((_, aggregate)) = types.aggregate(layout.id) else { return "/* variant */".to_owned() };
        match selector {
            Selector::Value { bits, width_bits } => {
                format!(
                    "/* variant {} */",
                    shown_value(types.discriminant_value(aggregate, bits, width_bits))
                )
            }
            Selector::Rest if aggregate.discriminant().is_some() => {
                "/* variant, any other value */".to_owned()
            }
            Selector::Rest | Selector::Unknown => "/* variant */".to_owned(),
        }
    }

    /// The discriminant, with the member whose unused values hold it.
    fn discriminant(&self, aggregate: Option<&Aggregate>, ty: TypeId) -> String {
        let types = self.subject.types();
        let niche = aggregate.and_then(|aggregate| types.niche(aggregate));
        let place = niche.map_or(String::new(), |member| format!(", in unused values of {member}"));
        format!("/* discriminant{place} */ {}", types.spell(Some(ty), ""))
    }

    fn declaration(&self, layout: &Layout, row: &Row, language: Language) -> String {
        let types = self.subject.types();
        let name = row.name.as_deref().unwrap_or("");
        let mut text = match (row.role, language) {
            (MemberRole::Base, _) => format!("/* base */ {}", types.spell(Some(row.ty), "")),
            (MemberRole::VirtualBase, _) => format!("/* virtual base */ {}", types.spell(Some(row.ty), "")),
            (MemberRole::Discriminant, _) => {
                self.discriminant(types.aggregate(layout.id).map(|(_, aggregate)| aggregate), row.ty)
            }
            (MemberRole::Variant(selector), _) => format!("{} {name}", self.variant(layout, selector)),
            (_, Language::Rust) => format!("{name}: {}", types.spell(Some(row.ty), "")),
            _ => types.spell(Some(row.ty), name),
        };
        if let Some(bits) = row.bit_size {
            let _ = write!(text, ":{bits}");
        }
        text.push(if language == Language::Rust { ',' } else { ';' });
        text
    }

    fn member(&mut self, declaration: &str, row: &Row, base_bits: u128, depth: usize) {
        let place = match (row.offset_bits, row.bit_size) {
            (None, _) => "known at run time only".to_owned(),
            (Some(offset), None) => {
                let size = row.size_bytes.map_or("?".to_owned(), |size| size.to_string());
                format!("{:>5} {size:>5}", (base_bits + u128::from(offset)) / 8)
            }
            (Some(offset), Some(_)) => self.bit_place(row, base_bits + u128::from(offset)),
        };
        let left = format!("{}{declaration}", indent(depth));
        let _ = writeln!(self.out, "{left:<COMMENT_COLUMN$} /* {place} */");
    }

    /// A bit-field's storage unit, and the first bit in it.
    fn bit_place(&self, row: &Row, offset_bits: u128) -> String {
        let width = u128::from(row.size_bytes.unwrap_or(1).max(1)) * 8;
        let unit = offset_bits - offset_bits % width;
        format!("{:>5}:{:>2} {:>2}", unit / 8, offset_bits - unit, width / 8)
    }

    fn summary(&mut self, layout: &Layout) {
        let pad = indent(1);
        let mut note = |text: String| {
            let _ = writeln!(self.out, "{pad}/* {text} */");
        };
        let (size, lines, members) = (layout.size_bytes, layout.lines(), layout.rows.len());
        // `SUMMARY` names how this begins.
        match layout.is_size_known {
            true => note(format!("size: {size}, cachelines: {lines}, members: {members}")),
            false => note(format!("size: known at run time only, at least {size}, members: {members}")),
        }
        if layout.holes() > 0 || layout.bit_holes() > 0 || layout.bit_field_bits() > 0 {
            let mut parts = vec![format!("sum members: {}", layout.member_bytes())];
            if layout.holes() > 0 {
                parts.push(format!("holes: {}, sum holes: {}", layout.holes(), layout.hole_bytes()));
            }
            note(parts.join(", "));
        }
        if layout.bit_field_bits() > 0 {
            let mut parts = vec![format!("sum bitfield members: {} bits", layout.bit_field_bits())];
            if layout.bit_holes() > 0 {
                parts.push(format!(
                    "bit holes: {}, sum bit holes: {} bits",
                    layout.bit_holes(),
                    layout.hole_bits()
                ));
            }
            note(parts.join(", "));
        }
        if layout.padding.bytes > 0 {
            note(format!("padding: {}", layout.padding.bytes));
        }
        let padded = layout.rows.iter().filter(|row| row.inner_padding_bytes > 0).count();
        if padded > 0 {
            note(format!("paddings: {padded}, sum paddings: {}", layout.inner_padding_bytes()));
        }
        if layout.padding.bits > 0 {
            note(format!("bit_padding: {} bits", layout.padding.bits));
        }
        if layout.straddling().next().is_some() {
            let names: Vec<&str> =
                layout.straddling().map(|row| row.name.as_deref().unwrap_or("(anonymous)")).collect();
            note(format!("straddling a line: {}", names.join(", ")));
        }
        if layout.last_line_bytes() > 0 {
            note(format!("last cacheline: {} bytes", layout.last_line_bytes()));
        }
    }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn indent(depth: usize) -> String {
    "        ".repeat(depth)
}

/// Large values lie in niches, where their bits say more than their digits.
fn shown_value(value: i128) -> String {
    if value.unsigned_abs() < 1 << 31 { value.to_string() } else { format!("{value:#x}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declaration(name: &str, members: usize) -> String {
        let rows: String =
            (0..members).map(|at| format!("        int m{at}; /* {} 4 */\n", 4 * at)).collect();
        format!("struct {name} {{\n{rows}        /* size: {}, cachelines: 9 */\n}};\n", 4 * members)
    }

    #[test]
    fn the_first_screen_has_forty_lines_at_most_and_the_figures_of_what_it_begins() {
        let style = TextStyle::Terminal { columns: 80 };
        let small = declaration("small", 37);
        assert_eq!(first_screen(&small, style), small);
        for (text, figures) in [
            (declaration("large", 300), "/* size: 1200,"),
            (declaration("small", 9) + &declaration("large", 300), "/* size: 1200,"),
            (declaration("large", 100) + &declaration("other", 300), "/* size: 400,"),
            ("int many;\n".repeat(90), "int many;"),
        ] {
            let shown = first_screen(&text, style);
            assert_eq!(shown.lines().count(), SCREEN_LINES, "{shown}");
            assert!(shown.contains(figures) && shown.contains(" lines more: --full"), "{shown}");
            let all = text.lines().count();
            assert!(shown.contains(&format!("… {} lines more", all - SCREEN_LINES + 1)), "{shown}");
        }
    }
}
