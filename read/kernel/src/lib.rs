//! Kernels as they are distributed, and the guest they are booted in: bytes in, values out.
//!
//! Design constraints:
//!
//! * No I/O: no file is opened, no process started. The caller brings bytes and answers questions for more.
//! * Images are hostile until proven otherwise: nothing panics on them, and unpacking is bounded.
//! * The same input gives the same output to the byte: an initramfs holds no times, a command line no names of the day.

pub mod btf;
mod compression;
mod configuration;
pub mod entry_points;
mod error;
pub mod flag_saves;
pub mod guest;
pub mod image;
pub mod initramfs;
pub mod kallsyms;
pub mod machine;
pub mod modules;
pub mod region_sets;
mod scan;
mod symbol;

pub use configuration::Configuration;
pub use error::Error;
pub use image::{Compression, Container, KernelImage};
pub use kallsyms::KernelSymbols;
pub use symbol::KernelSymbol;
