//! Types and their parts, as single entries describe them.

use crate::dwarf::View;
use crate::dwarf::attributes::{Attributes, Field};
use crate::dwarf::entries::{CompiledAbbreviation, Entries};
use crate::dwarf::kind::RawKind;
use crate::dwarf::name::Name;
use crate::dwarf::reference::Ref;
use gimli::{DwTag, constants as dw};
use lineup_model::types::{MemberRole, Selector};
use std::num::NonZeroU64;

/// The place of a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum RawPlace {
    /// Bits from the start.
    Bits(u64),
    /// DWARF 3 bit-field: counted from the most significant bit of a storage unit.
    FromTop(FromTop),
    /// Known at run time only.
    Dynamic,
}

/// The place of a DWARF 3 bit-field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FromTop {
    pub(crate) byte_offset: u64,
    pub(crate) bit_offset: i64,
    pub(crate) storage_bytes: Option<u64>,
}

/// A part of a type: a member, a dimension, a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawChild<'a> {
    pub(crate) what: ChildKind,
    pub(crate) name: Option<Name<'a>>,
    pub(crate) target: Ref,
    pub(crate) place: RawPlace,
    pub(crate) bit_size: Option<u32>,
    pub(crate) align: Option<NonZeroU64>,
    pub(crate) file: u32,
    pub(crate) line: u32,
}

/// The kinds of [`RawChild`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ChildKind {
    Member(MemberRole),
    Static,
    Dimension(Extent),
    Parameter,
}

/// The number of elements in a dimension of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Extent {
    Elements(u64),
    /// The declaration gives none.
    Open,
    /// Known at run time only.
    Dynamic,
}

/// The role of an open entry for the entries inside it. The number is the type that they belong to.
#[derive(Clone, Copy)]
pub(crate) enum Parent {
    Type(u32),
    VariantPart(u32),
    Variant(u32, Selector),
    Other,
}

impl Parent {
    /// The type that entries inside belong to.
    pub(crate) fn owner(self) -> Option<u32> {
        match self {
            Parent::Type(owner) | Parent::VariantPart(owner) | Parent::Variant(owner, _) => Some(owner),
            Parent::Other => None,
        }
    }

    /// The role of an entry inside that is no type, for the entries inside it in turn.
    #[inline]
    pub(crate) fn inside(self, tag: DwTag, found: &Attributes<'_, '_>) -> Parent {
        match (tag, self) {
            (dw::DW_TAG_variant_part, Parent::Type(owner)) => Parent::VariantPart(owner),
            (dw::DW_TAG_variant, Parent::VariantPart(owner)) => Parent::Variant(owner, selector(found)),
            _ => Parent::Other,
        }
    }
}

impl<'a> RawChild<'a> {
    /// Reads an entry inside `parent`; `None` when it is not part of a type.
    #[inline]
    pub(crate) fn read(
        tag: DwTag,
        parent: Parent,
        found: &Attributes<'_, 'a>,
        view: &View<'a>,
        unit: u32,
    ) -> Option<Self> {
        let name = found.name();
        let is_static = found.is_set(Field::IsExternal) || found.is_set(Field::IsDeclaration);
        let is_vptr = |name: Name<'_>| found.is_set(Field::IsArtificial) && name.starts_with(b"_vptr");
        let role = match parent {
            Parent::Other => return None,
            Parent::VariantPart(_) => MemberRole::Discriminant,
            Parent::Variant(_, selector) => MemberRole::Variant(selector),
            Parent::Type(_) if name.is_some_and(is_vptr) => MemberRole::VtablePointer,
            Parent::Type(_) => MemberRole::Field,
        };
        let what = match tag {
            dw::DW_TAG_member if is_static => ChildKind::Static,
            dw::DW_TAG_member => ChildKind::Member(role),
            dw::DW_TAG_variable => ChildKind::Static,
            dw::DW_TAG_inheritance if is_virtual(found) => ChildKind::Member(MemberRole::VirtualBase),
            dw::DW_TAG_inheritance => ChildKind::Member(MemberRole::Base),
            dw::DW_TAG_subrange_type => ChildKind::Dimension(dimension(found)),
            dw::DW_TAG_formal_parameter => ChildKind::Parameter,
            _ => return None,
        };
        Some(RawChild {
            what,
            name,
            target: found.reference(Field::Target, view, unit),
            place: place(found),
            bit_size: found.number(Field::BitSize).and_then(|bits| u32::try_from(bits).ok()),
            align: found.number(Field::Align).and_then(NonZeroU64::new),
            file: found.number(Field::File).unwrap_or(0) as u32,
            line: found.number(Field::Line).unwrap_or(0) as u32,
        })
    }
}

/// The details that only the finished form of a type needs: few types are new.
#[derive(Default)]
pub(crate) struct Detail<'a> {
    pub(crate) name: Option<Name<'a>>,
    pub(crate) align: Option<NonZeroU64>,
    pub(crate) encoding: u8,
    /// True for a string that is no array: Fortran's.
    pub(crate) is_string: bool,
    /// For an array whose objects hold a descriptor, the known bytes of that descriptor.
    pub(crate) descriptor_bytes: Option<u64>,
    /// The bits from one element of an array to the next, where they are not those of the element's type.
    pub(crate) stride_bits: Option<u64>,
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) children: Vec<RawChild<'a>>,
}

