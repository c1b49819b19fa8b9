//! Types and what belongs to them, as single entries describe them.

use super::View;
use super::attributes::{Attributes, Field};
use super::entries::{Entries, Entry};
use super::name::Name;
use crate::dwarf::store::Die;
use gimli::{DwTag, constants as dw};
use lineup_model::types::{AggregateKind, MemberRole, Selector};
use std::num::NonZeroU64;

/// What an entry refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ref {
    Nothing,
    /// Of a type in the same unit: its offset while units are read, then its index in
    /// [`super::link::Linked::types`].
    Local(u32),
    Elsewhere(Die),
    /// A reference that leads nowhere.
    Broken,
}

impl Ref {
    /// The index of a type, once references are linked.
    #[inline]
    pub(super) fn index(self) -> Option<usize> {
        match self {
            Ref::Local(index) => Some(index as usize),
            _ => None,
        }
    }
}

/// A [`Ref`] in eight bytes: millions are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedRef {
    /// The unit of a type elsewhere, or one of the numbers below, which no unit has.
    unit: u32,
    at: u32,
}

impl PackedRef {
    const NOTHING: u32 = u32::MAX;
    const LOCAL: u32 = u32::MAX - 1;
    const BROKEN: u32 = u32::MAX - 2;

    #[inline]
    pub(super) fn get(self) -> Ref {
        match self.unit {
            PackedRef::NOTHING => Ref::Nothing,
            PackedRef::LOCAL => Ref::Local(self.at),
            PackedRef::BROKEN => Ref::Broken,
            unit => Ref::Elsewhere(Die { unit, offset: self.at }),
        }
    }

    /// The index of a type, once references are linked.
    #[inline]
    pub(super) fn index(self) -> Option<usize> {
        (self.unit == PackedRef::LOCAL).then_some(self.at as usize)
    }
}

impl From<Ref> for PackedRef {
    #[inline]
    fn from(reference: Ref) -> Self {
        match reference {
            Ref::Nothing => PackedRef { unit: PackedRef::NOTHING, at: 0 },
            Ref::Local(at) => PackedRef { unit: PackedRef::LOCAL, at },
            Ref::Broken => PackedRef { unit: PackedRef::BROKEN, at: 0 },
            Ref::Elsewhere(Die { unit, offset }) => PackedRef { unit, at: offset },
        }
    }
}

/// Which kind of type an entry describes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum RawKind {
    Base,
    Enum,
    Pointer,
    Reference,
    RvalueReference,
    MemberPointer,
    Qualifier(Qualifier),
    Typedef,
    Aggregate(AggregateKind),
    Array,
    Function,
    Opaque,
}

/// A qualifier of a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Qualifier {
    Const,
    Volatile,
    Restrict,
    Atomic,
    Unnamed,
}

impl Qualifier {
    pub(super) fn keyword(self) -> &'static str {
        match self {
            Qualifier::Const => "const",
            Qualifier::Volatile => "volatile",
            Qualifier::Restrict => "restrict",
            Qualifier::Atomic => "_Atomic",
            Qualifier::Unnamed => "",
        }
    }
}

/// Where a member is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum RawPlace {
    /// Bits from the start.
    Bits(u64),
    /// DWARF 3 bit-field: counted from the most significant bit of a storage unit.
    FromTop(FromTop),
    /// Known at run time only.
    Dynamic,
}

/// Where a DWARF 3 bit-field is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct FromTop {
    pub(super) byte_offset: u64,
    pub(super) bit_offset: i64,
    pub(super) storage_bytes: Option<u64>,
}

/// What belongs to a type: a member, a dimension, a parameter.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawChild<'a> {
    pub(super) what: What,
    pub(super) name: Option<Name<'a>>,
    pub(super) target: Ref,
    pub(super) place: RawPlace,
    pub(super) bit_size: Option<u32>,
    pub(super) align: Option<NonZeroU64>,
    pub(super) file: u32,
    pub(super) line: u32,
}

/// The kinds of [`RawChild`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum What {
    Member(MemberRole),
    Static,
    Dimension(Option<u64>),
    Parameter,
}

/// What an open entry is to the entries inside it. The number is the type that they belong to.
#[derive(Clone, Copy)]
pub(super) enum Parent {
    Type(u32),
    VariantPart(u32),
    Variant(u32, Selector),
    Other,
}

impl Parent {
    /// The type that entries inside belong to.
    pub(super) fn owner(self) -> Option<u32> {
        match self {
            Parent::Type(owner) | Parent::VariantPart(owner) | Parent::Variant(owner, _) => Some(owner),
            Parent::Other => None,
        }
    }

