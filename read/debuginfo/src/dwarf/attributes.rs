//! The attributes of one entry that types and members use.

use super::expression;
use super::extent::default_lower_bound;
use super::name::Name;
use super::reference::Ref;
use super::{Dwarf, Unit, Value, View, constant};
use gimli::{DwAt, DwForm, Section as _, constants as dw};
use std::cell::OnceCell;

/// An attribute that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Field {
    /// A name among the entries; its number is where it starts, counted from the first entry.
    Name,
    /// A name in `.debug_str`.
    NameOffset,
    Size,
    BitSize,
    Align,
    Target,
    Completes,
    Alias,
    File,
    Line,
    Encoding,
    IsDeclaration,
    IsExternal,
    IsArtificial,
    Virtuality,
    Location,
    BitOffset,
    DataBitOffset,
    Count,
    Upper,
    Lower,
    Stride,
    StrideBits,
    DataLocation,
    Allocated,
    Associated,
    StringLength,
    /// A size or a bound that another entry holds: a variable, or a member of the object.
    HeldElsewhere,
    /// A discriminant's value of 64 bits or as many as it needs, and of 8, 16 and 32 bits.
    Selected,
    Selected8,
    Selected16,
    Selected32,
}

/// The number of fields.
const FIELDS: usize = Field::Selected32 as usize + 1;

impl Field {
    /// The field of an attribute in some form; `None` when it is not read.
    pub(crate) fn of(name: DwAt, form: DwForm) -> Option<Field> {
        if is_reference(form) && is_amount(name) {
            return Some(Field::HeldElsewhere);
        }
        Some(match name {
            dw::DW_AT_name if form == dw::DW_FORM_strp => Field::NameOffset,
            dw::DW_AT_name => Field::Name,
            dw::DW_AT_byte_size => Field::Size,
            dw::DW_AT_bit_size => Field::BitSize,
            dw::DW_AT_alignment => Field::Align,
            dw::DW_AT_type | dw::DW_AT_import => Field::Target,
            dw::DW_AT_specification => Field::Completes,
            dw::DW_AT_signature => Field::Alias,
            dw::DW_AT_decl_file => Field::File,
            dw::DW_AT_decl_line => Field::Line,
            dw::DW_AT_encoding => Field::Encoding,
            dw::DW_AT_declaration => Field::IsDeclaration,
            dw::DW_AT_external => Field::IsExternal,
            dw::DW_AT_artificial => Field::IsArtificial,
            dw::DW_AT_virtuality => Field::Virtuality,
            dw::DW_AT_data_member_location => Field::Location,
            dw::DW_AT_bit_offset => Field::BitOffset,
            dw::DW_AT_data_bit_offset => Field::DataBitOffset,
            dw::DW_AT_count => Field::Count,
            dw::DW_AT_upper_bound => Field::Upper,
            dw::DW_AT_lower_bound => Field::Lower,
            dw::DW_AT_byte_stride => Field::Stride,
            dw::DW_AT_bit_stride => Field::StrideBits,
            dw::DW_AT_data_location => Field::DataLocation,
            dw::DW_AT_allocated => Field::Allocated,
            dw::DW_AT_associated => Field::Associated,
            dw::DW_AT_string_length => Field::StringLength,
            dw::DW_AT_discr_value => match form {
                dw::DW_FORM_data1 => Field::Selected8,
                dw::DW_FORM_data2 => Field::Selected16,
                dw::DW_FORM_data4 => Field::Selected32,
                _ => Field::Selected,
            },
            _ => return None,
        })
    }
}

/// True for attributes that give an amount: a size, count, bound, stride or length.
fn is_amount(name: DwAt) -> bool {
    matches!(
        name,
        dw::DW_AT_byte_size
            | dw::DW_AT_bit_size
            | dw::DW_AT_count
            | dw::DW_AT_upper_bound
            | dw::DW_AT_lower_bound
            | dw::DW_AT_byte_stride
            | dw::DW_AT_bit_stride
            | dw::DW_AT_string_length
    )
}

