//! A type in pieces that a layout may move: its members, and members that share bytes as one.

use crate::findings::LargestVariant;
use lineup_model::types::{AggregateKind, Member, MemberRole, ScalarKind, TypeId, TypeKind, Types};
use std::ops::Range;

/// Bytes of the address of the other part of an object.
pub(crate) const LINK_BYTES: u64 = 8;

/// The greatest alignment that a member is taken to need.
const MOST_ALIGN_BYTES: u64 = 16;

/// Holes count in types of which they take at least this part.
const LEAST_HOLES: f64 = 0.125;
/// Structs in structs, and elements of one array, that are looked into.
const MOST_DEPTH: usize = 16;
const MOST_ELEMENTS: u64 = 64;
/// Members of members that are looked into: a type with more counts as full there.
const MOST_MEMBERS: usize = 1 << 12;

/// Bytes of a type that stay together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Offset of the first byte.
    pub(crate) start: u64,
    /// Offset after the last.
    pub(crate) end: u64,
    /// Its alignment in bytes.
    pub(crate) align: u64,
}

impl Piece {
    pub(crate) fn size_bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// The bytes that members take, members of members too, without the holes between; empty where few bytes are holes. A
/// byte of any arm of a union counts.
pub(crate) fn without_holes(types: &Types, id: TypeId) -> Vec<Piece> {
    let mut taken = Vec::new();
    take(types, id, 0, MOST_DEPTH, &mut taken);
    taken.sort_by_key(|bytes| (bytes.start, bytes.end));
    let mut merged: Vec<Piece> = Vec::new();
    for Range { start, end } in taken {
        match merged.last_mut().filter(|last| start <= last.end) {
            Some(last) => last.end = last.end.max(end),
            None => merged.push(Piece { start, end, align: 1 }),
        }
    }
    let taken_bytes: u64 = merged.iter().map(Piece::size_bytes).sum();
    let most = types.size_bytes(id).unwrap_or(0) as f64 * (1.0 - LEAST_HOLES);
    if taken_bytes as f64 <= most { merged } else { Vec::new() }
}

/// The bytes that a type at this offset takes.
fn take(types: &Types, id: TypeId, at: u64, depth: usize, taken: &mut Vec<Range<u64>>) {
    let id = types.strip(id).unwrap_or(id);
    let size_bytes = types.size_bytes(id).unwrap_or(0);
    let goes_deeper = depth > 0 && taken.len() < MOST_MEMBERS;
    match types.get(id).map(|ty| &ty.kind) {
        Some(TypeKind::Aggregate(aggregate))
            if goes_deeper && aggregate.kind != AggregateKind::Variants && !aggregate.members.is_empty() =>
        {
            for member in &aggregate.members {
                let Some(bits) = member.offset_bits else { continue };
                let start = at.saturating_add(bits / 8);
                match member.bit_size {
                    Some(width) => {
                        let end = start.saturating_add((bits % 8 + u64::from(width)).div_ceil(8));
                        taken.push(start..end);
                    }
                    None => take(types, member.ty, start, depth - 1, taken),
                }
            }
        }
        Some(TypeKind::Array { element, .. })
            if goes_deeper
                && types.size_bytes(*element).is_some_and(|each| {
                    each > 0 && size_bytes / each <= MOST_ELEMENTS && types.aggregate(*element).is_some()
                }) =>
        {
            let each = types.size_bytes(*element).unwrap_or(1);
            (0..size_bytes / each)
                .for_each(|index| take(types, *element, at + index * each, depth - 1, taken));
        }
        _ if size_bytes > 0 => taken.push(at..at.saturating_add(size_bytes)),
        _ => (),
    }
}

/// Bytes of members that fewer bytes may do for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Wide {
    /// Of integers of four bytes and more.
    pub(crate) integer_bytes: u64,
    /// Of pointers.
    pub(crate) pointer_bytes: u64,
}

impl Wide {
    /// Of the members of a type, and of structs that it holds; members of unions do not count.
    pub(crate) fn of(types: &Types, id: TypeId) -> Wide {
        let mut wide = Wide::default();
        each_wide(types, id, (0, MOST_DEPTH), &mut |bytes, is_pointer| {
            let sum = if is_pointer { &mut wide.pointer_bytes } else { &mut wide.integer_bytes };
            *sum += bytes.end - bytes.start;
        });
        wide
    }
}

