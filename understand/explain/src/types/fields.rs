//! The members that bytes of a type belong to.

use lineup_model::types::{
    Aggregate, AggregateKind, Language, Member, MemberRole, Type, TypeId, TypeKind, Types,
};
use std::ops::Range;

/// The member, members or gap that a run of bytes of a type belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// `a.b[].c`; `a..c` when several members are covered; `a.(b | c)` when either arm of a union may be meant;
    /// `(padding)` where no member is; empty for the whole of a scalar. Array elements are folded.
    pub path: String,
    /// Offsets of the member's first byte and after its last, in the outermost type (of the first
    /// element, for arrays).
    pub bytes: Range<u64>,
    /// Its type, when it is exactly one member.
    pub leaf: Option<TypeId>,
    /// Size of an element of the innermost array on the path.
    pub stride_bytes: Option<u64>,
    /// The number of members the bytes belong to; 0 in a gap.
    pub members: usize,
    /// True for bit-fields: code reaches them with accesses of any width.
    pub is_bit_field: bool,
}

impl Field {
    /// True when a member of this name is meant, or one of several arms of a union that may be meant.
    pub fn may_be(&self, name: &str) -> bool {
        match self.path.split_once('(') {
            Some((outer, arms)) if self.path.contains(BETWEEN_ARMS) => arms
                .trim_end_matches(')')
                .split(BETWEEN_ARMS)
                .any(|arm| format!("{outer}{arm}").starts_with(name)),
            _ => self.path.starts_with(name),
        }
    }
}

/// Stands between the members of a union's arms of which any may be meant.
const BETWEEN_ARMS: &str = " | ";

/// The most arms of a union that a name lists.
const MAX_ARMS: usize = 3;

const MAX_DEPTH: usize = 64;

/// The field at an offset of a type, for an access of `size_bytes`. `None` when the bytes do not fit the
/// type. A last member that is an array without length, or of length 0 or 1, has no end.
pub fn field_at(types: &Types, id: TypeId, offset: u64, size_bytes: u64) -> Option<Field> {
    let end = offset.checked_add(size_bytes)?;
    if types.size_bytes(id).is_some_and(|size| end > size) && !has_open_end(types, id) {
        return None;
    }
    Some(descend(types, Cursor { id, offset, size_bytes, base: 0 }, String::new(), None, 0))
}

#[derive(Clone, Copy)]
struct Cursor {
    id: TypeId,
    /// The offset of the access in this type.
    offset: u64,
    size_bytes: u64,
    /// The offset of this type in the outermost one.
    base: u64,
}

fn descend(types: &Types, at: Cursor, path: String, stride: Option<u64>, depth: usize) -> Field {
    let id = types.strip(at.id).unwrap_or(at.id);
    let size = types.size_bytes(id).unwrap_or(at.offset + at.size_bytes);
    let whole = |path: String| Field {
        path,
        bytes: at.base..at.base.saturating_add(size),
        leaf: Some(id),
        stride_bytes: stride,
        members: 1,
        is_bit_field: false,
    };
    if depth > MAX_DEPTH {
        return whole(path);
    }
    match types.get(id).map(|ty| &ty.kind) {
        Some(TypeKind::Array { element, counts }) => {
            let brackets = "[]".repeat(counts.len().max(1));
            let path = path + &brackets;
            let Some(each) = types.size_bytes(*element).filter(|each| *each > 0) else { return whole(path) };
            if at.offset % each + at.size_bytes > each {
                return Field { stride_bytes: Some(each), ..whole(path) };
            }
            let inner = Cursor { id: *element, offset: at.offset % each, ..at };
            descend(types, inner, path, Some(each), depth + 1)
        }
        Some(TypeKind::Aggregate(aggregate)) => in_aggregate(types, aggregate, at, path, stride, depth),
        _ => whole(path),
    }
}

