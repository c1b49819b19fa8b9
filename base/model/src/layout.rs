//! A type's members in memory order with the holes between them, as `lineup layout` shows them.

use crate::line::LineSize;
use crate::types::{Aggregate, AggregateKind, Language, Member, MemberRole, TypeId, Types};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Unused room. A bit-field leaves unused *bits* up to the end of its storage unit (an object of its declared type,
/// naturally placed); the room beyond it is unused *bytes*.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Gap {
    /// Whole bytes.
    pub bytes: u64,
    /// Bits of bit-field storage.
    pub bits: u64,
}

impl Gap {
    /// True when nothing is unused.
    pub fn is_empty(self) -> bool {
        self.bytes == 0 && self.bits == 0
    }
}

/// A member in its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Index in [`Aggregate::members`].
    pub member: usize,
    /// Name; `None` for anonymous members.
    pub name: Option<Arc<str>>,
    /// Type.
    pub ty: TypeId,
    /// The role that the member plays.
    pub role: MemberRole,
    /// Offset of the first bit; `None` for virtual bases.
    pub offset_bits: Option<u64>,
    /// Size of the type in bytes: 0 for flexible arrays, `None` when debug info leaves the type
    /// incomplete. For bit-fields, the size of the storage unit.
    pub size_bytes: Option<u64>,
    /// Width of a bit-field.
    pub bit_size: Option<u32>,
    /// Unused room between this member and the one before it in memory.
    pub gap_before: Gap,
    /// Padding at the end of the member's own type (of its element type for arrays) that no other member lies in.
    pub inner_padding_bytes: u64,
    /// The bytes of such padding that other members lie in: C++ puts members into the padding of base classes, and into
    /// classes without members.
    pub reused_padding_bytes: u64,
}

impl Row {
    /// The cache lines that the member lies on, counted from the start of an object that starts a
    /// line. `None` for virtual bases.
    pub fn lines(&self, line: LineSize) -> Option<RangeInclusive<u64>> {
        let offset = self.offset_bits?;
        Some(match self.bit_size {
            Some(bits) => line.lines(offset / 8, (offset % 8 + u64::from(bits)).div_ceil(8)),
            None => line.lines(offset / 8, self.size_bytes.unwrap_or(0)),
        })
    }

    /// The first bit after the member.
    fn end_bits(&self) -> Option<u64> {
        let len = match self.bit_size {
            Some(bits) => u64::from(bits),
            None => self.size_bytes?.checked_mul(8)?,
        };
        self.offset_bits?.checked_add(len)
    }

    /// Forgets a size with which the member would end behind its type: debug information does not give the length of
    /// what Rust's types without a size end with, nor of Ada's arrays that are indexed by enumerations with gaps.
    fn forget_size_beyond(&mut self, size_bytes: u64) {
        let is_member = self.role == MemberRole::Field && self.bit_size.is_none();
        if is_member && self.end_bits().is_some_and(|end| end.div_ceil(8) > size_bytes) {
            self.size_bytes = None;
        }
    }

    /// First bit and width of the bit-field storage unit that the member starts in.
    fn storage_bits(&self) -> Option<(u64, u64)> {
        self.bit_size?;
        let width = self.size_bytes?.checked_mul(8).filter(|&width| width > 0)?;
        let offset = self.offset_bits?;
        Some((offset - offset % width, width))
    }
}

/// The memory layout of a struct, class, union or Rust enum.
///
/// ```
/// use lineup_model::layout::Layout;
/// use lineup_model::line::LineSize;
/// use lineup_model::types::Types;
/// assert!(Layout::of(&Types::new(), lineup_model::types::TypeId(0), LineSize::B64).is_none());
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    /// The type, typedefs and qualifiers taken off.
    pub id: TypeId,
    /// Struct, class, union or Rust enum.
    pub kind: AggregateKind,
    /// Name, when it has one.
    pub name: Option<Arc<str>>,
    /// Size in bytes.
    pub size_bytes: u64,
    /// False when only a run determines the size: then `size_bytes` is the end of the last member whose place and size
    /// are known.
    pub is_size_known: bool,
    /// The line size that line numbers refer to.
    pub line_size: LineSize,
    /// Members in memory order; virtual bases last.
    pub rows: Vec<Row>,
    /// Unused room after the last member; none is claimed for a class with a virtual base, which lies
    /// in that room.
    pub padding: Gap,
}

