//! Layouts as JSON, schema `lineup.layout/1`.

use super::args::Options;
use super::shown::Shown;
use crate::terminal::errors::UnknownName;
use crate::types::subject::Subject;
use lineup_model::layout::{Layout, Row, indirect_virtual_bases};
use lineup_model::types::{AggregateKind, Language, MemberRole, Selector, SourceLocation};
use serde::Serialize;

/// The whole document.
#[derive(Serialize)]
pub(crate) struct Document<'d> {
    schema: &'static str,
    file: String,
    line_size_bytes: u64,
    types: Vec<TypeJson<'d>>,
    /// The reason why a requested name has no type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown: Vec<&'d str>,
}

#[derive(Serialize)]
struct TypeJson<'d> {
    name: &'d str,
    kind: &'static str,
    language: &'static str,
    size_bytes: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_size_of_known_members: bool,
    declared_align_bytes: Option<u64>,
    declared_at: Option<LocationJson<'d>>,
    lines: u64,
    last_line_bytes: u64,
    member_bytes: u64,
    bit_field_bits: u64,
    holes: usize,
    hole_bytes: u64,
    bit_holes: usize,
    hole_bits: u64,
    padding_bytes: u64,
    padding_bits: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    indirect_virtual_bases: Vec<String>,
    static_members: &'d [String],
    members: Vec<MemberJson<'d>>,
}

#[derive(Serialize)]
struct LocationJson<'d> {
    file: &'d str,
    line: u32,
}

#[derive(Serialize)]
struct MemberJson<'d> {
    name: Option<&'d str>,
    #[serde(rename = "type")]
    ty: String,
    role: &'static str,
    offset_bits: Option<u64>,
    offset_bytes: Option<u64>,
    size_bytes: Option<u64>,
    bit_size: Option<u32>,
    declared_align_bytes: Option<u64>,
    first_line: Option<u64>,
    last_line: Option<u64>,
    hole_before_bytes: u64,
    hole_before_bits: u64,
    inner_padding_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    selected_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    discriminant_value: Option<i128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    niche_in: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<Vec<MemberJson<'d>>>,
}

/// The document for these layouts.
pub(crate) fn document<'d>(
    options: &Options,
    subject: &'d Subject,
    layouts: &'d [Shown<'d>],
    unknown: &'d [UnknownName],
) -> Document<'d> {
    Document {
        schema: "lineup.layout/1",
        file: subject.path.display().to_string(),
        line_size_bytes: options.line_size.bytes(),
        types: layouts.iter().map(|shown| type_json(subject, shown)).collect(),
        unknown: unknown.iter().map(|UnknownName(reason)| reason.as_str()).collect(),
    }
}

/// A type's JSON alone; different types have different texts.
pub(crate) fn text(subject: &Subject, shown: &Shown<'_>) -> String {
    serde_json::to_string(&type_json(subject, shown)).unwrap_or_default()
}

fn type_json<'d>(subject: &'d Subject, shown: &'d Shown<'d>) -> TypeJson<'d> {
    let (layout, ty) = (&shown.layout, subject.types().get(shown.id));
    let aggregate = subject.types().aggregate(shown.id).map(|(_, aggregate)| aggregate);
    TypeJson {
        name: shown.name,
        kind: kind(layout.kind),
        language: language(ty.map(|ty| ty.language).unwrap_or_default()),
        size_bytes: layout.size_bytes,
        is_size_of_known_members: !layout.is_size_known,
        declared_align_bytes: ty.and_then(|ty| ty.declared_align),
        declared_at: ty
            .and_then(|ty| ty.declared_at.as_ref())
            .map(|SourceLocation { file, line }| LocationJson { file, line: *line }),
        lines: layout.lines(),
        last_line_bytes: layout.last_line_bytes(),
        member_bytes: layout.member_bytes(),
        bit_field_bits: layout.bit_field_bits(),
        holes: layout.holes(),
        hole_bytes: layout.hole_bytes(),
        bit_holes: layout.bit_holes(),
        hole_bits: layout.hole_bits(),
        padding_bytes: layout.padding.bytes,
        padding_bits: layout.padding.bits,
        indirect_virtual_bases: aggregate.map_or_else(Vec::new, |aggregate| {
            let types = subject.types();
            let all = indirect_virtual_bases(types, aggregate);
            all.into_iter().map(|base| types.spell(Some(base), "")).collect()
        }),
        static_members: aggregate.map_or(&[], |aggregate| &aggregate.static_members),
        members: layout.rows.iter().map(|row| member_json(subject, layout, row, 0)).collect(),
    }
}

