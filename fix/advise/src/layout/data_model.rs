//! The layout of a type under another data model.
//!
//! Debug info describes one ABI. Under another, `long` and pointers change size, and alignments follow.
//! A type that is 64 bits wide by name (`int64_t`, `u64`, `ktime_t`) stays so even where its definition
//! in the recorded ABI goes through `long`. Under the recorded ABI itself every size and offset is the
//! compiler's own.

use crate::layout::placement::{self, Field, Lead};
use lineup_model::abi::Abi;
use lineup_model::types::{Aggregate, AggregateKind, Member, MemberRole, TypeId, TypeKind, Types};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

/// Size and alignment of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Size in bytes; 0 for a flexible array.
    pub size_bytes: u64,
    /// Alignment in bytes, at least 1.
    pub align_bytes: u64,
}

/// An aggregate's layout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Laid {
    /// Offset of each member in bits, in declaration order.
    pub offsets_bits: Vec<u64>,
    /// Size and alignment of the whole.
    pub shape: Shape,
}

/// Types recorded under one ABI, seen under another.
pub struct DataModel<'a> {
    types: &'a Types,
    recorded: Abi,
    target: Abi,
    shapes: RefCell<HashMap<TypeId, Option<Shape>>>,
}

const MAX_DEPTH: u32 = 64;
const MAX_ALIGN_BYTES: u64 = 4096;

/// Members and elements beyond this many are not translated.
const MOST_TRANSLATED: u32 = 4096;

/// The other data model that advice is judged under besides the recorded one.
pub fn counterpart(abi: Abi) -> Abi {
    Abi::usual(abi.machine.description().counterpart)
}

impl<'a> DataModel<'a> {
    /// `types` as recorded under `recorded`, seen under `target`.
    pub fn new(types: &'a Types, recorded: Abi, target: Abi) -> Self {
        DataModel { types, recorded, target, shapes: RefCell::default() }
    }

    /// The ABI under which types are seen.
    pub fn target(&self) -> Abi {
        self.target
    }

    fn is_recorded(&self) -> bool {
        self.recorded == self.target
    }

    /// Size and alignment of a type; `None` when they cannot be known.
    pub fn shape(&self, id: TypeId) -> Option<Shape> {
        self.shape_at(id, 0)
    }

    fn shape_at(&self, id: TypeId, depth: u32) -> Option<Shape> {
        if let Some(known) = self.shapes.borrow().get(&id) {
            return *known;
        }
        let shape = if depth < MAX_DEPTH { self.work_out(id, depth) } else { None };
        self.shapes.borrow_mut().insert(id, shape);
        shape
    }

    fn work_out(&self, id: TypeId, depth: u32) -> Option<Shape> {
        let ty = self.types.get(id)?;
        let mut shape = match &ty.kind {
            TypeKind::Typedef(target) => {
                let recorded_bytes = self.types.size_bytes(id);
                let width = ty.name.as_deref().and_then(|name| self.width_by_name(name, recorded_bytes));
                let target = (*target)?;
                let inner = self.shape_at(target, depth + 1)?;
                match width.filter(|_| self.types.aggregate(target).is_none()) {
                    Some(bytes) => self.scalar(bytes),
                    None => inner,
                }
            }
            TypeKind::Qualified(target) => self.shape_at((*target)?, depth + 1)?,
            TypeKind::Pointer(_) => self.scalar(u64::from(self.target.pointer_bytes)),
            TypeKind::MemberPointer => self.member_pointer(ty.size_bytes?),
            TypeKind::Scalar(_) | TypeKind::Enum => self.named_scalar(ty.name.as_deref(), ty.size_bytes?),
            TypeKind::Array { element, counts } => self.array(*element, counts, depth)?,
            TypeKind::Aggregate(aggregate) => self.laid(id, aggregate, depth)?.shape,
            TypeKind::Function { .. } | TypeKind::Opaque => return None,
        };
        shape.align_bytes = shape.align_bytes.max(ty.declared_align.unwrap_or(1)).min(MAX_ALIGN_BYTES);
        Some(shape)
    }

    fn scalar(&self, size_bytes: u64) -> Shape {
        Shape { size_bytes, align_bytes: self.target.scalar_align(size_bytes) }
    }

