//! A kernel's symbols and types: from its debug file, its image, or a guest.

use crate::terminal::output;
use anyhow::{Context, Result, bail};
use lineup_debuginfo::btf::{self, Btf};
use lineup_debuginfo::{Bytes, DebugInfo};
use lineup_kernel::{KernelImage, KernelSymbols, image, kallsyms};
use lineup_model::program::{Symbol, SymbolKind};
use lineup_model::types::Types;
use lineup_study::companions::{self, DiskCompanions};
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::{Path, PathBuf};

/// The source of symbols.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SymbolSource {
    /// The debug file's symbol table.
    DebugFile,
    /// The table in the image.
    Image,
    /// A guest's list.
    Guest,
}

impl fmt::Display for SymbolSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SymbolSource::DebugFile => "debug file",
            SymbolSource::Image => "kallsyms in the image",
            SymbolSource::Guest => "kallsyms of the guest",
        })
    }
}

/// A debug file that belongs to an image.
pub(crate) struct DebugFile {
    path: PathBuf,
    bytes: Bytes,
}

impl DebugFile {
    /// Opens a debug file and holds its build id against the image's.
    pub(crate) fn open(path: &Path, kernel: &KernelImage) -> Result<DebugFile> {
        let bytes = companions::read(path)?;
        let theirs = image::build_id(&bytes).with_context(|| path.display().to_string())?;
        match (&theirs, &kernel.build_id) {
            (Some(theirs), Some(ours)) if theirs == ours => Ok(DebugFile { path: path.into(), bytes }),
            (Some(theirs), Some(ours)) => bail!(
                "{} is not the debug file of this image: its build id is {}, the image's {}; install the debug package \
                 of {}",
                path.display(),
                hex(theirs),
                hex(ours),
                kernel.release()
            ),
            (None, _) => {
                bail!("{} has no build id, so it cannot be matched with the image", path.display())
            }
            (_, None) => bail!("the image has no build id, so no debug file can be matched with it"),
        }
    }
}

/// The symbols: of the debug file if there is one, else of the image, else of a guest that `list` boots. The latter two
/// are kept under the hash of the image.
pub(crate) fn symbols(
    kernel: &KernelImage,
    debug: Option<&DebugFile>,
    list: &mut dyn FnMut() -> Result<Vec<String>>,
) -> Result<(KernelSymbols, SymbolSource)> {
    if let Some(debug) = debug {
        let symbols = kallsyms::from_debug_file(&debug.bytes);
        let symbols = symbols.with_context(|| debug.path.display().to_string())?;
        return Ok((symbols, SymbolSource::DebugFile));
    }
    let cached = cache_file(kernel);
    if let Some((symbols, source)) = cached.as_deref().and_then(read_cached) {
        return Ok((symbols, source));
    }
    let (symbols, source) = match kallsyms::decode(kernel) {
        Ok(symbols) => (symbols, SymbolSource::Image),
        Err(_) => (kallsyms::parse_proc_kallsyms(&list()?.join("\n"))?.checked()?, SymbolSource::Guest),
    };
    // Without a cache the next run works again, only later.
    let _ = cached.map(|path| write_cached(&path, &symbols, source));
    Ok((symbols, source))
}

/// The kernel in a file as distributions ship it; `None` for an ELF file, which holds more information itself.
pub(crate) fn distributed(bytes: &[u8]) -> Result<Option<KernelImage>> {
    match bytes.starts_with(b"\x7fELF") {
        true => Ok(None),
        false => Ok(Some(KernelImage::parse(bytes)?)),
    }
}

/// The symbols of an image without its debug file, and without a guest; `otherwise` is the remedy if there are none.
pub(crate) fn own_symbols(kernel: &KernelImage, otherwise: &str) -> Result<KernelSymbols> {
    let mut list = || bail!("the image has no table of its symbols; {otherwise}");
    Ok(symbols(kernel, None, &mut list)?.0)
}