impl Layout {
    /// The layout of a type, through typedefs and qualifiers. `None` unless it is a complete struct,
    /// class, union or Rust enum.
    pub fn of(types: &Types, id: TypeId, line_size: LineSize) -> Option<Layout> {
        Self::of_any_size(types, id, line_size).filter(|layout| layout.is_size_known)
    }

    /// As [`Self::of`], also for a type whose size only a run determines, such as an Ada record with an array whose
    /// length another member holds.
    pub fn of_any_size(types: &Types, id: TypeId, line_size: LineSize) -> Option<Layout> {
        let mut layout = Self::without_inner_padding(types, id, line_size)?;
        for row in &mut layout.rows {
            // A variant's room belongs to all of them.
            if !matches!(row.role, MemberRole::Variant(_)) {
                row.inner_padding_bytes = inner_padding(types, row.ty, line_size);
            }
        }
        if matches!(layout.kind, AggregateKind::Struct | AggregateKind::Class) {
            layout.take_away_reused_padding();
        }
        Some(layout)
    }

    fn without_inner_padding(types: &Types, id: TypeId, line_size: LineSize) -> Option<Layout> {
        let (id, aggregate) = types.aggregate(id)?;
        let ty = types.get(id)?;
        if aggregate.is_declaration {
            return None;
        }
        let mut rows = rows(types, aggregate);
        if let Some(size_bytes) = ty.size_bytes {
            rows.iter_mut().for_each(|row| row.forget_size_beyond(size_bytes));
        }
        let known_end = || rows.iter().filter_map(Row::end_bits).max().unwrap_or(0).div_ceil(8);
        let size_bytes = ty.size_bytes.unwrap_or_else(known_end);
        let is_size_known = ty.size_bytes.is_some();
        let mut padding = Gap::default();
        if matches!(aggregate.kind, AggregateKind::Struct | AggregateKind::Class) {
            padding = fill_gaps(&mut rows, size_bytes);
            let has_virtual_base = has_virtual_base(types, aggregate, 0);
            if has_virtual_base || !is_size_known {
                // The virtual base, or a member without a known size, lies somewhere in what looks like padding.
                padding = Gap::default();
            }
            if has_virtual_base && let Some(first) = rows.first_mut() {
                // The pointer to the virtual table lies first: in a virtual base where no other member holds it.
                first.gap_before = Gap::default();
            }
        }
        let (kind, name) = (aggregate.kind, ty.name.clone());
        Some(Layout { id, kind, name, size_bytes, is_size_known, line_size, rows, padding })
    }

    /// Moves padding that later members lie in from [`Row::inner_padding_bytes`] to [`Row::reused_padding_bytes`].
    fn take_away_reused_padding(&mut self) {
        for at in 0..self.rows.len() {
            let Some((row, later)) = self.rows.get_mut(at..).and_then(<[Row]>::split_first_mut) else {
                return;
            };
            let Some(end) = row.end_bits().map(|end| end / 8).filter(|_| row.inner_padding_bytes > 0) else {
                continue;
            };
            let mut free = end.saturating_sub(row.inner_padding_bytes);
            for other in later {
                let (Some(start), Some(stop)) = (other.offset_bits, other.end_bits()) else { continue };
                if start / 8 >= end {
                    break;
                }
                let (start, stop) = ((start / 8).max(free), stop.div_ceil(8).min(end));
                row.reused_padding_bytes += stop.saturating_sub(start);
                free = free.max(stop);
            }
            row.inner_padding_bytes = row.inner_padding_bytes.saturating_sub(row.reused_padding_bytes);
        }
    }

    /// The number of lines that an object covers when it starts on a line boundary.
    pub fn lines(&self) -> u64 {
        self.size_bytes.div_ceil(self.line_size.bytes())
    }

    /// Bytes used of the last line; 0 when it is used whole.
    pub fn last_line_bytes(&self) -> u64 {
        self.size_bytes % self.line_size.bytes()
    }

    /// The number of byte holes between members.
    pub fn holes(&self) -> usize {
        self.rows.iter().filter(|row| row.gap_before.bytes > 0).count()
    }

    /// Bytes in holes between members.
    pub fn hole_bytes(&self) -> u64 {
        self.rows.iter().map(|row| row.gap_before.bytes).sum()
    }

    /// The number of holes in bit-field storage.
    pub fn bit_holes(&self) -> usize {
        self.rows.iter().filter(|row| row.gap_before.bits > 0).count()
    }

