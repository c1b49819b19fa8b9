//! The code that an entry covers, a unit's language, and its compiler.

use super::{Dwarf, DwarfEntry, Unit, Value};
use gimli::{DwLang, constants as dw};
use lineup_model::types::Language;
use std::ops::Range;

/// The code ranges of an entry, the one with the entry point first.
pub(crate) fn ranges<'a>(dwarf: &Dwarf<'a>, unit: &Unit<'a>, entry: &DwarfEntry<'a>) -> Vec<Range<u64>> {
    let address = |name| match entry.attr_value(name) {
        Some(value @ (Value::Addr(_) | Value::DebugAddrIndex(_))) => {
            dwarf.attr_address(unit, value).ok().flatten()
        }
        _ => None,
    };
    let mut found = Vec::new();
    if let Some(low) = address(dw::DW_AT_low_pc)
        && let Some(high) = entry.attr_value(dw::DW_AT_high_pc)
    {
        let end = match high {
            Value::Addr(_) | Value::DebugAddrIndex(_) => address(dw::DW_AT_high_pc),
            _ => super::constant(high).and_then(|size| low.checked_add(size)),
        };
        found.extend(end.map(|end| low..end));
    } else if let Some(value) = entry.attr_value(dw::DW_AT_ranges)
        && let Ok(Some(mut list)) = dwarf.attr_ranges(unit, value)
    {
        while let Ok(Some(range)) = list.next() {
            found.push(range.begin..range.end);
        }
    }
    // The linker sets the addresses of code that it drops to 0.
    found.retain(|range| range.start < range.end && range.start != 0);
    let entry_point = address(dw::DW_AT_entry_pc);
    if let Some(at) = entry_point.and_then(|pc| found.iter().position(|range| range.contains(&pc))) {
        found.swap(0, at);
    }
    found
}

// Languages that gimli 0.34 has no names for: https://dwarfstd.org/languages.html.
const DW_LANG_C_PLUS_PLUS_23: DwLang = DwLang(0x3a);
const DW_LANG_C23: DwLang = DwLang(0x3e);
const DW_LANG_FORTRAN23: DwLang = DwLang(0x3f);

/// The language that a unit names; units of shared types name none.
pub(crate) fn own_language(unit: &Unit<'_>) -> Option<DwLang> {
    let mut entries = unit.entries();
    match entries.next_dfs().ok()??.attr_value(dw::DW_AT_language)? {
        Value::Language(language) => Some(language),
        _ => None,
    }
}

/// The first index of an array whose entry gives none: 0 in C's family, 1 in that of Fortran, Ada and Pascal.
pub(crate) fn default_lower_bound(unit: &Unit<'_>) -> i64 {
    match own_language(unit) {
        Some(dw::DW_LANG_Fortran18 | DW_LANG_FORTRAN23 | dw::DW_LANG_Ada2005 | dw::DW_LANG_Ada2012) => 1,
        Some(language) => language.default_lower_bound().unwrap_or(0) as i64,
        None => 0,
    }
}

/// True where a module of the language is a scope for names.
pub(crate) fn has_modules(unit: &Unit<'_>) -> bool {
    matches!(
        own_language(unit),
        Some(
            dw::DW_LANG_Fortran77
                | dw::DW_LANG_Fortran90
                | dw::DW_LANG_Fortran95
                | dw::DW_LANG_Fortran03
                | dw::DW_LANG_Fortran08
                | dw::DW_LANG_Fortran18
                | DW_LANG_FORTRAN23
                | dw::DW_LANG_D
                | dw::DW_LANG_Modula2
                | dw::DW_LANG_Modula3
        )
    )
}

/// False for Ada: its compilers write whole names, and put a type into the first one that uses it.
pub(crate) fn has_inner_types(unit: &Unit<'_>) -> bool {
    !matches!(
        own_language(unit),
        Some(dw::DW_LANG_Ada83 | dw::DW_LANG_Ada95 | dw::DW_LANG_Ada2005 | dw::DW_LANG_Ada2012)
    )
}

/// The language of a unit.
pub(crate) fn language(unit: &Unit<'_>) -> Language {
    match own_language(unit) {
        Some(language) => match language {
            dw::DW_LANG_C89
            | dw::DW_LANG_C
            | dw::DW_LANG_C99
            | dw::DW_LANG_C11
            | dw::DW_LANG_C17
            | DW_LANG_C23 => Language::C,
            dw::DW_LANG_C_plus_plus
            | dw::DW_LANG_C_plus_plus_03
            | dw::DW_LANG_C_plus_plus_11
            | dw::DW_LANG_C_plus_plus_14
            | dw::DW_LANG_C_plus_plus_17
            | dw::DW_LANG_C_plus_plus_20
            | DW_LANG_C_PLUS_PLUS_23 => Language::Cpp,
            dw::DW_LANG_Rust => Language::Rust,
            dw::DW_LANG_Mips_Assembler => Language::Assembly,
            _ => Language::Other,
        },
        _ => Language::Other,
    }
}

/// The compiler of a unit, by its own name.
pub(crate) fn compiler(dwarf: &Dwarf<'_>, unit: &Unit<'_>) -> Option<String> {
    let mut entries = unit.entries();
    let value = entries.next_dfs().ok()??.attr_value(dw::DW_AT_producer)?;
    Some(super::text(dwarf.attr_string(unit, value).ok()?.slice()))
}

/// True when Clang, or a compiler based on it, compiled a unit.
pub(crate) fn is_by_clang(dwarf: &Dwarf<'_>, unit: &Unit<'_>) -> bool {
    compiler(dwarf, unit).is_some_and(|name| name.contains("clang"))
}
