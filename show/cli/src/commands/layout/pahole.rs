//! A type as `pahole` writes it, for tools that read pahole's output.

use super::shown::Shown;
use super::view::boundary;
use crate::types::subject::Subject;
use lineup_model::layout::{Layout, Row};
use lineup_model::types::{AggregateKind, Language, MemberRole, Type, TypeId, TypeKind, Types};
use lineup_report::visible::many_lines;
use std::fmt::Write;

/// Columns of a member's type, one level deep; eight fewer for each level more.
const TYPE_COLUMNS: usize = 26;
/// Columns of a member's name.
const NAME_COLUMNS: usize = 23;
/// The same in a union that lies in nothing.
const NAME_COLUMNS_OF_UNIONS: usize = 21;
/// Deeper nesting is not opened, and longer chains of types are not followed.
const MAX_NESTING: usize = 8;

/// The declarations of types, an empty line between two.
pub(crate) fn all(subject: &Subject, shown: &[Shown<'_>]) -> Vec<String> {
    let one = |shown: &Shown<'_>| {
        let mut printer =
            Printer { types: subject.types(), whole: &shown.layout, out: String::new(), next_line: 1 };
        printer.declaration(shown);
        many_lines(&printer.out).into_owned()
    };
    let between = |(number, text): (usize, String)| if number == 0 { text } else { format!("\n{text}") };
    shown.iter().map(one).enumerate().map(between).collect()
}

struct Printer<'p> {
    types: &'p Types,
    whole: &'p Layout,
    out: String,
    next_line: u128,
}

