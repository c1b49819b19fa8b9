//! The symbols of a kernel, to be looked up.

use crate::error::Error;
use crate::symbol::KernelSymbol;
use std::collections::HashMap;
use std::ops::Range;

/// All symbols of a kernel, sorted by address, kind and name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelSymbols {
    symbols: Vec<KernelSymbol>,
    /// Places in `symbols`, by name.
    names: HashMap<String, Vec<usize>>,
}

impl KernelSymbols {
    /// From symbols in any order.
    pub fn new(mut symbols: Vec<KernelSymbol>) -> KernelSymbols {
        // Stable: of several names at one address the kernel's own order decides.
        symbols.sort_by_key(|symbol| symbol.address);
        let mut names: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, symbol) in symbols.iter().enumerate() {
            names.entry(symbol.name.clone()).or_default().push(place);
        }
        KernelSymbols { symbols, names }
    }

    /// All of them, by address.
    pub fn all(&self) -> &[KernelSymbol] {
        &self.symbols
    }

    /// The number of symbols.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Holds the list against what every kernel has.
    ///
    /// # Errors
    ///
    /// When the function `start_kernel` is not among the symbols: they were not read, or are of something else.
    pub fn checked(self) -> Result<KernelSymbols, Error> {
        let has_entry = self.named(ENTRY).any(|symbol| is_entry(symbol.kind, &symbol.name));
        match has_entry {
            true => Ok(self),
            false => Err(Error::ImplausibleSymbols { symbols: self.len() }),
        }
    }

    /// True when there is no symbol.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Every symbol of a name; static functions may share one.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &KernelSymbol> {
        self.names.get(name).into_iter().flatten().map(|place| &self.symbols[*place])
    }

    /// The function that holds a code address, and its addresses up to the next symbol.
    pub fn function_at(&self, address: u64) -> Option<(&KernelSymbol, Range<u64>)> {
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        let start = self.symbols.get(after.checked_sub(1)?)?.address;
        let end = self.symbols.get(after).map_or(start, |next| next.address);
        let first = self.symbols.partition_point(|symbol| symbol.address < start);
        let function = self.symbols[first..after].iter().find(|symbol| symbol.is_code())?;
        (address < end).then_some((function, start..end))
    }

    /// The addresses of a symbol up to the next one with another address.
    pub fn range_of(&self, symbol: &KernelSymbol) -> Range<u64> {
        let after = self.symbols.partition_point(|other| other.address <= symbol.address);
        symbol.address..self.symbols.get(after).map_or(symbol.address, |next| next.address)
    }
}

/// The function that every kernel has, and every list of its symbols.
const ENTRY: &str = "start_kernel";

/// Whether a symbol is that function.
pub(super) fn is_entry(kind: char, name: &str) -> bool {
    name == ENTRY && matches!(kind, 't' | 'T')
}