    /// Bits in holes of bit-field storage.
    pub fn hole_bits(&self) -> u64 {
        self.rows.iter().map(|row| row.gap_before.bits).sum()
    }

    /// Bytes of all members except bit-fields. Where a member reuses the padding of a base class or the room of an
    /// empty one, those bytes count once.
    pub fn member_bytes(&self) -> u64 {
        let mut end = 0;
        let mut sum = 0_u64;
        for row in self.rows.iter().filter(|row| row.bit_size.is_none()) {
            let (Some(offset), Some(size)) = (row.offset_bits, row.size_bytes) else { continue };
            let first = (offset / 8).max(end);
            let last = (offset / 8).saturating_add(size);
            sum = sum.saturating_add(last.saturating_sub(first));
            end = end.max(last);
        }
        sum
    }

    /// Bits of all bit-fields.
    pub fn bit_field_bits(&self) -> u64 {
        self.rows.iter().filter_map(|row| row.bit_size).map(u64::from).sum()
    }

    /// Padding at the end of members' own types.
    pub fn inner_padding_bytes(&self) -> u64 {
        self.rows.iter().map(|row| row.inner_padding_bytes).fold(0, u64::saturating_add)
    }

    /// Members that lie on more lines than their size needs.
    pub fn straddling(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| {
            let needed = row.size_bytes.unwrap_or(0).div_ceil(self.line_size.bytes()).max(1);
            row.lines(self.line_size).is_some_and(|lines| lines.end() - lines.start() + 1 > needed)
        })
    }
}

/// Base classes and anonymous members nested deeper than this are not searched.
const MAX_NESTING: u32 = 8;

/// The members in memory order, without gaps and padding.
fn rows(types: &Types, aggregate: &Aggregate) -> Vec<Row> {
    let row = |(index, member): (usize, &Member)| Row {
        member: index,
        name: member.name.clone(),
        ty: member.ty,
        role: member.role,
        offset_bits: member.offset_bits,
        size_bytes: member_size(types, member.ty),
        bit_size: member.bit_size,
        gap_before: Gap::default(),
        inner_padding_bytes: 0,
        reused_padding_bytes: 0,
    };
    let mut rows: Vec<Row> = aggregate.members.iter().enumerate().map(row).collect();
    // Stable, so that members of no size stay before the member they share their offset with.
    rows.sort_by_key(|row| row.offset_bits.unwrap_or(u64::MAX));
    rows
}

/// The virtual bases that a class has by way of its bases alone: each lies once in an object, at a place that is known at
/// run time only.
pub fn indirect_virtual_bases(types: &Types, aggregate: &Aggregate) -> Vec<TypeId> {
    let mut all = Vec::new();
    collect_virtual_bases(types, aggregate, 0, &mut all);
    let is_own = |ty: &TypeId| {
        let mut own = aggregate.members.iter().filter(|member| member.role == MemberRole::VirtualBase);
        own.any(|member| types.aggregate(member.ty).is_some_and(|(id, _)| id == *ty))
    };
    all.retain(|ty| !is_own(ty));
    all
}

fn collect_virtual_bases(types: &Types, aggregate: &Aggregate, depth: u32, all: &mut Vec<TypeId>) {
    for member in &aggregate.members {
        if !matches!(member.role, MemberRole::Base | MemberRole::VirtualBase) || depth >= MAX_NESTING {
            continue;
        }
        let Some((id, base)) = types.aggregate(member.ty) else { continue };
        if member.role == MemberRole::VirtualBase {
            if all.contains(&id) {
                continue;
            }
            all.push(id);
        }
        collect_virtual_bases(types, base, depth + 1, all);
    }
}

fn has_virtual_base(types: &Types, aggregate: &Aggregate, depth: u32) -> bool {
    aggregate.members.iter().any(|member| match member.role {
        MemberRole::VirtualBase => true,
        MemberRole::Base if depth < MAX_NESTING => {
            types.aggregate(member.ty).is_some_and(|(_, base)| has_virtual_base(types, base, depth + 1))
        }
        _ => false,
    })
}

/// Size of a member's type; 0 for the arrays without a count that C and its kin allow as a last member. In other
/// languages only a run decides the length of such an array.
fn member_size(types: &Types, id: TypeId) -> Option<u64> {
    use crate::types::TypeKind;
    types.size_bytes(id).or_else(|| {
        let ty = types.get(types.strip(id)?)?;
        (matches!(ty.kind, TypeKind::Array { .. }) && ty.language != Language::Other).then_some(0)
    })
}

