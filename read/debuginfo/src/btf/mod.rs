//! BTF: the kernel's compact type information.
//!
//! The format: Linux, `Documentation/bpf/btf.rst`. The counts and kinds use the wider fields (24 and 7
//! bits) of 2026, which older images leave zero; an image that describes the shape of its kinds may
//! hold kinds that are not known here, which become [`lineup_model::types::TypeKind::Opaque`].

mod image;
mod needs;
mod reader;
mod words;

pub use reader::{
    Btf, BtfFunction, BtfParameter, BtfVariable, is_btf, of_elf, parse, parse_named_types, parse_types,
};

#[cfg(test)]
mod tests;
