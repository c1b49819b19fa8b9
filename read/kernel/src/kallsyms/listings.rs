//! Symbols from a debug file, and from a running guest.

use super::kernel_symbols::KernelSymbols;
use crate::error::Error;
use crate::symbol::KernelSymbol;

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