/// A member of a layout that starts `base_bytes` into the type shown.
fn member_json<'d>(subject: &'d Subject, layout: &Layout, row: &Row, base_bytes: u64) -> MemberJson<'d> {
    let types = subject.types();
    let aggregate = types.aggregate(layout.id).map(|(_, aggregate)| aggregate);
    let member = aggregate.and_then(|aggregate| aggregate.members.get(row.member));
    let offset_bits = row.offset_bits.and_then(|bits| bits.checked_add(base_bytes.checked_mul(8)?));
    let lines = Row { offset_bits, ..row.clone() }.lines(layout.line_size);
    let (selected_by, discriminant_value) = match (row.role, aggregate) {
        (MemberRole::Variant(Selector::Value { bits, width_bits }), Some(aggregate)) => {
            (Some("value"), Some(types.discriminant_value(aggregate, bits, width_bits)))
        }
        (MemberRole::Variant(Selector::Rest), _) => (Some("rest"), None),
        (MemberRole::Variant(_), _) => (Some("unknown"), None),
        _ => (None, None),
    };
    let is_discriminant = row.role == MemberRole::Discriminant;
    let is_variant = matches!(row.role, MemberRole::Variant(_));
    let variant = layout.variant(types, row).filter(|_| is_variant);
    let start = offset_bits.map_or(0, |bits| bits / 8);
    MemberJson {
        name: member.and_then(|member| member.name.as_deref()),
        ty: types.spell(Some(row.ty), ""),
        role: role(row.role),
        offset_bits,
        offset_bytes: offset_bits.map(|bits| bits / 8),
        size_bytes: row.size_bytes,
        bit_size: row.bit_size,
        declared_align_bytes: member.and_then(|member| member.declared_align),
        first_line: lines.as_ref().map(|lines| *lines.start()),
        last_line: lines.as_ref().map(|lines| *lines.end()),
        hole_before_bytes: row.gap_before.bytes,
        hole_before_bits: row.gap_before.bits,
        inner_padding_bytes: row.inner_padding_bytes,
        selected_by,
        discriminant_value,
        niche_in: aggregate.filter(|_| is_discriminant).and_then(|aggregate| types.niche(aggregate)),
        members: variant.map(|variant| {
            variant.rows.iter().map(|row| member_json(subject, &variant, row, start)).collect()
        }),
    }
}

fn kind(kind: AggregateKind) -> &'static str {
    match kind {
        AggregateKind::Struct => "struct",
        AggregateKind::Class => "class",
        AggregateKind::Union => "union",
        AggregateKind::Variants => "variants",
    }
}

fn language(language: Language) -> &'static str {
    match language {
        Language::C => "c",
        Language::Cpp => "c++",
        Language::Rust => "rust",
        Language::Assembly => "assembly",
        Language::Other => "other",
    }
}

fn role(role: MemberRole) -> &'static str {
    match role {
        MemberRole::Field => "field",
        MemberRole::Base => "base",
        MemberRole::VirtualBase => "virtual-base",
        MemberRole::VtablePointer => "vtable-pointer",
        MemberRole::Variant(_) => "variant",
        MemberRole::Discriminant => "discriminant",
    }
}
