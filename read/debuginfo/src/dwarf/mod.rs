//! DWARF: units, types, variables, functions and lines.

mod attributes;
mod code;
mod entries;
mod expression;
mod extent;
mod files;
mod kind;
mod name;
mod reference;
mod store;
mod type_search;
mod types;

pub(crate) use code::catalog::{Catalog, Named, VariableEntry};
pub(crate) use code::functions::Details;
pub(crate) use code::lines::Lines;
pub(crate) use extent::compiler;
pub(crate) use reference::Die;
pub(crate) use store::{Store, View};
pub(crate) use type_search::units::units_of_types;
pub(crate) use types::type_table::TypeTable;

use gimli::{EndianSlice, LittleEndian};

/// A section's bytes as gimli reads them.
type Slice<'a> = EndianSlice<'a, LittleEndian>;
/// The sections of one file.
type Dwarf<'a> = gimli::Dwarf<Slice<'a>>;
/// A unit with its abbreviations.
type Unit<'a> = gimli::Unit<Slice<'a>>;
/// An attribute's value.
type Value<'a> = gimli::AttributeValue<Slice<'a>>;
/// An entry with its attributes.
type DwarfEntry<'a> = gimli::DebuggingInformationEntry<Slice<'a>>;

/// The number of references followed before a chain counts as a cycle.
const MAX_CHAIN: usize = 64;

/// Text of a name as the vocabulary wants it.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An unsigned constant. `DW_FORM_sdata` keeps its sign in two's complement.
fn constant(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Data1(value) => Some(value.into()),
        Value::Data2(value) => Some(value.into()),
        Value::Data4(value) => Some(value.into()),
        Value::Data8(value) | Value::Udata(value) => Some(value),
        Value::Sdata(value) => Some(value.cast_unsigned()),
        Value::FileIndex(value) => Some(value),
        _ => None,
    }
}