    /// What an entry inside that is no type is to the entries inside it in turn.
    #[inline]
    pub(super) fn inside(self, tag: DwTag, found: &Attributes<'_, '_>) -> Parent {
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
    pub(super) fn read(
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
            dw::DW_TAG_member if is_static => What::Static,
            dw::DW_TAG_member => What::Member(role),
            dw::DW_TAG_variable => What::Static,
            dw::DW_TAG_inheritance if is_virtual(found) => What::Member(MemberRole::VirtualBase),
            dw::DW_TAG_inheritance => What::Member(MemberRole::Base),
            dw::DW_TAG_subrange_type => What::Dimension(dimension(found)),
            dw::DW_TAG_formal_parameter => What::Parameter,
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

/// What only the finished form of a type needs: few types are new.
#[derive(Default)]
pub(super) struct Detail<'a> {
    pub(super) name: Option<Name<'a>>,
    pub(super) align: Option<NonZeroU64>,
    pub(super) encoding: u8,
    pub(super) file: u32,
    pub(super) line: u32,
    pub(super) children: Vec<RawChild<'a>>,
}

impl<'a> Detail<'a> {
    /// Reads the type at an offset of a unit, up to where its entries are damaged.
    pub(super) fn read(entries: &mut Entries<'_, 'a>, view: &View<'a>, (unit, offset): (u32, u32)) -> Self {
        let mut detail = Detail::default();
        entries.seek(offset);
        // What is damaged was counted when the unit was read.
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
        let has_children = entries.about(own).is_some_and(|entry| entry.has_children);
        let found = &entries.attributes;
        self.name = found.name();
        self.align = found.number(Field::Align).and_then(NonZeroU64::new);
        self.encoding = found.number(Field::Encoding).unwrap_or(0) as u8;
        self.file = found.number(Field::File).unwrap_or(0) as u32;
        self.line = found.number(Field::Line).unwrap_or(0) as u32;
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
            let Some(&Entry { tag, kind, may_be_part, has_children, .. }) = entries.about(code) else {
                break;
            };
            let is_part = kind.is_none() && may_be_part && parent.owner().is_some();
            if is_part {
                entries.read(code)?;
                self.children.extend(RawChild::read(tag, parent, &entries.attributes, view, unit));
            } else {
                entries.skip(code)?;
            }
            if has_children {
                open.push(if is_part { parent.inside(tag, &entries.attributes) } else { Parent::Other });
            }
        }
        Ok(())
    }
}

/// Elements of one dimension; `None` when the declaration gave none.
fn dimension(found: &Attributes<'_, '_>) -> Option<u64> {
    if found.has(Field::Count) {
        return found.number(Field::Count);
    }
    let lower = found.number(Field::Lower).unwrap_or(0);
    // An upper bound of -1 is how an array of no elements is written.
    found.number(Field::Upper).map(|upper| upper.wrapping_add(1).wrapping_sub(lower))
}

/// Which values of the discriminant mean the variant that an entry describes.
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

/// True for entries that belong to a type when they are inside one.
pub(super) fn belongs_to_type(tag: DwTag) -> bool {
    matches!(
        tag,
        dw::DW_TAG_member
            | dw::DW_TAG_inheritance
            | dw::DW_TAG_subrange_type
            | dw::DW_TAG_variant_part
            | dw::DW_TAG_variant
            | dw::DW_TAG_formal_parameter
            | dw::DW_TAG_variable
    )
}

/// Which kind of type an entry describes, if any.
pub(super) fn type_kind(tag: DwTag) -> Option<RawKind> {
    Some(match tag {
        dw::DW_TAG_base_type => RawKind::Base,
        dw::DW_TAG_enumeration_type => RawKind::Enum,
        dw::DW_TAG_pointer_type => RawKind::Pointer,
        dw::DW_TAG_reference_type => RawKind::Reference,
        dw::DW_TAG_rvalue_reference_type => RawKind::RvalueReference,
        dw::DW_TAG_ptr_to_member_type => RawKind::MemberPointer,
        dw::DW_TAG_const_type => RawKind::Qualifier(Qualifier::Const),
        dw::DW_TAG_volatile_type => RawKind::Qualifier(Qualifier::Volatile),
        dw::DW_TAG_restrict_type => RawKind::Qualifier(Qualifier::Restrict),
        dw::DW_TAG_atomic_type => RawKind::Qualifier(Qualifier::Atomic),
        dw::DW_TAG_immutable_type | dw::DW_TAG_packed_type | dw::DW_TAG_shared_type => {
            RawKind::Qualifier(Qualifier::Unnamed)
        }
        dw::DW_TAG_typedef | dw::DW_TAG_template_alias => RawKind::Typedef,
        dw::DW_TAG_structure_type => RawKind::Aggregate(AggregateKind::Struct),
        dw::DW_TAG_class_type | dw::DW_TAG_interface_type => RawKind::Aggregate(AggregateKind::Class),
        dw::DW_TAG_union_type => RawKind::Aggregate(AggregateKind::Union),
        dw::DW_TAG_array_type => RawKind::Array,
        dw::DW_TAG_subroutine_type => RawKind::Function,
        dw::DW_TAG_unspecified_type | dw::DW_TAG_string_type | dw::DW_TAG_set_type | dw::DW_TAG_file_type => {
            RawKind::Opaque
        }
        _ => return None,
    })
}