fn in_aggregate(
    types: &Types,
    aggregate: &Aggregate,
    at: Cursor,
    path: String,
    stride: Option<u64>,
    depth: usize,
) -> Field {
    let touched: Vec<(&Member, Range<u64>)> = aggregate
        .members
        .iter()
        .enumerate()
        .filter_map(|(index, member)| {
            let is_last = index + 1 == aggregate.members.len();
            extent(types, member, is_last).map(|extent| (member, extent))
        })
        .filter(|(_, extent)| extent.start < extent.end)
        .filter(|(_, extent)| extent.start < at.offset + at.size_bytes && at.offset < extent.end)
        .collect();
    let enter = |member: &Member, extent: &Range<u64>| {
        let inner = Cursor {
            id: member.ty,
            offset: at.offset - extent.start,
            size_bytes: at.size_bytes,
            base: at.base.saturating_add(extent.start),
        };
        descend(types, inner, joined(&path, member), stride, depth + 1)
    };
    let holds = |extent: &Range<u64>| extent.start <= at.offset && at.offset + at.size_bytes <= extent.end;
    let overlap = matches!(aggregate.kind, AggregateKind::Union | AggregateKind::Variants);
    match touched.as_slice() {
        [(member, extent)] if member.bit_size.is_none() && holds(extent) => enter(member, extent),
        [] => gap(types, aggregate, at, path, stride),
        [_, ..] if overlap => {
            let candidates: Vec<Field> = touched
                .iter()
                .filter(|(_, extent)| holds(extent))
                .map(|(member, extent)| enter(member, extent))
                .collect();
            possible_arms(types, candidates, at, &path).unwrap_or_else(|| several(&touched, at, path, stride))
        }
        _ => several(&touched, at, path, stride),
    }
}

/// The arms of a union that an access of just this size would be made for, and bit-fields, which code reaches with any
/// size; if there are none, all arms. Several arms keep the names of all, since nothing distinguishes them. Of these a
/// pointer is followed, for it leads further.
fn possible_arms(types: &Types, candidates: Vec<Field>, at: Cursor, path: &str) -> Option<Field> {
    let start = at.base + at.offset;
    let fits = |field: &Field| field.members == 1 && field.bytes == (start..start + at.size_bytes);
    let is_pointer = |field: &&Field| field.leaf.is_some_and(|leaf| types.pointee(leaf).is_some());
    let is_value = |field: &Field| !field.path.ends_with(DISCRIMINANT);
    let mut possible: Vec<Field> =
        candidates.iter().filter(|field| fits(field) || field.is_bit_field).cloned().collect();
    if possible.is_empty() {
        possible = candidates;
    }
    if possible.iter().any(is_value) {
        possible.retain(is_value);
    }
    let mut arms: Vec<&str> = possible.iter().map(|field| within(&field.path, path)).collect();
    arms.dedup();
    let followed = possible.iter().find(is_pointer).or_else(|| possible.iter().find(|field| fits(field)));
    let followed = followed.or(possible.first())?.clone();
    if arms.len() < 2 {
        return Some(followed);
    }
    let more = if arms.len() > MAX_ARMS { " | \u{2026}" } else { "" };
    arms.truncate(MAX_ARMS);
    let from = possible.iter().map(|field| field.bytes.start).min().unwrap_or(start);
    let to = possible.iter().map(|field| field.bytes.end).max().unwrap_or(start);
    Some(Field {
        path: with(path, &format!("({}{more})", arms.join(BETWEEN_ARMS))),
        bytes: from..to,
        is_bit_field: possible.iter().any(|field| field.is_bit_field),
        ..followed
    })
}

/// A path without that of the aggregate around it.
fn within<'p>(path: &'p str, outer: &str) -> &'p str {
    path.strip_prefix(outer).map_or(path, |rest| rest.trim_start_matches('.'))
}

fn several(touched: &[(&Member, Range<u64>)], at: Cursor, path: String, stride: Option<u64>) -> Field {
    let ends = touched.first().zip(touched.last());
    let (Some(((first, from), (last, to))), leaf) = (ends, None) else {
        return Field {
            path,
            bytes: at.base..at.base,
            leaf: None,
            stride_bytes: stride,
            members: 0,
            is_bit_field: false,
        };
    };
    let name = |member: &Member| member.name.as_deref().unwrap_or("(anonymous)").to_owned();
    let single = touched.len() == 1;
    let own =
        if single { joined(&path, first) } else { with(&path, &format!("{}..{}", name(first), name(last))) };
    Field {
        path: own,
        bytes: at.base.saturating_add(from.start)..at.base.saturating_add(to.end.max(from.end)),
        leaf: if single { Some(first.ty) } else { leaf },
        stride_bytes: stride,
        members: touched.len(),
        is_bit_field: touched.iter().any(|(member, _)| member.bit_size.is_some()),
    }
}

/// Bytes that no member has.
fn gap(types: &Types, aggregate: &Aggregate, at: Cursor, path: String, stride: Option<u64>) -> Field {
    let extents = || aggregate.members.iter().filter_map(|member| extent(types, member, false));
    let start = extents().map(|extent| extent.end).filter(|end| *end <= at.offset).max().unwrap_or(0);
    let end = extents().map(|extent| extent.start).filter(|start| *start >= at.offset + at.size_bytes).min();
    let end = end.or(types.size_bytes(at.id)).unwrap_or(at.offset + at.size_bytes);
    Field {
        path: with(&path, "(padding)"),
        bytes: at.base.saturating_add(start)..at.base.saturating_add(end.max(start)),
        leaf: None,
        stride_bytes: stride,
        members: 0,
        is_bit_field: false,
    }
}