/// Passes on the bytes of each member that fewer may do for, and whether it is a pointer.
fn each_wide(
    types: &Types,
    id: TypeId,
    (at, depth): (u64, usize),
    pass_on: &mut impl FnMut(Range<u64>, bool),
) {
    let Some((_, aggregate)) = types.aggregate(id) else { return };
    if !matches!(aggregate.kind, AggregateKind::Struct | AggregateKind::Class) || depth == 0 {
        return;
    }
    for member in aggregate.members.iter().filter(|member| member.bit_size.is_none()) {
        let Some(bits) = member.offset_bits else { continue };
        let start = at.saturating_add(bits / 8);
        let size_bytes = types.size_bytes(member.ty).unwrap_or(0);
        let bytes = start..start.saturating_add(size_bytes);
        match types.strip(member.ty).and_then(|id| types.get(id)).map(|ty| &ty.kind) {
            Some(TypeKind::Pointer(_)) => pass_on(bytes, true),
            Some(TypeKind::Scalar(ScalarKind::Integer { .. }) | TypeKind::Enum) if size_bytes >= 4 => {
                pass_on(bytes, false);
            }
            Some(TypeKind::Array { element, .. }) => {
                let each = types.size_bytes(*element).filter(|each| *each > 0).unwrap_or(size_bytes.max(1));
                (0..(size_bytes / each).min(MOST_ELEMENTS)).for_each(|index| {
                    each_wide(types, *element, (start.saturating_add(index * each), depth - 1), pass_on);
                });
            }
            _ => each_wide(types, member.ty, (start, depth - 1), pass_on),
        }
    }
}

/// The bytes of each of a type's pieces with its wide members half as wide; empty where few bytes go.
pub(crate) fn narrow(types: &Types, id: TypeId, pieces: &[Piece]) -> Vec<u64> {
    let mut narrow: Vec<u64> = pieces.iter().map(Piece::size_bytes).collect();
    each_wide(types, id, (0, MOST_DEPTH), &mut |bytes, _| {
        let holds = |piece: &Piece| piece.start <= bytes.start && bytes.end <= piece.end;
        if let Some(index) = pieces.iter().position(holds) {
            narrow[index] = narrow[index].saturating_sub((bytes.end - bytes.start) / 2).max(1);
        }
    });
    let most = types.size_bytes(id).unwrap_or(0) as f64 * (1.0 - LEAST_HOLES);
    if narrow.iter().sum::<u64>() as f64 <= most { narrow } else { Vec::new() }
}

/// The pieces of a type in their order; `None` where members cannot be moved: a union, a Rust enum, virtual bases.
pub(crate) fn pieces(types: &Types, id: TypeId) -> Option<Vec<Piece>> {
    let (_, aggregate) = types.aggregate(id)?;
    if aggregate.kind == AggregateKind::Union {
        return None;
    }
    let mut runs: Vec<Piece> = Vec::new();
    for member in &aggregate.members {
        if matches!(member.role, MemberRole::Variant(_) | MemberRole::Discriminant) {
            return None;
        }
        let bits = member.offset_bits?;
        let start = bits / 8;
        let size_bytes = match member.bit_size {
            Some(width) => (bits % 8 + u64::from(width)).div_ceil(8),
            None => types.size_bytes(member.ty).unwrap_or(0),
        };
        if size_bytes > 0 {
            runs.push(Piece { start, end: start.checked_add(size_bytes)?, align: align(start, size_bytes) });
        }
    }
    runs.sort_by_key(|piece| (piece.start, piece.end));
    let mut merged: Vec<Piece> = Vec::new();
    for piece in runs {
        match merged.last_mut().filter(|last| piece.start < last.end) {
            Some(last) => {
                last.end = last.end.max(piece.end);
                last.align = last.align.max(align(last.start, last.end - last.start));
            }
            None => merged.push(piece),
        }
    }
    (merged.len() > 1).then_some(merged)
}