fn inner_padding(types: &Types, id: TypeId, line_size: LineSize) -> u64 {
    use crate::types::TypeKind;
    let mut id = id;
    for _ in 0..MAX_NESTING {
        match types.strip(id).and_then(|id| types.get(id)).map(|ty| &ty.kind) {
            Some(TypeKind::Array { element, .. }) => id = *element,
            Some(TypeKind::Aggregate(_)) => {
                return Layout::without_inner_padding(types, id, line_size)
                    .filter(|layout| layout.is_size_known)
                    .map_or(0, |layout| layout.padding.bytes);
            }
            _ => return 0,
        }
    }
    0
}

/// Works out the gap before every row and returns the padding after the last.
fn fill_gaps(rows: &mut [Row], size_bytes: u64) -> Gap {
    let mut end = 0_u64;
    // The end of the storage units of the run of bit-fields that `end` lies in.
    let mut storage_end: Option<u64> = None;
    let mut is_known = true;
    for row in rows.iter_mut() {
        let Some(start) = row.offset_bits else { continue };
        if is_known {
            row.gap_before = gap(end, storage_end, start, row.storage_bits().map(|(unit, _)| unit));
        }
        let row_end = row.end_bits();
        is_known = row_end.is_some();
        let row_end = row_end.unwrap_or(start);
        storage_end = row.storage_bits().map(|(unit, width)| {
            let mut unit_end = unit.saturating_add(width);
            if row_end > unit_end {
                unit_end = unit_end.saturating_add(width);
            }
            storage_end.map_or(unit_end, |before| before.max(unit_end))
        });
        end = end.max(row_end);
    }
    let size_bits = size_bytes.saturating_mul(8);
    if is_known { gap(end, storage_end, size_bits, None) } else { Gap::default() }
}

/// The unused room between `end` and `start`. It is bits inside the storage of the preceding bit-fields, then bytes up
/// to the next storage unit (at `unit`, when a bit-field follows), then bits inside that unit.
fn gap(end: u64, storage_end: Option<u64>, start: u64, unit: Option<u64>) -> Gap {
    let mut gap = Gap::default();
    if start <= end {
        return gap;
    }
    let mut at = end;
    if let Some(storage_end) = storage_end {
        let stop = storage_end.clamp(end, start);
        gap.bits = stop - at;
        at = stop;
    }
    match unit {
        Some(unit) if at < unit && unit <= start => {
            gap.bytes = unit / 8 - at / 8;
            gap.bits += start - unit;
        }
        Some(_) => gap.bits += start - at,
        None => gap.bytes = start / 8 - at / 8,
    }
    gap
}

/// One difference between two layouts of a type. Offsets in bytes; lines counted from the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// A member that only the new layout has.
    Added {
        /// Its name, dotted through named nesting.
        name: String,
        /// Its offset.
        offset: u64,
    },
    /// A member that only the old layout has.
    Removed {
        /// Its name.
        name: String,
        /// Its former offset.
        offset: u64,
    },
    /// A member that has another offset.
    Moved {
        /// Its name.
        name: String,
        /// Old offset.
        from: u64,
        /// New offset.
        to: u64,
        /// Old and new first bit in these bytes, for bit-fields.
        bits: Option<(u64, u64)>,
        /// Old and new first line, when they differ.
        lines: Option<(u64, u64)>,
    },
    /// A member that has another size.
    Resized {
        /// Its name.
        name: String,
        /// Old size in bytes, or in bits.
        from: u64,
        /// New size in bytes, or in bits.
        to: u64,
        /// True when the sizes are in bits, since the member is a bit-field in one of the layouts.
        is_in_bits: bool,
    },
}

/// The differences of a type between two builds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Old and new size in bytes.
    pub size_bytes: (u64, u64),
    /// Old and new count of lines.
    pub lines: (u64, u64),
    /// The changes, in the order of the new layout, removed members last.
    pub changes: Vec<Change>,
}

impl Difference {
    /// True when both layouts agree.
    pub fn is_empty(&self) -> bool {
        self.size_bytes.0 == self.size_bytes.1 && self.changes.is_empty()
    }
}

