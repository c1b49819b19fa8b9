//! The table in a kernel's image, decoded.

use super::kernel_symbols::KernelSymbols;
use super::{address, table};
use crate::error::Error;
use crate::image::KernelImage;
use crate::symbol::KernelSymbol;
use lineup_model::abi::Machine;

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
