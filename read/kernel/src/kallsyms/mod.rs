//! The kernel's own table of symbols, from its image or from a guest.

mod address;
mod decoder;
mod kernel_symbols;
mod listings;
mod place;
mod table;

pub use decoder::{decode, decode_bytes};
pub use kernel_symbols::KernelSymbols;
pub use listings::{from_debug_file, parse_proc_kallsyms};

#[cfg(test)]
mod tests;