/// The image's own information: its table of symbols and its BTF.
pub(crate) fn own_info(kernel: KernelImage) -> Result<DebugInfo> {
    let symbols = own_symbols(&kernel, "record with --debug and its debug file")?;
    let described = symbols.all().iter().map(|symbol| Symbol {
        name: symbol.name.clone(),
        address: symbol.address,
        size_bytes: symbols.range_of(symbol).end - symbol.address,
        kind: if symbol.is_code() { SymbolKind::Function } else { SymbolKind::Data },
        is_global: symbol.kind.is_ascii_uppercase(),
    });
    let types = own_types(&kernel)?;
    let Some(file) = kernel.into_elf(&symbols) else {
        bail!("nothing says where this image runs; give its debug file")
    };
    Ok(DebugInfo::with_btf(file, described.collect(), types)?)
}

/// The types that an image itself describes.
pub(crate) fn own_types(kernel: &KernelImage) -> Result<Btf> {
    btf::parse(lineup_kernel::btf::find(kernel)?, None).context("the image's BTF")
}

/// Types from debug information.
pub(crate) enum KernelTypes {
    /// DWARF of the debug file.
    Dwarf(Box<DebugInfo>),
    /// BTF of the image.
    Btf(Btf),
}

impl KernelTypes {
    /// All types.
    pub(crate) fn types(&self) -> &Types {
        match self {
            KernelTypes::Dwarf(debug) => debug.types(),
            KernelTypes::Btf(btf) => &btf.types,
        }
    }

    /// The source of the types.
    pub(crate) fn source(&self) -> &'static str {
        match self {
            KernelTypes::Dwarf(_) => "DWARF of the debug file",
            KernelTypes::Btf(_) => "BTF of the image",
        }
    }
}

/// The types: DWARF if a debug file is given, else the image's BTF.
pub(crate) fn types(kernel: &KernelImage, debug: Option<&DebugFile>) -> Result<KernelTypes> {
    if let Some(debug) = debug {
        let info = DebugInfo::parse(debug.bytes.clone(), &mut DiskCompanions::of(&debug.path));
        let info = info.with_context(|| debug.path.display().to_string())?;
        return Ok(KernelTypes::Dwarf(Box::new(info)));
    }
    Ok(KernelTypes::Btf(own_types(kernel)?))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The version is part of the name: another decoder has another cache.
fn cache_file(kernel: &KernelImage) -> Option<PathBuf> {
    let hash = hex(&Sha256::digest(&kernel.vmlinux));
    let folder = lineup_bundle::cache_folder().ok()?;
    Some(folder.join(format!("kallsyms-{}-{hash}", env!("CARGO_PKG_VERSION"))))
}

/// Reads the cached symbols: the first line is the source; the others are as in `/proc/kallsyms`. An unreadable file is
/// made anew.
fn read_cached(path: &Path) -> Option<(KernelSymbols, SymbolSource)> {
    let text = std::fs::read_to_string(path).ok()?;
    let (first, list) = text.split_once('\n')?;
    let source =
        [SymbolSource::Image, SymbolSource::Guest].into_iter().find(|source| source.to_string() == first)?;
    let symbols = kallsyms::parse_proc_kallsyms(list.strip_suffix("end\n")?).ok()?;
    // A list that an earlier version misread is made anew.
    Some((symbols.checked().ok()?, source))
}

fn write_cached(path: &Path, symbols: &KernelSymbols, source: SymbolSource) -> Result<()> {
    let mut text = format!("{source}\n");
    for symbol in symbols.all() {
        text += &format!("{:016x} {} {}\n", symbol.address, symbol.kind, symbol.name);
    }
    text += "end\n";
    output::write_kept(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_kernel::KernelSymbol;

    #[test]
    fn what_is_cached_comes_back_and_a_torn_file_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lineup/list");
        let symbol = KernelSymbol { address: 0xffff_ffff_8100_0000, kind: 'T', name: "start_kernel".into() };
        let symbols = KernelSymbols::new(vec![symbol]);
        write_cached(&path, &symbols, SymbolSource::Image).unwrap();
        assert_eq!(read_cached(&path), Some((symbols, SymbolSource::Image)));
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 4]).unwrap();
        assert_eq!(read_cached(&path), None);
    }
}