    fn member_pointer(&self, recorded_bytes: u64) -> Shape {
        let words = recorded_bytes / u64::from(self.recorded.pointer_bytes).max(1);
        let word = u64::from(self.target.pointer_bytes);
        Shape { size_bytes: words.saturating_mul(word), align_bytes: word }
    }

    fn named_scalar(&self, name: Option<&str>, recorded_bytes: u64) -> Shape {
        if self.is_recorded() {
            return self.scalar(recorded_bytes);
        }
        let words: Vec<&str> = name.unwrap_or("").split(' ').collect();
        let longs = words.iter().filter(|word| **word == "long").count();
        let size = match (longs, words.contains(&"double")) {
            (1, true) => self.target.machine.description().long_double_bytes,
            (1, false) => self.target.long_bytes(),
            _ if matches!(name, Some("usize" | "isize")) => self.target.long_bytes(),
            _ => recorded_bytes,
        };
        self.scalar(size)
    }

    /// The width that a typedef's name promises under every ABI, or that follows the pointer.
    fn width_by_name(&self, name: &str, recorded_bytes: Option<u64>) -> Option<u64> {
        if self.is_recorded() {
            return None;
        }
        match name {
            "ktime_t" | "loff_t" | "dev_t" | "intmax_t" | "uintmax_t" | "__dev_t" | "sqlite_int64" => Some(8),
            "size_t" | "ssize_t" | "ptrdiff_t" | "intptr_t" | "uintptr_t" => Some(self.target.long_bytes()),
            _ if recorded_bytes == Some(8) && is_fixed_width(name, "64") => Some(8),
            _ if recorded_bytes == Some(4) && is_fixed_width(name, "32") => Some(4),
            _ => None,
        }
    }

    fn array(&self, element: TypeId, counts: &[Option<u64>], depth: u32) -> Option<Shape> {
        let element = self.shape_at(element, depth + 1)?;
        let count = counts.iter().try_fold(1u64, |all, count| all.checked_mul(count.unwrap_or(0)))?;
        let size_bytes = element.size_bytes.checked_mul(count)?;
        Some(Shape { size_bytes, align_bytes: element.align_bytes })
    }

    /// The layout of an aggregate. `None` when a part is unknown, or when a base class stands in the
    /// way of predicting another ABI.
    pub fn layout(&self, id: TypeId) -> Option<Laid> {
        let (id, aggregate) = self.types.aggregate(id)?;
        self.laid(id, aggregate, 0)
    }

    fn laid(&self, id: TypeId, aggregate: &Aggregate, depth: u32) -> Option<Laid> {
        let ty = self.types.get(id)?;
        let fields = self.fields(aggregate, depth)?;
        let natural = fields.iter().map(|field| field.align_bytes).max().unwrap_or(1);
        let recorded_bytes = ty.size_bytes?;
        let mut align = natural.max(ty.declared_align.unwrap_or(1)).min(MAX_ALIGN_BYTES);
        if self.is_recorded() {
            let offsets_bits: Option<Vec<u64>> =
                aggregate.members.iter().map(|member| member.offset_bits).collect();
            let fields = self.explained(aggregate, depth).ok().unwrap_or(fields);
            align = fields.iter().map(|field| field.align_bytes).max().unwrap_or(1).max(align);
            align = align.max(self.inferred_align(&fields, recorded_bytes, align, ty.declared_align));
            return Some(Laid {
                offsets_bits: offsets_bits?,
                shape: Shape { size_bytes: recorded_bytes, align_bytes: align },
            });
        }
        if ty.declared_align.is_none() {
            let recorded = DataModel::new(self.types, self.recorded, self.recorded);
            let shape = recorded.laid(id, aggregate, depth + 1)?.shape;
            let recorded_natural =
                recorded.fields(aggregate, depth)?.iter().map(|field| field.align_bytes).max().unwrap_or(1);
            if shape.align_bytes > recorded_natural {
                align = align.max(shape.align_bytes);
            }
        }
        if matches!(aggregate.kind, AggregateKind::Union | AggregateKind::Variants) {
            let largest = fields.iter().map(|field| field.size_bytes).max().unwrap_or(0);
            let offsets_bits = vec![0; fields.len()];
            let size_bytes = largest.checked_next_multiple_of(align)?;
            return Some(Laid { offsets_bits, shape: Shape { size_bytes, align_bytes: align } });
        }
        let order: Vec<usize> = (0..fields.len()).collect();
        let placed = placement::place(&fields, &order, align)?;
        let is_cpp_empty = fields.is_empty() && recorded_bytes == 1;
        let size_bytes = if is_cpp_empty { 1 } else { placed.size_bytes };
        Some(Laid { offsets_bits: placed.offsets_bits, shape: Shape { size_bytes, align_bytes: align } })
    }