/// True for the forms that name another entry.
pub(crate) fn is_reference(form: DwForm) -> bool {
    matches!(
        form,
        dw::DW_FORM_ref1
            | dw::DW_FORM_ref2
            | dw::DW_FORM_ref4
            | dw::DW_FORM_ref8
            | dw::DW_FORM_ref_udata
            | dw::DW_FORM_ref_addr
            | dw::DW_FORM_ref_sig8
            | dw::DW_FORM_GNU_ref_alt
            | dw::DW_FORM_ref_sup4
            | dw::DW_FORM_ref_sup8
    )
}

/// A set of fields.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Fields(u32);

impl Fields {
    pub(crate) fn with(self, field: Field) -> Fields {
        Fields(self.0 | 1 << field as u8)
    }

    fn has(self, field: Field) -> bool {
        self.0 & 1 << field as u8 != 0
    }
}

/// The attributes of one entry: numbers by field, and a list of the other values.
pub(crate) struct Attributes<'u, 'a> {
    dwarf: &'u Dwarf<'a>,
    unit: &'u Unit<'a>,
    /// The unit from its first entry on.
    bytes: &'a [u8],
    /// `.debug_str`.
    strings: &'a [u8],
    /// The number of `.debug_str` when it holds each text once.
    merged: Option<u32>,
    /// The fields whose number is known.
    known: Fields,
    /// The fields that the entry has.
    present: Fields,
    numbers: [u64; FIELDS],
    /// Values that are no plain numbers, in gimli's form.
    others: Vec<(Field, Value<'a>)>,
    /// The default lower bound of arrays in the unit's language.
    default_lower: OnceCell<i64>,
}

impl<'u, 'a> Attributes<'u, 'a> {
    pub(crate) fn new(
        dwarf: &'u Dwarf<'a>,
        unit: &'u Unit<'a>,
        bytes: &'a [u8],
        merged: Option<u32>,
    ) -> Self {
        Attributes {
            dwarf,
            unit,
            bytes,
            strings: dwarf.debug_str.reader().slice(),
            merged,
            known: Fields::default(),
            present: Fields::default(),
            numbers: [0; FIELDS],
            others: Vec::new(),
            default_lower: OnceCell::new(),
        }
    }

    /// Forgets everything. The numbers of `known` follow.
    #[inline]
    pub(crate) fn clear(&mut self, known: Fields) {
        (self.known, self.present) = (known, known);
        self.others.clear();
    }

    /// Notes a number: a constant, an offset in the unit or in `.debug_str`, or a flag.
    #[inline]
    pub(crate) fn set(&mut self, field: Field, number: u64) {
        self.known = self.known.with(field);
        self.present = self.present.with(field);
        self.numbers[field as usize] = number;
    }

    /// Notes the number of a field that [`Self::clear`] announced.
    #[inline]
    pub(crate) fn fill(&mut self, field: Field, number: u64) {
        self.numbers[field as usize] = number;
    }

    /// Stores a value in gimli's form.
    pub(crate) fn set_value(&mut self, field: Field, value: Value<'a>) {
        let field = match (field, &value) {
            (Field::Selected, Value::Data1(_)) => Field::Selected8,
            (Field::Selected, Value::Data2(_)) => Field::Selected16,
            (Field::Selected, Value::Data4(_)) => Field::Selected32,
            _ => field,
        };
        match value {
            Value::Flag(is_set) => self.set(field, is_set.into()),
            Value::Encoding(encoding) => self.set(field, encoding.0.into()),
            Value::Virtuality(virtuality) => self.set(field, virtuality.0.into()),
            Value::UnitRef(offset) => self.set(field, offset.0 as u64),
            other => match constant(other) {
                Some(number) => self.set(field, number),
                None => {
                    self.present = self.present.with(field);
                    self.others.push((field, other));
                }
            },
        }
    }

    /// True when the entry has the attribute, with any value.
    pub(crate) fn has(&self, field: Field) -> bool {
        self.present.has(field)
    }

    /// The number of an attribute.
    #[inline]
    pub(crate) fn number(&self, field: Field) -> Option<u64> {
        self.known.has(field).then(|| self.numbers[field as usize])
    }

    /// The number of an attribute, also where an expression without anything of a run gives it.
    pub(crate) fn constant(&self, field: Field) -> Option<u64> {
        self.number(field).or_else(|| match self.other(field)? {
            Value::Exprloc(expression) => expression::constant(expression, self.unit.encoding()),
            _ => None,
        })
    }