impl Printer<'_> {
    fn declaration(&mut self, shown: &Shown<'_>) {
        let ty = self.types.get(shown.layout.id);
        let is_typedef = ty.is_some_and(|ty| ty.name.is_none());
        let typedef = if is_typedef { "typedef " } else { "" };
        let name = if is_typedef { String::new() } else { format!(" {}", shown.name) };
        let keyword = keyword(shown.layout.kind);
        self.line(0, &format!("{typedef}{keyword}{name}{} {{", self.bases(&shown.layout)));
        let (aligned_holes, paddings) = self.rows(&shown.layout, 0, 1);
        if shown.layout.kind != AggregateKind::Union {
            self.summary(&shown.layout, &aligned_holes, &paddings);
        }
        let align = ty.and_then(|ty| ty.declared_align).map(attribute).unwrap_or_default();
        let typedef = if is_typedef { format!(" {}", shown.name) } else { String::new() };
        self.line(0, &format!("}}{align}{typedef};"));
    }

    fn name_columns(&self) -> usize {
        match self.whole.kind {
            AggregateKind::Union => NAME_COLUMNS_OF_UNIONS,
            _ => NAME_COLUMNS,
        }
    }

    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "{}{text}", "\t".repeat(depth));
    }

    fn bases(&self, layout: &Layout) -> String {
        let base = |row: &&Row| matches!(row.role, MemberRole::Base | MemberRole::VirtualBase);
        let names: Vec<String> =
            layout.rows.iter().filter(base).map(|row| self.types.spell(Some(row.ty), "")).collect();
        if names.is_empty() { String::new() } else { format!(" : {}", names.join(", ")) }
    }

    /// The members, with the alignments that were written for them and the paddings of their types.
    fn rows(&mut self, layout: &Layout, base: u64, depth: usize) -> (Vec<u64>, Vec<u64>) {
        let (mut aligned_holes, mut paddings) = (Vec::new(), Vec::new());
        let declared = self.types.aggregate(layout.id).map(|(_, aggregate)| &aggregate.members[..]);
        for (number, row) in layout.rows.iter().enumerate() {
            let Some(bits) = row.offset_bits else { continue };
            let offset = base.saturating_add(bits / 8);
            self.boundary(offset, depth);
            let align = declared.and_then(|members| members.get(row.member)?.declared_align);
            if align.is_some() {
                aligned_holes.push(row.gap_before.bytes);
            }
            self.member(row, align, base, depth);
            if layout.kind == AggregateKind::Union {
                continue;
            }
            let mut notes = Vec::new();
            // A typedef of a struct does not count.
            let is_struct = self.types.get(row.ty).is_some_and(|ty| {
                matches!(&ty.kind, TypeKind::Aggregate(aggregate) if aggregate.kind != AggregateKind::Union)
            });
            // pahole counts all of it.
            let padding_bytes = row.inner_padding_bytes + row.reused_padding_bytes;
            if padding_bytes > 0 && is_struct {
                paddings.push(padding_bytes);
                let bytes = plural(padding_bytes, "byte");
                notes.push(format!("XXX last struct has {bytes} of padding"));
            }
            let gap = layout.rows.get(number + 1).map(|next| next.gap_before).unwrap_or_default();
            if gap.bits > 0 {
                notes.push(format!("XXX {} hole, try to pack", plural(gap.bits, "bit")));
            }
            if gap.bytes > 0 {
                notes.push(format!("XXX {} hole, try to pack", plural(gap.bytes, "byte")));
            }
            if !notes.is_empty() {
                self.out.push('\n');
                notes.iter().for_each(|note| self.line(depth, &format!("/* {note} */")));
                if number + 1 < layout.rows.len() {
                    self.out.push('\n');
                }
            }
        }
        (aligned_holes, paddings)
    }

    /// Says that a line ended between the member before and this one.
    fn boundary(&mut self, offset: u64, depth: usize) {
        if let Some(note) = boundary(offset.into(), self.whole.line_size, &mut self.next_line) {
            self.line(depth, &note);
        }
    }

    fn member(&mut self, row: &Row, align: Option<u64>, base: u64, depth: usize) {
        let width = row.bit_size.map(|bits| format!(":{bits}")).unwrap_or_default();
        let end = format!("{width}{};", align.map(attribute).unwrap_or_default());
        let columns = TYPE_COLUMNS.saturating_sub(8 * (depth - 1));
        let name = row.name.as_deref().unwrap_or_default();
        let offset = base.saturating_add(row.offset_bits.unwrap_or_default() / 8);
        let nested = self.nameless(row.ty).filter(|_| depth < MAX_NESTING);
        if let Some((layout, dimensions)) = nested {
            self.line(depth, &format!("{} {{", keyword(layout.kind)));
            self.rows(&layout, offset, depth + 1);
            let gap = if name.is_empty() { "" } else { " " };
            let text = format!("}}{gap}{name}{dimensions}{end}");
            let columns = if dimensions.is_empty() { columns + self.name_columns() } else { 0 };
            let spaces = columns.saturating_sub(text.len()).max(1);
            self.line(depth, &format!("{text}{:spaces$}{}", "", place(row, base)));
            return;
        }
        let text = match row.role {
            MemberRole::Base | MemberRole::VirtualBase => {
                format!("/* {:<columns$} <ancestor>; */", self.name(Some(row.ty), 0))
            }
            _ => self.declared(row.ty, name, columns, 0) + &end,
        };
        let spaces = (columns + self.name_columns()).saturating_sub(text.len()).max(1);
        self.line(depth, &format!("{text}{:spaces$}{}", "", place(row, base)));
    }

    /// A type without a name, with the dimensions of the array that it is the element of.
    fn nameless(&self, id: TypeId) -> Option<(Layout, String)> {
        let mut dimensions = String::new();
        let mut id = id;
        for _ in 0..MAX_NESTING {
            let ty = self.types.get(id)?;
            match &ty.kind {
                TypeKind::Array { element, counts } => {
                    dimensions += &lengths(counts);
                    id = *element;
                }
                TypeKind::Aggregate(_) if ty.name.is_none() => {
                    return Some((Layout::of(self.types, id, self.whole.line_size)?, dimensions));
                }
                _ => return None,
            }
        }
        None
    }

    /// A member's type in its columns, and its name.
    fn declared(&self, id: TypeId, name: &str, columns: usize, depth: usize) -> String {
        let kind = self.types.get(id).map(|ty| &ty.kind).filter(|_| depth < MAX_NESTING);
        match kind {
            Some(TypeKind::Array { element, counts }) => {
                self.declared(*element, &format!("{name}{}", lengths(counts)), columns, depth + 1)
            }
            Some(TypeKind::Pointer(Some(target))) => match self.types.get(*target).map(|ty| &ty.kind) {
                Some(TypeKind::Function { returns, parameters }) => {
                    let result = self.name(*returns, 0);
                    format!("{result:<columns$} (*{name})({})", self.parameters(parameters, depth))
                }
                _ => format!("{:<columns$} {name}", self.name(Some(id), 0)),
            },
            _ => format!("{:<columns$} {name}", self.name(Some(id), 0)),
        }
    }

    fn parameters(&self, parameters: &[TypeId], depth: usize) -> String {
        let one = |id: &TypeId| match self.types.get(*id).map(|ty| &ty.kind) {
            Some(TypeKind::Pointer(Some(target)))
                if matches!(self.types.get(*target).map(|ty| &ty.kind), Some(TypeKind::Function { .. })) =>
            {
                self.declared(*id, "", 0, depth + 1)
            }
            _ => self.name(Some(*id), 0),
        };
        match parameters.is_empty() {
            true => "void".to_string(),
            false => parameters.iter().map(one).collect::<Vec<_>>().join(", "),
        }
    }

    /// The name of a type. Qualifiers are followed by a blank, as pahole has them.
    fn name(&self, id: Option<TypeId>, depth: usize) -> String {
        let Some(ty) = id.and_then(|id| self.types.get(id)).filter(|_| depth < MAX_NESTING) else {
            return "void".to_string();
        };
        let own = ty.name.as_deref().unwrap_or_default();
        match &ty.kind {
            TypeKind::Pointer(target) => {
                let mark = if own.starts_with('&') { own } else { "*" };
                format!("{} {mark}", self.name(*target, depth + 1))
            }
            TypeKind::Qualified(target) => {
                let inner = self.name(*target, depth + 1);
                if own == "restrict" { format!("{inner} restrict ") } else { format!("{own} {inner} ") }
            }
            TypeKind::Array { element, .. } => self.name(Some(*element), depth + 1),
            TypeKind::Aggregate(aggregate) => match (own, is_rust(ty)) {
                ("", _) => format!("{} {{...}}", keyword(aggregate.kind)),
                (_, true) => own.to_string(),
                _ => format!("{} {own}", keyword(aggregate.kind)),
            },
            TypeKind::Enum if !own.is_empty() && !is_rust(ty) => format!("enum {own}"),
            _ => self.types.spell(id, "").trim_end().to_string(),
        }
    }

    fn summary(&mut self, layout: &Layout, aligned_holes: &[u64], paddings: &[u64]) {
        self.out.push('\n');
        let (size, lines, members) = (layout.size_bytes, layout.lines(), layout.rows.len());
        self.note(&format!("size: {size}, cachelines: {lines}, members: {members}"));
        let (holes, bit_holes) = (layout.holes(), layout.bit_holes());
        if holes > 0 || bit_holes > 0 {
            let holes = match holes {
                0 => String::new(),
                _ => format!(", holes: {holes}, sum holes: {}", layout.hole_bytes()),
            };
            if layout.member_bytes() > 0 {
                self.note(&format!("sum members: {}{holes}", layout.member_bytes()));
            }
            if layout.bit_field_bits() > 0 {
                let bits = layout.bit_field_bits();
                self.note(&match bit_holes {
                    0 => format!("sum bitfield members: {bits} bits ({} bytes)", bits / 8),
                    _ => format!(
                        "sum bitfield members: {bits} bits, bit holes: {bit_holes}, sum bit holes: {} bits",
                        layout.hole_bits()
                    ),
                });
            }
        }
        if layout.padding.bytes > 0 {
            self.note(&format!("padding: {}", layout.padding.bytes));
        }
        if !paddings.is_empty() {
            self.note(&format!(
                "paddings: {}, sum paddings: {}",
                paddings.len(),
                paddings.iter().sum::<u64>()
            ));
        }
        if layout.padding.bits > 0 {
            self.note(&format!("bit_padding: {} bits", layout.padding.bits));
        }
        if !aligned_holes.is_empty() {
            let holes: Vec<&u64> = aligned_holes.iter().filter(|hole| **hole > 0).collect();
            let sum: u64 = holes.iter().copied().sum();
            let holes = match holes.len() {
                0 => String::new(),
                number => format!(", forced holes: {number}, sum forced holes: {sum}"),
            };
            self.note(&format!("forced alignments: {}{holes}", aligned_holes.len()));
        }
        if layout.last_line_bytes() > 0 {
            self.note(&format!("last cacheline: {} bytes", layout.last_line_bytes()));
        }
    }

    fn note(&mut self, text: &str) {
        self.line(1, &format!("/* {text} */"));
    }
}

/// Offset and size as a comment; of a bit-field its storage unit's, with the first bit in it.
fn place(row: &Row, base: u64) -> String {
    let bits = row.offset_bits.unwrap_or_default();
    let size = row.size_bytes.unwrap_or_default();
    match row.bit_size {
        None => format!("/* {:>5} {size:>5} */", base.saturating_add(bits / 8)),
        Some(_) => {
            let width = size.max(1).saturating_mul(8);
            let unit = bits - bits % width;
            format!("/* {:>5}:{:>2} {size:>2} */", base.saturating_add(unit / 8), bits - unit)
        }
    }
}

fn lengths(counts: &[Option<u64>]) -> String {
    counts
        .iter()
        .map(|count| format!("[{}]", count.map_or(String::new(), |count| count.to_string())))
        .collect()
}

fn attribute(align: u64) -> String {
    format!(" __attribute__((__aligned__({align})))")
}

fn keyword(kind: AggregateKind) -> &'static str {
    match kind {
        AggregateKind::Struct | AggregateKind::Variants => "struct",
        AggregateKind::Class => "class",
        AggregateKind::Union => "union",
    }
}

fn is_rust(ty: &Type) -> bool {
    ty.language == Language::Rust
}

fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