/// Compares the layouts of a type in two tables. `None` unless both are complete aggregates. Members
/// of anonymous structs and unions count as members of the type that holds them.
pub fn diff(old: (&Types, TypeId), new: (&Types, TypeId), line_size: LineSize) -> Option<Difference> {
    let (before, after) = (Layout::of(old.0, old.1, line_size)?, Layout::of(new.0, new.1, line_size)?);
    let old_members = flat(old.0, &before);
    let new_members = flat(new.0, &after);
    let mut changes = Vec::new();
    for member in &new_members {
        let name = member.name.clone();
        match old_members.iter().find(|old| old.name == member.name) {
            None => changes.push(Change::Added { name, offset: member.offset_bits / 8 }),
            Some(old) => {
                if old.offset_bits != member.offset_bits {
                    let (from, to) = (old.offset_bits / 8, member.offset_bits / 8);
                    let lines = (line_size.line_of(from), line_size.line_of(to));
                    let lines = (lines.0 != lines.1).then_some(lines);
                    let bits = (old.offset_bits % 8, member.offset_bits % 8);
                    let bits = (bits != (0, 0)).then_some(bits);
                    changes.push(Change::Moved { name: name.clone(), from, to, bits, lines });
                }
                if (old.size_bits, old.is_bit_field) != (member.size_bits, member.is_bit_field) {
                    let is_in_bits = old.is_bit_field || member.is_bit_field;
                    let unit = if is_in_bits { 1 } else { 8 };
                    let (from, to) = (old.size_bits / unit, member.size_bits / unit);
                    changes.push(Change::Resized { name, from, to, is_in_bits });
                }
            }
        }
    }
    for member in old_members {
        if !new_members.iter().any(|new| new.name == member.name) {
            changes.push(Change::Removed { name: member.name, offset: member.offset_bits / 8 });
        }
    }
    Some(Difference {
        size_bytes: (before.size_bytes, after.size_bytes),
        lines: (before.lines(), after.lines()),
        changes,
    })
}

/// A member as [`diff`] sees it.
struct FlatMember {
    name: String,
    offset_bits: u64,
    size_bits: u64,
    is_bit_field: bool,
}

fn flat(types: &Types, layout: &Layout) -> Vec<FlatMember> {
    let mut members = Vec::new();
    flatten(types, layout, ("", 0), 0, &mut members);
    members
}

/// Adds the members of a type that begins at `base_bits`; `lead` comes before their names. A member whose type has no
/// name is followed by that type's members.
fn flatten(
    types: &Types,
    layout: &Layout,
    (lead, base_bits): (&str, u64),
    depth: u32,
    members: &mut Vec<FlatMember>,
) {
    for row in &layout.rows {
        let Some(offset_bits) = row.offset_bits.and_then(|bits| bits.checked_add(base_bits)) else {
            continue;
        };
        let may_open = row.role == MemberRole::Field && depth < MAX_NESTING && row.bit_size.is_none();
        let inner = nameless(types, row.ty).filter(|_| may_open);
        let inner =
            inner.and_then(|(id, is_array)| Some((Layout::of(types, id, layout.line_size)?, is_array)));
        if row.name.is_some() || row.role != MemberRole::Field {
            let base = || types.get(row.ty).and_then(|ty| ty.name.as_deref()).unwrap_or_default();
            let name = row.name.as_deref().unwrap_or_else(base);
            let size_bits = row.bit_size.map_or(row.size_bytes.unwrap_or(0).saturating_mul(8), u64::from);
            members.push(FlatMember {
                name: format!("{lead}{name}"),
                offset_bits,
                size_bits,
                is_bit_field: row.bit_size.is_some(),
            });
        }
        if let Some((inner, is_array)) = inner {
            let lead = match &row.name {
                Some(name) => format!("{lead}{name}{}.", if is_array { "[0]" } else { "" }),
                None => lead.to_owned(),
            };
            flatten(types, &inner, (&lead, offset_bits), depth + 1, members);
        }
    }
}

/// The aggregate without a name that a type is, or is an array of; true for an array.
fn nameless(types: &Types, id: TypeId) -> Option<(TypeId, bool)> {
    use crate::types::TypeKind;
    let (mut id, mut is_array) = (types.strip(id)?, false);
    for _ in 0..MAX_NESTING {
        let ty = types.get(id)?;
        match &ty.kind {
            TypeKind::Array { element, .. } => (id, is_array) = (types.strip(*element)?, true),
            TypeKind::Aggregate(_) if ty.name.is_none() => return Some((id, is_array)),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
