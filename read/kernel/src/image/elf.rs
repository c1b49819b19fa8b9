//! The few facts about an ELF kernel that its bytes give without debug information.

use crate::error::Error;
use crate::scan::u16_at;
use crate::symbol::KernelSymbol;
use lineup_model::abi::Machine;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionKind, SymbolKind, SymbolSection};

/// The offset of the machine in an ELF header.
pub(crate) const E_MACHINE: usize = 18;

/// The first bytes of every ELF file.
pub(super) const MAGIC: &[u8] = b"\x7fELF";

pub(crate) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// True when these are the first bytes of a little-endian program. Code that looks for programs also contains the first
/// four of them.
pub(super) fn begins_program(bytes: &[u8]) -> bool {
    is_elf(bytes) && matches!(bytes.get(4..7), Some([1 | 2, 1, 1]))
}

fn parse(bytes: &[u8]) -> Result<object::File<'_>, Error> {
    object::File::parse(bytes).map_err(|error| damaged(&error))
}

fn damaged(error: &object::Error) -> Error {
    Error::Elf { what: "the kernel's ELF file".into(), why: error.to_string() }
}

pub(super) fn machine(bytes: &[u8]) -> Result<Machine, Error> {
    let file = parse(bytes)?;
    let is_little = file.is_little_endian();
    let number = u16_at(bytes, E_MACHINE).filter(|_| is_little);
    // The boards define the known kernels.
    let machine = number.and_then(Machine::of_elf).filter(|machine| machine.description().board.is_some());
    machine.ok_or_else(|| Error::UnsupportedMachine {
        machine: format!("{}{:?}", if is_little { "" } else { "big-endian " }, file.architecture()),
    })
}

pub(super) fn build_id(bytes: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    Ok(parse(bytes)?.build_id().map_err(|error| damaged(&error))?.map(<[u8]>::to_vec))
}

pub(super) fn section<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let file = object::File::parse(bytes).ok()?;
    let range = file.section_by_name(name)?.file_range()?;
    let (start, length) = (usize::try_from(range.0).ok()?, usize::try_from(range.1).ok()?);
    bytes.get(start..start.checked_add(length)?)
}

/// The address that the file's first byte would have in the segment that holds the byte at this offset.
pub(crate) fn address_of_start(bytes: &[u8], offset: u64) -> Option<u64> {
    let file = object::File::parse(bytes).ok()?;
    file.segments().find_map(|segment| {
        let (start, length) = segment.file_range();
        let is_inside = start <= offset && offset - start < length;
        is_inside.then(|| segment.address().wrapping_sub(start))
    })
}

/// The symbols of the file's own table, with letters as `nm` prints them.
pub(crate) fn symbols(bytes: &[u8]) -> Result<Vec<KernelSymbol>, Error> {
    let file = parse(bytes)?;
    let named = file.symbols().filter_map(|symbol| {
        let name = symbol.name().ok().filter(|name| !name.is_empty() && !name.starts_with('$'))?;
        let is_plain = !matches!(symbol.kind(), SymbolKind::File | SymbolKind::Section)
            && symbol.is_definition()
            || symbol.section() == SymbolSection::Absolute && symbol.kind() == SymbolKind::Unknown;
        is_plain.then(|| KernelSymbol {
            address: symbol.address(),
            kind: letter(&file, &symbol),
            name: name.into(),
        })
    });
    Ok(named.collect())
}

fn letter<'a>(file: &object::File<'a>, symbol: &impl ObjectSymbol<'a>) -> char {
    let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
    let letter = match section.map(|section| section.kind()) {
        Some(SectionKind::Text) => 't',
        Some(SectionKind::UninitializedData) => 'b',
        Some(SectionKind::ReadOnlyData | SectionKind::ReadOnlyString) => 'r',
        Some(_) => 'd',
        None => 'a',
    };
    if symbol.is_weak() {
        return if letter == 't' { 'W' } else { 'V' };
    }
    if symbol.is_global() { letter.to_ascii_uppercase() } else { letter }
}