    /// An alignment written on the type but not recorded shows in a size that members do not explain.
    fn inferred_align(&self, fields: &[Field], size: u64, natural: u64, declared: Option<u64>) -> u64 {
        let order: Vec<usize> = (0..fields.len()).collect();
        let Some(placed) = placement::place(fields, &order, natural) else { return natural };
        if declared.is_some() || placed.size_bytes == size {
            return natural;
        }
        (0..=12)
            .map(|power| 1u64 << power)
            .find(|&align| align > natural && placed.size_bytes.checked_next_multiple_of(align) == Some(size))
            .unwrap_or(natural)
    }

    /// The members of an aggregate as fields to be placed.
    pub(crate) fn fields(&self, aggregate: &Aggregate, depth: u32) -> Option<Vec<Field>> {
        let last = aggregate.members.len().saturating_sub(1);
        let members = aggregate.members.iter().enumerate();
        members.map(|(index, member)| self.field(member, index == last, depth)).collect()
    }

    /// The members of an aggregate under the recorded ABI, with the parts that debug info leaves out (alignments
    /// written on members, unnamed bit-fields) read off the recorded offsets.
    ///
    /// # Errors
    /// The member that no rule puts where the compiler put it.
    pub(crate) fn explained(&self, aggregate: &Aggregate, depth: u32) -> Result<Vec<Field>, Unexplained> {
        let mut fields = self.fields(aggregate, depth).ok_or(Unexplained::Unknown)?;
        let mut end_bits = 0;
        for index in 0..fields.len() {
            let member = &aggregate.members[index];
            let wanted = member.offset_bits.ok_or(Unexplained::Misplaced(index))?;
            let predicted =
                placement::start_bits(&fields[index], end_bits).ok_or(Unexplained::Misplaced(index))?;
            if wanted > predicted {
                explain_gap(&mut fields[index], wanted, end_bits);
            } else if wanted < predicted {
                let base =
                    index.checked_sub(1).filter(|&base| aggregate.members[base].role == MemberRole::Base);
                let base = base.ok_or(Unexplained::Packed(index))?;
                let start = aggregate.members[base].offset_bits.unwrap_or(0);
                fields[base].size_bytes = wanted.saturating_sub(start) / 8;
                end_bits = wanted;
            }
            if placement::start_bits(&fields[index], end_bits) != Some(wanted) {
                return Err(Unexplained::Misplaced(index));
            }
            end_bits = placement::end_after(&fields[index], wanted).ok_or(Unexplained::Misplaced(index))?;
        }
        Ok(fields)
    }

    fn field(&self, member: &Member, is_last: bool, depth: u32) -> Option<Field> {
        match member.role {
            MemberRole::VirtualBase => return None,
            MemberRole::Base if !self.is_recorded() => return None,
            MemberRole::VtablePointer => {
                let word = u64::from(self.target.pointer_bytes);
                return Some(Field {
                    size_bytes: word,
                    align_bytes: word,
                    bit_width: None,
                    lead: Lead::None,
                });
            }
            _ => {}
        }
        let mut shape = self.shape_at(member.ty, depth + 1)?;
        if shape.size_bytes == 0 && !is_last {
            shape.align_bytes = shape.align_bytes.max(1);
        }
        let align = shape.align_bytes.max(member.declared_align.unwrap_or(1)).min(MAX_ALIGN_BYTES);
        Some(Field {
            size_bytes: shape.size_bytes,
            align_bytes: align,
            bit_width: member.bit_size,
            lead: Lead::None,
        })
    }

    /// The place under the target ABI of a byte range of a value of type `id` under the recorded ABI.
    pub fn translate(&self, id: TypeId, offset: u64, size_bytes: u64) -> Vec<(u64, u64)> {
        if self.is_recorded() {
            return vec![(offset, size_bytes)];
        }
        let recorded = DataModel::new(self.types, self.recorded, self.recorded);
        let mut translation = Translation { recorded, target: self, visits: 0, ranges: Vec::new() };
        translation.add(id, offset..offset.saturating_add(size_bytes), 0, 0);
        translation.ranges
    }
}

