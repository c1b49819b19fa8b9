//! The advised type, in the layout of one build.

use crate::engine::Engine;
use crate::error::Result;
use crate::rows::quoted;
use lineup_model::abi::{Abi, Machine};
use lineup_model::types::{
    Aggregate, AggregateKind, Language, Member, MemberRole, ScalarKind, Type, TypeId, TypeKind, Types,
};
use std::collections::BTreeMap;

/// A type in one build: its members' names and places.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Layout {
    pub(super) kind: String,
    pub(super) size_bytes: u64,
    pub(super) align_bytes: u64,
    pub(super) first_is_held: bool,
    pub(super) machine: String,
    pub(super) members: Vec<LaidMember>,
}

/// A member.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct LaidMember {
    pub(super) name: String,
    pub(super) type_name: String,
    pub(super) offset_bits: u64,
    pub(super) bit_size: Option<u32>,
    pub(super) size_bytes: u64,
    pub(super) align_bytes: u64,
}

impl LaidMember {
    /// Its first byte and the byte behind it.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let start = self.offset_bits / 8;
        let size = match self.bit_size {
            Some(width) => (self.offset_bits % 8 + u64::from(width)).div_ceil(8),
            None => self.size_bytes,
        };
        (start, start.saturating_add(size))
    }
}

/// The type's layouts by build, and the newest build.
pub(super) struct Layouts {
    pub(super) by_build: BTreeMap<String, Layout>,
    pub(super) newest: Option<String>,
}

impl Layouts {
    /// The type's layouts from recordings, which know alignments.
    pub(super) fn of(engine: &Engine, type_name: &str) -> Result<Layouts> {
        let answer = engine.ask(&format!(
            "SELECT build, MAX(kind), MAX(machine), member, MAX(member_type), MAX(type_size_bytes), MAX(type_align_bytes),
               MAX(CAST(first_is_held AS BIGINT)), offset_bits, MAX(bit_size), MAX(size_bytes), MAX(align_bytes),
               MAX(time_s)
             FROM (SELECT COALESCE(l.build_id, l.run) AS build, COALESCE(r.commit_time_s, r.recorded_at_s, 0) AS time_s,
                 r.machine, l.* FROM layouts l JOIN runs r ON r.run = l.run
               WHERE l.type_name = {} AND l.align_bytes IS NOT NULL AND l.offset_bits IS NOT NULL) found
             GROUP BY build, member_index, member, offset_bits
             ORDER BY build, member_index",
            quoted(type_name)
        ))?;
        let texts = (0..5).map(|at| answer.texts(at)).collect::<Result<Vec<_>>>()?;
        let wholes = (5..13).map(|at| answer.wholes(at)).collect::<Result<Vec<_>>>()?;
        let mut layouts = Layouts { by_build: BTreeMap::new(), newest: None };
        let mut newest = i64::MIN;
        for at in 0..answer.rows() {
            let [build, kind, machine, member, member_type] =
                std::array::from_fn(|column| texts[column][at].clone().unwrap_or_default());
            let [size, align, held, offset, width, bytes, member_align, time] =
                std::array::from_fn(|column| wholes[column][at]);
            if time.is_some_and(|time| time >= newest) {
                newest = time.unwrap_or(newest);
                layouts.newest = Some(build.clone());
            }
            let layout = layouts.by_build.entry(build).or_insert_with(|| Layout {
                kind,
                size_bytes: unsigned(size),
                align_bytes: unsigned(align).max(1),
                first_is_held: held == Some(1),
                machine,
                members: Vec::new(),
            });
            layout.members.push(LaidMember {
                name: member,
                type_name: member_type,
                offset_bits: unsigned(offset),
                bit_size: width.and_then(|width| u32::try_from(width).ok()),
                size_bytes: unsigned(bytes),
                align_bytes: unsigned(member_align).max(1),
            });
        }
        Ok(layouts)
    }
}

fn unsigned(value: Option<i64>) -> u64 {
    value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0)
}

