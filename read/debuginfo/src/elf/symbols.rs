//! Symbol tables.

use lineup_model::abi::Machine;
use lineup_model::program::{Symbol, SymbolKind};
use object::{Object, ObjectSymbol};

/// The kind of bytes after a mapping symbol (`$a`, `$t`, `$d`, `$x` of the Arm ABIs).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Mapping {
    /// A32 instructions (`$a`).
    A32,
    /// Thumb instructions (`$t`).
    Thumb,
    /// A64 instructions (`$x`).
    A64,
    /// Data among the code (`$d`).
    Data,
}

/// A place where the kind of bytes changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MappingSymbol {
    /// Link address from which it holds.
    pub address: u64,
    /// The kind of the bytes.
    pub mapping: Mapping,
}

/// The contents of the symbol tables.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// Sorted by address and without repetition.
    pub(crate) all: Vec<Symbol>,
    /// By address.
    pub(crate) mapping: Vec<MappingSymbol>,
}

/// The symbols of both tables.
pub(super) fn read<'data>(elf: &impl Object<'data>, bases: &[u64], machine: Machine) -> Symbols {
    let mut symbols = Vec::new();
    let mut mapping = Vec::new();
    for entry in elf.symbols().chain(elf.dynamic_symbols()) {
        let name = entry.name_bytes().unwrap_or_default();
        if name.is_empty() || entry.is_undefined() {
            continue;
        }
        let base = entry.section_index().and_then(|index| bases.get(index.0)).copied().unwrap_or(0);
        let address = entry.address().wrapping_add(base);
        if let Some(kind) = mapping_kind(name, machine) {
            mapping.push(MappingSymbol { address, mapping: kind });
            continue;
        }
        let kind = match entry.kind() {
            object::SymbolKind::Text => SymbolKind::Function,
            object::SymbolKind::Data => SymbolKind::Data,
            object::SymbolKind::Tls => SymbolKind::ThreadLocal,
            object::SymbolKind::Section | object::SymbolKind::File => continue,
            _ => SymbolKind::Other,
        };
        let is_thumb = machine == Machine::Arm && kind == SymbolKind::Function;
        symbols.push(Symbol {
            name: String::from_utf8_lossy(name).into_owned(),
            address: if is_thumb { address & !1 } else { address },
            size_bytes: entry.size(),
            kind,
            is_global: entry.is_global(),
        });
    }
    tidy(&mut symbols);
    mapping.sort_unstable();
    mapping.dedup();
    Symbols { all: symbols, mapping }
}

/// Sorts by address, functions and data before the rest, and drops repetitions.
pub(crate) fn tidy(symbols: &mut Vec<Symbol>) {
    symbols.sort_by(|a, b| {
        (a.address, a.kind, std::cmp::Reverse(a.is_global), &a.name).cmp(&(
            b.address,
            b.kind,
            std::cmp::Reverse(b.is_global),
            &b.name,
        ))
    });
    symbols.dedup_by(|a, b| a.address == b.address && a.name == b.name && a.kind == b.kind);
}

fn mapping_kind(name: &[u8], machine: Machine) -> Option<Mapping> {
    let (kind, rest) = match name {
        [b'$', kind, rest @ ..] => (kind, rest),
        _ => return None,
    };
    if !(rest.is_empty() || rest.starts_with(b".")) {
        return None;
    }
    match (machine, kind) {
        (Machine::Arm, b'a') => Some(Mapping::A32),
        (Machine::Arm, b't') => Some(Mapping::Thumb),
        (Machine::AArch64, b'x') => Some(Mapping::A64),
        (Machine::Arm | Machine::AArch64, b'd') => Some(Mapping::Data),
        _ => None,
    }
}