fn with(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The name of a Rust enum's discriminant.
const DISCRIMINANT: &str = "(discriminant)";

/// Anonymous members and base classes add nothing to a path.
fn joined(path: &str, member: &Member) -> String {
    match (&member.name, member.role) {
        (None, MemberRole::Discriminant) => with(path, DISCRIMINANT),
        (_, MemberRole::Base | MemberRole::VirtualBase) | (None, _) => path.to_owned(),
        (Some(name), _) => with(path, name),
    }
}

/// The bytes that hold a member. A last array of unknown length has no end.
pub(crate) fn extent(types: &Types, member: &Member, is_last: bool) -> Option<Range<u64>> {
    let bits = member.offset_bits?;
    if let Some(width) = member.bit_size {
        return Some(bits / 8..bits.checked_add(u64::from(width))?.div_ceil(8));
    }
    let start = bits / 8;
    let end = if is_last && is_open(types, member.ty) {
        u64::MAX
    } else if is_empty(types, member.ty, 0) {
        start
    } else {
        start.saturating_add(types.size_bytes(member.ty).unwrap_or(0))
    };
    Some(start..end)
}

/// True for a class without data: as a base it shares its byte with the data behind it.
fn is_empty(types: &Types, id: TypeId, depth: usize) -> bool {
    depth < MAX_DEPTH
        && types.aggregate(id).is_some_and(|(_, aggregate)| {
            !aggregate.is_declaration
                && aggregate.members.iter().all(|member| {
                    member.bit_size.is_none()
                        && (types.size_bytes(member.ty) == Some(0) || is_empty(types, member.ty, depth + 1))
                })
        })
}

fn is_open(types: &Types, id: TypeId) -> bool {
    let mut id = id;
    for _ in 0..MAX_DEPTH {
        let kind = types.strip(id).and_then(|id| types.get(id)).map(|ty| &ty.kind);
        id = match kind {
            Some(TypeKind::Array { counts, .. }) => {
                return matches!(counts.as_slice(), [None | Some(0 | 1)] | []);
            }
            Some(TypeKind::Aggregate(aggregate)) if aggregate.kind != AggregateKind::Union => {
                match aggregate.members.last() {
                    Some(last) => last.ty,
                    None => return false,
                }
            }
            _ => return false,
        };
    }
    false
}

/// True when a type's last member is an array of unknown length.
pub fn has_open_end(types: &Types, id: TypeId) -> bool {
    types.aggregate(id).is_some_and(|(id, _)| is_open(types, id))
}

/// The offset of the only array of a type, and the size of its elements; `None` with several arrays or without one.
/// Arrays in its elements, or in a union, do not count.
pub fn only_array(types: &Types, id: TypeId) -> Option<(u64, u64)> {
    let mut arrays = Vec::new();
    collect_arrays(types, id, 0, 0, &mut arrays);
    <[_; 1]>::try_from(arrays).ok().map(|[only]| only)
}

fn collect_arrays(types: &Types, id: TypeId, base: u64, depth: usize, out: &mut Vec<(u64, u64)>) {
    let Some(id) = types.strip(id) else { return };
    match types.get(id).map(|ty| &ty.kind) {
        Some(TypeKind::Array { element, .. }) => {
            out.extend(types.size_bytes(*element).filter(|size| *size > 0).map(|size| (base, size)));
        }
        Some(TypeKind::Aggregate(aggregate))
            if depth < MAX_DEPTH && aggregate.kind != AggregateKind::Union =>
        {
            for member in &aggregate.members {
                let start = member.offset_bytes().and_then(|start| base.checked_add(start));
                start.into_iter().for_each(|start| collect_arrays(types, member.ty, start, depth + 1, out));
            }
        }
        _ => {}
    }
}

/// Rust's vectors keep their elements behind a pointer to bytes; the element type is an argument of the
/// type around it. Its name, when the pointer at `offset` is such a one.
pub fn erased_element(types: &Types, id: TypeId, offset: u64, size_bytes: u64) -> Option<&str> {
    let arguments = enclosing(types, id, offset, size_bytes, |ty, _| {
        ty.name.as_deref().and_then(|name| name.strip_prefix("alloc::raw_vec::RawVec<"))
    });
    first_argument(arguments?)
}

/// Rust types whose pointers point to elements of an array.
const SEQUENCES: &[&str] =
    &["alloc::raw_vec::RawVec<", "alloc::vec::into_iter::IntoIter<", "core::slice::iter::Iter"];

/// True when the pointer at `offset` is known to point to elements of an array: that of a Rust slice, vector or
/// iterator over one.
pub fn points_to_elements(types: &Types, id: TypeId, offset: u64, size_bytes: u64) -> bool {
    let is_sequence = |ty: &Type, offset: u64| {
        let is_named =
            ty.name.as_deref().is_some_and(|name| SEQUENCES.iter().any(|start| name.starts_with(start)));
        let is_slice = match &ty.kind {
            TypeKind::Aggregate(aggregate) => aggregate.members.iter().any(|member| {
                member.name.as_deref() == Some("data_ptr") && member.offset_bytes() == Some(offset)
            }),
            _ => false,
        };
        (is_named || is_slice).then_some(())
    };
    enclosing(types, id, offset, size_bytes, is_sequence).is_some()
}

/// The first result of `choose` for the Rust types that hold the bytes, from the outermost inwards. Its second argument
/// is the offset of the bytes in the type.
fn enclosing<'t, R>(
    types: &'t Types,
    id: TypeId,
    offset: u64,
    size_bytes: u64,
    choose: impl Fn(&'t Type, u64) -> Option<R>,
) -> Option<R> {
    let (mut id, mut offset) = (types.strip(id)?, offset);
    for _ in 0..MAX_DEPTH {
        let ty = types.get(id)?;
        if ty.language == Language::Rust
            && let Some(chosen) = choose(ty, offset)
        {
            return Some(chosen);
        }
        (id, offset) = match &ty.kind {
            TypeKind::Array { element, .. } => {
                (types.strip(*element)?, offset % types.size_bytes(*element).filter(|size| *size > 0)?)
            }
            TypeKind::Aggregate(aggregate) => {
                let end = offset.checked_add(size_bytes)?;
                let holds = |member: &&Member| {
                    let start = member.offset_bytes();
                    let own_end = start
                        .zip(types.size_bytes(member.ty))
                        .map(|(start, size)| start.saturating_add(size));
                    start.is_some_and(|start| start <= offset)
                        && own_end.is_some_and(|own_end| end <= own_end)
                };
                let member = aggregate.members.iter().find(holds)?;
                (types.strip(member.ty)?, offset - member.offset_bytes()?)
            }
            _ => return None,
        };
    }
    None
}

/// The first of a list of type arguments.
fn first_argument(arguments: &str) -> Option<&str> {
    let mut depth = 0_i32;
    for (at, letter) in arguments.char_indices() {
        match letter {
            '<' | '(' | '[' => depth += 1,
            '>' if arguments.get(..at).is_some_and(|before| before.ends_with('-')) => {}
            '>' | ')' | ']' if depth > 0 => depth -= 1,
            ',' | '>' if depth == 0 => return arguments.get(..at),
            _ => {}
        }
    }
    None
}

/// The scalar members, arrays and unions that make up a type, in memory order: path, offset, size.
/// A type that is no aggregate is one leaf with an empty path. Members that end past the type (corrupt input) are left
/// out: `offset + size` does not overflow.
pub fn leaves(types: &Types, id: TypeId) -> Vec<(String, u64, u64)> {
    let mut out = Vec::new();
    collect_leaves(types, id, String::new(), 0, 0, &mut out);
    let whole = types.size_bytes(id).unwrap_or(u64::MAX);
    out.retain(|(_, offset, size)| offset.checked_add(*size).is_some_and(|end| end <= whole));
    out.sort_by_key(|(_, offset, _)| *offset);
    out
}

fn collect_leaves(
    types: &Types,
    id: TypeId,
    path: String,
    base: u64,
    depth: usize,
    out: &mut Vec<(String, u64, u64)>,
) {
    match types.aggregate(id) {
        Some((_, aggregate))
            if depth < MAX_DEPTH
                && !matches!(aggregate.kind, AggregateKind::Union | AggregateKind::Variants) =>
        {
            for member in &aggregate.members {
                let Some(extent) = extent(types, member, false) else { continue };
                let Some(start) = base.checked_add(extent.start) else { continue };
                let path = joined(&path, member);
                if member.bit_size.is_some() {
                    out.push((path, start, extent.end - extent.start));
                } else {
                    collect_leaves(types, member.ty, path, start, depth + 1, out);
                }
            }
        }
        other => {
            let name = if path.is_empty() && other.is_some() { "(union)".to_owned() } else { path };
            out.push((name, base, types.size_bytes(id).unwrap_or(0)));
        }
    }
}
