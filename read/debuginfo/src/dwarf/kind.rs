//! The kind of type that an entry describes, by its tag.

use gimli::{DwTag, constants as dw};
use lineup_model::types::AggregateKind;

/// The kind of type that an entry describes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum RawKind {
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
    /// Some values of another type: a type of Ada, Pascal or Modula, or a dimension inside an array.
    Range,
    Opaque,
}

/// A qualifier of a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Qualifier {
    Const,
    Volatile,
    Restrict,
    Atomic,
    Unnamed,
}

impl Qualifier {
    pub(crate) fn keyword(self) -> &'static str {
        match self {
            Qualifier::Const => "const",
            Qualifier::Volatile => "volatile",
            Qualifier::Restrict => "restrict",
            Qualifier::Atomic => "_Atomic",
            Qualifier::Unnamed => "",
        }
    }
}

/// True for entries that belong to a type when they are inside one.
pub(crate) fn belongs_to_type(tag: DwTag) -> bool {
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

/// The kind of type that an entry describes, if any.
pub(crate) fn type_kind(tag: DwTag) -> Option<RawKind> {
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
        dw::DW_TAG_subrange_type => RawKind::Range,
        dw::DW_TAG_unspecified_type | dw::DW_TAG_string_type | dw::DW_TAG_set_type | dw::DW_TAG_file_type => {
            RawKind::Opaque
        }
        _ => return None,
    })
}
