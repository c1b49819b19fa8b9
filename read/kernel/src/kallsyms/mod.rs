//! The kernel's own table of symbols, from its image or from a guest.

mod address;
mod place;
mod table;

use crate::error::Error;
use crate::image::KernelImage;
use crate::symbol::KernelSymbol;
use lineup_model::abi::Machine;
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
fn is_entry(kind: char, name: &str) -> bool {
    name == ENTRY && matches!(kind, 't' | 'T')
}

/// Decodes the table in an unpacked kernel.
///
/// # Errors
///
/// When the kernel was built without one, or its form is not known.
pub fn decode(image: &KernelImage) -> Result<KernelSymbols, Error> {
    decode_bytes(&image.vmlinux, image.machine)
}

/// Decodes the table among the bytes of an unpacked kernel for a machine.
///
/// # Errors
///
/// When there is no table, or its form is not known.
pub fn decode_bytes(vmlinux: &[u8], machine: Machine) -> Result<KernelSymbols, Error> {
    let word_bytes = usize::from(machine.description().pointer_bytes);
    let refuse = |why: &str| Error::NoKallsyms { why: why.into() };
    let tokens = table::Tokens::find(vmlinux).ok_or_else(|| refuse("its table of tokens was not found"))?;
    let names = table::Names::find(vmlinux, &tokens, word_bytes)
        .ok_or_else(|| refuse("its names were not found before the table of tokens"))?;
    let addresses = address::find(vmlinux, &tokens, &names, word_bytes)
        .ok_or_else(|| refuse("the addresses of its names were not found"))?;
    let symbols = names.texts.into_iter().zip(addresses);
    Ok(KernelSymbols::new(
        symbols.map(|((kind, name), address)| KernelSymbol { address, kind, name }).collect(),
    ))
}

/// The symbols of a debug file, a `vmlinux` with its symbol table.
///
/// # Errors
///
/// When the bytes are no ELF file, or one without symbols.
pub fn from_debug_file(vmlinux: &[u8]) -> Result<KernelSymbols, Error> {
    let symbols = crate::image::elf::symbols(vmlinux)?;
    match symbols.is_empty() {
        true => Err(Error::Elf { what: "the debug file".into(), why: "it has no symbols".into() }),
        false => Ok(KernelSymbols::new(symbols)),
    }
}

/// Reads a guest's `/proc/kallsyms`, without the symbols of modules.
///
/// # Errors
///
/// On a line of another form, and when the guest hides its addresses.
pub fn parse_proc_kallsyms(text: &str) -> Result<KernelSymbols, Error> {
    let mut symbols = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() || line.ends_with(']') {
            continue;
        }
        let symbol =
            proc_line(line).ok_or_else(|| Error::ProcKallsyms { line: number + 1, text: line.into() })?;
        symbols.push(symbol);
    }
    if !symbols.is_empty() && symbols.iter().all(|symbol| symbol.address == 0) {
        return Err(Error::HiddenAddresses);
    }
    Ok(KernelSymbols::new(symbols))
}

/// "ffffffff81000000 T _text".
fn proc_line(line: &str) -> Option<KernelSymbol> {
    let mut words = line.split(' ');
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let mut letters = kind.chars();
    let (kind, None) = (letters.next()?, letters.next()) else { return None };
    let is_whole = words.next().is_none() && !name.is_empty();
    let address = u64::from_str_radix(address, 16).ok()?;
    is_whole.then(|| KernelSymbol { address, kind, name: name.into() })
}

#[cfg(test)]
mod tests;