impl<'a> Detail<'a> {
    /// Reads the type at an offset of a unit, up to where its entries are damaged.
    pub(crate) fn read(entries: &mut Entries<'_, 'a>, view: &View<'a>, (unit, offset): (u32, u32)) -> Self {
        let mut detail = Detail::default();
        entries.seek(offset);
        // Damage was already counted when the unit was read.
        let _ = detail.collect(entries, view, unit);
        detail
    }

    fn collect(
        &mut self,
        entries: &mut Entries<'_, 'a>,
        view: &View<'a>,
        unit: u32,
    ) -> Result<(), gimli::Error> {
        let Some(own) = entries.next()? else { return Ok(()) };
        entries.read(own)?;
        let (tag, has_children) =
            entries.about(own).map_or((DwTag(0), false), |own| (own.tag, own.has_children));
        self.is_string = tag == dw::DW_TAG_string_type;
        let found = &entries.attributes;
        self.name = found.name();
        self.align = found.number(Field::Align).and_then(NonZeroU64::new);
        self.encoding = found.number(Field::Encoding).unwrap_or(0) as u8;
        self.file = found.number(Field::File).unwrap_or(0) as u32;
        self.line = found.number(Field::Line).unwrap_or(0) as u32;
        let is_descriptor = found.is_descriptor();
        let is_array = tag == dw::DW_TAG_array_type;
        self.stride_bits = found.stride_bits().filter(|_| is_array);
        let mut reach_bytes = 0;
        for field in [Field::DataLocation, Field::Allocated, Field::Associated] {
            reach_bytes = reach_bytes.max(found.reach_bytes(field).unwrap_or(0));
        }
        let mut open = Vec::new();
        if has_children {
            open.push(Parent::Type(0));
        }
        while let Some(&parent) = open.last() {
            if entries.is_at_end() {
                break;
            }
            let Some(code) = entries.next()? else {
                open.pop();
                continue;
            };
            let Some(&CompiledAbbreviation { tag, kind, may_be_part, has_children, .. }) =
                entries.about(code)
            else {
                break;
            };
            let is_dimension = is_array && kind == Some(RawKind::Range);
            let is_part = (kind.is_none() || is_dimension) && may_be_part && parent.owner().is_some();
            if is_part {
                entries.read(code)?;
                for field in [Field::Lower, Field::Upper, Field::Count, Field::Stride] {
                    reach_bytes = reach_bytes.max(entries.attributes.reach_bytes(field).unwrap_or(0));
                }
                self.children.extend(RawChild::read(tag, parent, &entries.attributes, view, unit));
            } else {
                entries.skip(code)?;
            }
            if has_children {
                open.push(if is_part { parent.inside(tag, &entries.attributes) } else { Parent::Other });
            }
        }
        self.descriptor_bytes = is_descriptor.then_some(reach_bytes);
        Ok(())
    }
}

/// Elements of one dimension.
fn dimension(found: &Attributes<'_, '_>) -> Extent {
    if found.has(Field::HeldElsewhere) {
        return Extent::Dynamic;
    }
    if found.has(Field::Count) {
        return found.constant(Field::Count).map_or(Extent::Dynamic, Extent::Elements);
    }
    if !found.has(Field::Upper) {
        // A lower bound that is read at run time belongs to an upper one.
        let is_open = !found.has(Field::Lower) || found.constant(Field::Lower).is_some();
        return if is_open { Extent::Open } else { Extent::Dynamic };
    }
    let lower = match found.has(Field::Lower) {
        true => found.constant(Field::Lower).map(u64::cast_signed),
        false => Some(found.default_lower_bound()),
    };
    let Some((lower, upper)) = lower.zip(found.constant(Field::Upper)) else { return Extent::Dynamic };
    // An array of no elements ends before it begins: C writes an upper bound of -1.
    let count = upper.cast_signed().wrapping_sub(lower).wrapping_add(1);
    Extent::Elements(u64::try_from(count).unwrap_or(0))
}

/// The discriminant values that select the variant that an entry describes.
fn selector(found: &Attributes<'_, '_>) -> Selector {
    let widths =
        [(Field::Selected8, 8), (Field::Selected16, 16), (Field::Selected32, 32), (Field::Selected, 64)];
    let value = widths
        .into_iter()
        .find_map(|(field, width_bits)| found.number(field).map(|bits| Selector::Value { bits, width_bits }));
    match value {
        Some(value) => value,
        None if found.has(Field::Selected) => Selector::Unknown,
        None => Selector::Rest,
    }
}

fn is_virtual(found: &Attributes<'_, '_>) -> bool {
    found.has(Field::Virtuality) && found.number(Field::Virtuality) != Some(dw::DW_VIRTUALITY_none.0.into())
}

fn place(found: &Attributes<'_, '_>) -> RawPlace {
    let byte_offset = match found.location() {
        Some(None) => return RawPlace::Dynamic,
        Some(Some(bytes)) => bytes,
        // Members of unions have no location.
        None => 0,
    };
    if is_virtual(found) {
        return RawPlace::Dynamic;
    }
    match (found.number(Field::DataBitOffset), found.number(Field::BitOffset)) {
        (Some(bits), _) => RawPlace::Bits(bits),
        (None, Some(bit_offset)) => RawPlace::FromTop(FromTop {
            byte_offset,
            bit_offset: bit_offset.cast_signed(),
            storage_bytes: found.number(Field::Size),
        }),
        (None, None) => byte_offset.checked_mul(8).map_or(RawPlace::Dynamic, RawPlace::Bits),
    }
}
