//! The names that BOLT gives to the functions of a file.
//!
//! A global symbol has its own name. Local symbols of one name are numbered by their addresses, from 1: `step/1`,
//! `step/2`. Data takes part in the numbering.

use lineup_model::program::{Symbol, SymbolKind};
use std::collections::{BTreeMap, HashMap};

/// A name for every address at which a function begins. `symbols` are sorted by address.
pub(crate) fn bolt_names(symbols: &[Symbol]) -> BTreeMap<u64, String> {
    let mut numbers: HashMap<&str, u64> = HashMap::new();
    let mut names: BTreeMap<u64, String> = BTreeMap::new();
    for symbol in symbols.iter().filter(|symbol| symbol.address != 0) {
        let name = if symbol.is_global {
            symbol.name.clone()
        } else {
            let number = numbers.entry(&symbol.name).or_default();
            *number += 1;
            format!("{}/{number}", symbol.name)
        };
        if symbol.kind == SymbolKind::Function {
            names.entry(symbol.address).or_insert(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str, address: u64, kind: SymbolKind, is_global: bool) -> Symbol {
        Symbol { name: name.to_owned(), address, size_bytes: 8, kind, is_global }
    }

    #[test]
    fn local_symbols_of_one_name_are_numbered_by_address_data_included() {
        let symbols = [
            symbol("start", 0, SymbolKind::Function, false),
            symbol("step", 0x10, SymbolKind::Function, false),
            symbol("step", 0x20, SymbolKind::Data, false),
            symbol("step", 0x30, SymbolKind::Function, false),
            symbol("step", 0x40, SymbolKind::Function, true),
        ];
        let names = bolt_names(&symbols);
        let names: Vec<_> = names.iter().map(|(address, name)| (*address, name.as_str())).collect();
        assert_eq!(names, [(0x10, "step/1"), (0x30, "step/3"), (0x40, "step")]);
    }
}