/// Byte ranges on their way from one data model to another.
struct Translation<'t, 'a> {
    recorded: DataModel<'a>,
    target: &'t DataModel<'a>,
    visits: u32,
    ranges: Vec<(u64, u64)>,
}

impl Translation<'_, '_> {
    /// Adds some bytes of a value of type `id` that starts at `base` in the target's layout.
    fn add(&mut self, id: TypeId, bytes: Range<u64>, base: u64, depth: u32) -> Option<()> {
        self.visits += 1;
        if depth > MAX_DEPTH || self.visits > MOST_TRANSLATED || bytes.is_empty() {
            return None;
        }
        let types = self.target.types;
        let stripped = types.strip(id)?;
        match &types.get(stripped)?.kind {
            TypeKind::Aggregate(aggregate) => {
                let (from, to) = (self.recorded.layout(stripped)?, self.target.layout(stripped)?);
                for (index, member) in aggregate.members.iter().enumerate() {
                    let start = from.offsets_bits.get(index)? / 8;
                    let size = self.recorded.shape(member.ty)?.size_bytes;
                    let part = overlap(&bytes, start..start.saturating_add(size));
                    let target = base.checked_add(to.offsets_bits.get(index)? / 8)?;
                    if !part.is_empty() {
                        self.add(member.ty, part.start - start..part.end - start, target, depth + 1);
                    }
                }
            }
            TypeKind::Array { element, .. } => {
                let from = self.recorded.shape(*element)?.size_bytes;
                let to = self.target.shape(*element)?.size_bytes;
                let first = bytes.start.checked_div(from)?;
                let last = (bytes.end - 1).checked_div(from)?;
                for index in first..=last.min(first.saturating_add(4096)) {
                    let start = index * from;
                    let part = overlap(&bytes, start..start.saturating_add(from));
                    let target = index.checked_mul(to).and_then(|offset| offset.checked_add(base))?;
                    self.add(*element, part.start - start..part.end - start, target, depth + 1);
                }
            }
            _ => {
                let size = self.target.shape(id)?.size_bytes;
                let start = bytes.start.min(size.saturating_sub(1));
                let len = (bytes.end - bytes.start).min(size - start).max(1);
                self.ranges.push((base.checked_add(start)?, len));
            }
        }
        Some(())
    }
}

/// The reason why a recorded layout could not be reproduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unexplained {
    /// A member's size is not known.
    Unknown,
    /// This member is nearer to the start than its alignment allows.
    Packed(usize),
    /// This member is somewhere else.
    Misplaced(usize),
}

/// A member further on than its type asks: an alignment or unnamed bits that debug info left out.
fn explain_gap(field: &mut Field, wanted_bits: u64, end_bits: u64) {
    if field.bit_width.is_some() {
        let unit_bits = field.size_bytes.saturating_mul(8).max(1);
        let starts_unit = wanted_bits.is_multiple_of(unit_bits) && wanted_bits - end_bits < unit_bits;
        field.lead = if starts_unit { Lead::Unit } else { Lead::Bits(wanted_bits - end_bits) };
        return;
    }
    let align = 1u64 << (wanted_bits / 8).trailing_zeros().min(12);
    let fits = |align: u64| {
        let start = end_bits.div_ceil(8).checked_next_multiple_of(align);
        start.and_then(|start| start.checked_mul(8)) == Some(wanted_bits)
    };
    let least = (0..=12).map(|power| 1u64 << power).find(|&align| align > field.align_bytes && fits(align));
    field.align_bytes = least.unwrap_or(align).max(field.align_bytes);
}

fn overlap(a: &Range<u64>, b: Range<u64>) -> Range<u64> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

/// `int64_t`, `u64`, `__s64`, `__le64`, `uint_fast64_t`, `sqlite3_int64`; not `x86_64`.
fn is_fixed_width(name: &str, digits: &str) -> bool {
    let bare = name.trim_end_matches("_t");
    let Some(stem) = bare.strip_suffix(digits) else { return false };
    let stem = stem.trim_end_matches("_least").trim_end_matches("_fast");
    ["int", "u", "s", "le", "be", "i", "off", "time", "ino", "U", "I"].iter().any(|kind| {
        stem.strip_suffix(kind).is_some_and(|rest| rest.is_empty() || rest.ends_with(['_', 'u', 'U']))
    }) || stem.ends_with("int")
}