/// The type alone in a table of types, with members of the same sizes and alignments.
pub(super) struct Rebuilt {
    pub(super) types: Types,
    pub(super) id: TypeId,
    /// Stands for the first member's type where objects were used as that.
    pub(super) first: TypeId,
    pub(super) abi: Abi,
    /// Its name in these types, which C takes.
    pub(super) name: String,
}

/// The type of a layout; `None` for an unknown machine and for a type that is no struct.
pub(super) fn rebuilt(type_name: &str, layout: &Layout) -> Option<Rebuilt> {
    let machine = Machine::ALL.into_iter().find(|machine| machine.description().name == layout.machine)?;
    let abi = Abi::usual(machine);
    if !matches!(layout.kind.as_str(), "struct" | "class") {
        return None;
    }
    let mut types = Types::new();
    let members: Vec<Member> = layout
        .members
        .iter()
        .enumerate()
        .map(|(index, member)| rebuilt_member(&mut types, abi, index, member))
        .collect();
    let first = types.push(plain(Some("first_member_t"), TypeKind::Opaque, None));
    let name: String = type_name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let aggregate =
        Aggregate { kind: AggregateKind::Struct, members, static_members: Vec::new(), is_declaration: false };
    let mut ty = plain(Some(&name), TypeKind::Aggregate(aggregate), Some(layout.size_bytes));
    let natural = layout.members.iter().map(|member| member.align_bytes).max().unwrap_or(1);
    ty.declared_align = Some(layout.align_bytes).filter(|align| *align > natural);
    let id = types.push(ty);
    Some(Rebuilt { types, id, first, abi, name })
}

fn plain(name: Option<&str>, kind: TypeKind, size_bytes: Option<u64>) -> Type {
    Type {
        name: name.map(Into::into),
        size_bytes,
        declared_align: None,
        declared_at: None,
        unit: None,
        language: Language::C,
        kind,
    }
}

/// Name of a member without one; each gets a number after it.
const ANONYMOUS: &str = "(anonymous)";

fn rebuilt_member(types: &mut Types, abi: Abi, index: usize, member: &LaidMember) -> Member {
    let name = match member.name.as_str() {
        ANONYMOUS => format!("anonymous_{index}"),
        name => name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect(),
    };
    let (size, align) = (member.size_bytes, member.align_bytes);
    let scalar = |types: &mut Types, name: &str, size: u64| {
        types.push(plain(Some(name), TypeKind::Scalar(ScalarKind::Integer { signed: true }), Some(size)))
    };
    let is_scalar = matches!(size, 1 | 2 | 4 | 8) && abi.scalar_align(size) == align;
    let ty = match () {
        () if member.type_name.ends_with('*') && size == u64::from(abi.pointer_bytes) => {
            types.push(plain(None, TypeKind::Pointer(None), Some(size)))
        }
        () if is_scalar => scalar(types, scalar_name(&member.type_name, size), size),
        () => {
            let part = align.min(8);
            let element = scalar(types, width_name(part), part);
            let counts = vec![Some(size / part).filter(|count| *count > 0)];
            types.push(plain(None, TypeKind::Array { element, counts }, None))
        }
    };
    Member {
        name: Some(name.as_str().into()),
        ty,
        offset_bits: Some(member.offset_bits),
        bit_size: member.bit_size,
        declared_align: Some(align).filter(|align| *align > 8),
        role: MemberRole::Field,
        declared_at: None,
    }
}

/// A scalar's own name where it is a plain one, since the name may give the width under other data models.
fn scalar_name(spelled: &str, size: u64) -> &str {
    let is_plain = spelled.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ' ');
    let is_other = ["struct ", "union ", "enum "].iter().any(|keyword| spelled.starts_with(keyword));
    if is_plain && !is_other && !spelled.is_empty() { spelled } else { width_name(size) }
}

/// A name of the same width under every data model.
fn width_name(size: u64) -> &'static str {
    match size {
        1 => "int8_t",
        2 => "int16_t",
        4 => "int32_t",
        _ => "int64_t",
    }
}
