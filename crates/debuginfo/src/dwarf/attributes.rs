//! The attributes of one entry that types and members use.

use super::name::Name;
use super::reference::Ref;
use super::{Dwarf, Unit, Value, View, constant};
use gimli::{DwAt, DwForm, Section as _, constants as dw};

/// An attribute that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Field {
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
    /// A discriminant's value of 64 bits or as many as it needs, and of 8, 16 and 32 bits.
    Selected,
    Selected8,
    Selected16,
    Selected32,
}

/// How many fields there are.
const FIELDS: usize = Field::Selected32 as usize + 1;

impl Field {
    /// The field of an attribute in some form; `None` when it is not read.
    pub(super) fn of(name: DwAt, form: DwForm) -> Option<Field> {
        Some(match name {
            dw::DW_AT_name if form == dw::DW_FORM_strp => Field::NameOffset,
            dw::DW_AT_name => Field::Name,
            dw::DW_AT_byte_size => Field::Size,
            dw::DW_AT_bit_size => Field::BitSize,
            dw::DW_AT_alignment => Field::Align,
            dw::DW_AT_type => Field::Target,
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

/// A set of fields.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Fields(u32);

impl Fields {
    pub(super) fn with(self, field: Field) -> Fields {
        Fields(self.0 | 1 << field as u8)
    }

    fn has(self, field: Field) -> bool {
        self.0 & 1 << field as u8 != 0
    }
}

/// The attributes of one entry: numbers by field, and what is no number beside them.
pub(super) struct Attributes<'u, 'a> {
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
    /// Values that are no plain numbers, as gimli tells them.
    others: Vec<(Field, Value<'a>)>,
}

impl<'u, 'a> Attributes<'u, 'a> {
    pub(super) fn new(
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
        }
    }

    /// Forgets everything. The numbers of `known` follow.
    #[inline]
    pub(super) fn clear(&mut self, known: Fields) {
        (self.known, self.present) = (known, known);
        self.others.clear();
    }

    /// Notes a number: a constant, an offset in the unit or in `.debug_str`, or a flag.
    #[inline]
    pub(super) fn set(&mut self, field: Field, number: u64) {
        self.known = self.known.with(field);
        self.present = self.present.with(field);
        self.numbers[field as usize] = number;
    }

    /// Notes the number of a field that [`Self::clear`] announced.
    #[inline]
    pub(super) fn fill(&mut self, field: Field, number: u64) {
        self.numbers[field as usize] = number;
    }

    /// Notes a value as gimli tells it.
    pub(super) fn set_value(&mut self, field: Field, value: Value<'a>) {
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

    /// True when the entry has the attribute, whatever its value.
    pub(super) fn has(&self, field: Field) -> bool {
        self.present.has(field)
    }

    /// The number of an attribute.
    #[inline]
    pub(super) fn number(&self, field: Field) -> Option<u64> {
        self.known.has(field).then(|| self.numbers[field as usize])
    }

    pub(super) fn is_set(&self, field: Field) -> bool {
        self.number(field).is_some_and(|number| number != 0)
    }

    fn other(&self, field: Field) -> Option<Value<'a>> {
        self.others.iter().find(|(other, _)| *other == field).map(|&(_, value)| value)
    }

    /// The entry's name.
    #[inline]
    pub(super) fn name(&self) -> Option<Name<'a>> {
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

    /// What the entry refers to by an attribute; `unit` is the entry's own.
    #[inline]
    pub(super) fn reference(&self, field: Field, view: &View<'a>, unit: u32) -> Ref {
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
            Some(Value::DebugTypesRef(signature)) => view.signature(signature.0),
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
    pub(super) fn location(&self) -> Option<Option<u64>> {
        if !self.has(Field::Location) {
            return None;
        }
        let Some(Value::Exprloc(expression)) = self.other(Field::Location) else {
            return Some(self.number(Field::Location));
        };
        let mut operations = expression.operations(self.unit.encoding());
        Some(match operations.next() {
            Ok(Some(gimli::Operation::PlusConstant { value })) => Some(value),
            Ok(Some(gimli::Operation::UnsignedConstant { value })) => Some(value),
            _ => None,
        })
    }
}