    /// The number of bytes of an object that the expression of an attribute reads; `None` when it reads none of them.
    pub(crate) fn reach_bytes(&self, field: Field) -> Option<u64> {
        match self.other(field).filter(|_| self.has(field))? {
            Value::Exprloc(expression) => expression::reach_bytes(expression, self.unit.encoding()),
            _ => None,
        }
    }

    /// The size in bytes that the entry gives. `None` for a string with a length of its own, where the size is the
    /// length's.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        if self.has(Field::StringLength) || self.has(Field::HeldElsewhere) {
            return None;
        }
        self.constant(Field::Size).or_else(|| self.number(Field::BitSize).map(|bits| bits.div_ceil(8)))
    }

    /// The bits from one element of an array to the next, where the entry gives them: elements of packed arrays of Ada
    /// are smaller than their type.
    pub(crate) fn stride_bits(&self) -> Option<u64> {
        self.constant(Field::StrideBits).or_else(|| self.constant(Field::Stride)?.checked_mul(8))
    }

    /// True for an array of which the object holds a description: where its elements are, and how many.
    pub(crate) fn is_descriptor(&self) -> bool {
        let is_elsewhere = self.has(Field::DataLocation) && !self.holds_its_elements();
        is_elsewhere || self.has(Field::Allocated) || self.has(Field::Associated)
    }

    /// True when the elements of an array lie in the object itself, behind other data.
    fn holds_its_elements(&self) -> bool {
        match self.other(Field::DataLocation) {
            Some(Value::Exprloc(expression)) => expression::is_in_object(expression, self.unit.encoding()),
            _ => false,
        }
    }

    /// The first index of an array whose entry gives none.
    pub(crate) fn default_lower_bound(&self) -> i64 {
        *self.default_lower.get_or_init(|| default_lower_bound(self.unit))
    }

    pub(crate) fn is_set(&self, field: Field) -> bool {
        self.number(field).is_some_and(|number| number != 0)
    }

    fn other(&self, field: Field) -> Option<Value<'a>> {
        self.others.iter().find(|(other, _)| *other == field).map(|&(_, value)| value)
    }

    /// The entry's name.
    #[inline]
    pub(crate) fn name(&self) -> Option<Name<'a>> {
        let from = |section: &'a [u8], offset: u64| section.get(usize::try_from(offset).ok()?..);
        if let Some(offset) = self.number(Field::NameOffset) {
            let text = from(self.strings, offset)?;
            return Some(match self.merged {
                Some(section) => Name::merged(text, section, offset),
                None => Name::new(text),
            });
        }
        if let Some(offset) = self.number(Field::Name) {
            return from(self.bytes, offset).map(Name::new);
        }
        let name = self.dwarf.attr_string(self.unit, self.other(Field::Name)?);
        name.ok().map(|name| Name::new(name.slice()))
    }

    /// The target of an attribute's reference; `unit` is the entry's own.
    #[inline]
    pub(crate) fn reference(&self, field: Field, view: &View<'a>, unit: u32) -> Ref {
        match self.number(field) {
            Some(offset) => u32::try_from(offset).map_or(Ref::Broken, Ref::Local),
            None if self.has(field) => self.other_reference(field, view, unit),
            None => Ref::Nothing,
        }
    }

    /// A reference that is no offset in the unit.
    #[cold]
    fn other_reference(&self, field: Field, view: &View<'a>, unit: u32) -> Ref {
        let elsewhere = match self.other(field) {
            Some(Value::DebugInfoRef(offset)) => view.in_section(unit, offset.0),
            Some(Value::DebugInfoRefSup(offset)) => view.in_supplement(offset.0),
            Some(Value::DebugTypesRef(signature)) => view.signature(unit, signature.0),
            _ => None,
        };
        match elsewhere {
            Some(die) if die.unit == unit => Ref::Local(die.offset),
            Some(die) => Ref::Elsewhere(die),
            None => Ref::Broken,
        }
    }

    /// A member's byte offset, a constant or the expression that adds one: `None` without the
    /// attribute, `Some(None)` when it is known at run time only.
    pub(crate) fn location(&self) -> Option<Option<u64>> {
        if !self.has(Field::Location) {
            return None;
        }
        let Some(Value::Exprloc(expression)) = self.other(Field::Location) else {
            return Some(self.number(Field::Location));
        };
        Some(expression::member_offset(expression, self.unit.encoding()))
    }
}