/// The variant of a Rust enum that makes all others larger, when objects would be smaller with it in a `Box`.
pub(crate) fn largest_variant(types: &Types, id: TypeId) -> Option<LargestVariant> {
    let (id, aggregate) = types.aggregate(id)?;
    let size_bytes = types.size_bytes(id)?;
    if aggregate.kind != AggregateKind::Variants {
        return None;
    }
    let end = |member: &Member| {
        let start = member.offset_bytes().unwrap_or(0);
        let held = types.aggregate(member.ty).map(|(_, held)| held.members.iter());
        let ends = held.into_iter().flatten().map(|inner| {
            inner.offset_bytes().unwrap_or(0).saturating_add(types.size_bytes(inner.ty).unwrap_or(0))
        });
        start.saturating_add(ends.max().unwrap_or(0))
    };
    let of_role =
        |wanted: fn(MemberRole) -> bool| aggregate.members.iter().filter(move |one| wanted(one.role));
    let mut variants: Vec<(u64, &Member)> =
        of_role(|role| matches!(role, MemberRole::Variant(_))).map(|one| (end(one), one)).collect();
    variants.sort_by_key(|(end, _)| std::cmp::Reverse(*end));
    let (&(largest_bytes, largest), rest) = variants.split_first()?;
    let others_bytes = rest.first()?.0;
    let told_by = of_role(|role| matches!(role, MemberRole::Discriminant))
        .filter_map(|one| Some(one.offset_bytes()?.saturating_add(types.size_bytes(one.ty)?)));
    let with_box = told_by.max().unwrap_or(0).next_multiple_of(LINK_BYTES).saturating_add(LINK_BYTES);
    let align = 1 << size_bytes.trailing_zeros().min(3);
    let size_bytes_boxed = others_bytes.max(with_box).next_multiple_of(align);
    let name = largest.name.as_deref().unwrap_or("(anonymous)").to_owned();
    let found = LargestVariant { name, size_bytes: largest_bytes, others_bytes, size_bytes_boxed };
    (size_bytes_boxed < size_bytes).then_some(found)
}

/// The alignment that a member of this size at this offset may need: no more than its offset has.
fn align(start: u64, size_bytes: u64) -> u64 {
    let of_size = 1 << size_bytes.trailing_zeros().min(63);
    let of_start = if start == 0 { MOST_ALIGN_BYTES } else { 1 << start.trailing_zeros().min(63) };
    MOST_ALIGN_BYTES.min(of_size).min(of_start)
}

/// The pieces of `rest` in an order that leaves little room between them after `end`: always the one with the largest
/// alignment that can begin right there.
pub(crate) fn closely(pieces: &[Piece], mut end: u64, mut rest: Vec<usize>) -> Vec<usize> {
    let mut order = Vec::new();
    while !rest.is_empty() {
        let fits = |index: &usize| end.is_multiple_of(pieces[*index].align);
        let best = (0..rest.len()).max_by_key(|at| {
            let align = pieces[rest[*at]].align;
            (fits(&rest[*at]), align, std::cmp::Reverse(*at))
        });
        let index = rest.remove(best.unwrap_or(0));
        end = end.next_multiple_of(pieces[index].align) + pieces[index].size_bytes();
        order.push(index);
    }
    order
}

/// The starts of pieces that follow each other in this order, and the end of the last.
pub(crate) fn put_in_order<'p>(pieces: impl Iterator<Item = &'p Piece>) -> (Vec<u64>, u64) {
    let mut end = 0u64;
    let starts = pieces.map(|piece| {
        let start = end.next_multiple_of(piece.align);
        end = start + piece.size_bytes();
        start
    });
    let starts = starts.collect();
    (starts, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_their_alignment_and_leave_no_more_room_than_that_needs() {
        let piece =
            |start, size_bytes| Piece { start, end: start + size_bytes, align: align(start, size_bytes) };
        let all = [piece(0, 8), piece(8, 4), piece(12, 1), piece(16, 24)];
        assert_eq!(all.each_ref().map(|piece| piece.align), [8, 4, 1, 8]);
        assert_eq!(put_in_order(all.iter()), (vec![0, 8, 12, 16], 40));
        assert_eq!(put_in_order(all.iter().rev()), (vec![0, 24, 28, 32], 40));
        // The four-byte piece first, since that makes way for none after the eight-byte ones.
        assert_eq!(closely(&all, 12, vec![0, 1, 3]), [1, 0, 3]);
        // Twelve bytes of four-byte members.
        assert_eq!(piece(4, 12).align, 4);
    }
}
