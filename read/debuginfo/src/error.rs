//! Errors of reading a file.

use thiserror::Error;

/// The reason debug information could not be read. Every message names the next step where that is known.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes do not start like an ELF file.
    #[error(
        "not an ELF file (it starts with {starts_with}); give a compiled program, library or object file"
    )]
    NotElf {
        /// The first bytes in hexadecimal, or a remark when there are none.
        starts_with: String,
    },
    /// A file of another known format.
    #[error("{format}, not an ELF file; {advice}")]
    OtherFormat {
        /// The format, with its article.
        format: &'static str,
        /// The next step.
        advice: &'static str,
    },
    /// An ELF file for a machine that is not read.
    #[error(
        "an ELF file for {machine}; Lineup reads little-endian x86-64, i386, 32-bit and 64-bit Arm, 64-bit RISC-V"
    )]
    UnsupportedMachine {
        /// The machine in the header.
        machine: String,
    },
    /// The file's own structure contradicts itself.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// The damaged part of the file.
        what: &'static str,
        /// The damage.
        why: String,
    },
    /// Nothing in the file describes types.
    #[error(
        "no debug information (no .debug_info and no .BTF section{hint}); compile with -g, do not strip, \
         or install the package with its debug symbols"
    )]
    NoDebugInfo {
        /// The file's own note on the place of its debug information, or nothing.
        hint: String,
    },
    /// The bytes do not start like BTF.
    #[error("not BTF: the magic number 0xeb9f is missing")]
    NotBtf,
    /// A BTF image of another byte order or version.
    #[error("unsupported BTF: {why}")]
    UnsupportedBtf {
        /// The unsupported feature.
        why: String,
    },
    /// Split BTF without the base that it refers to.
    #[error("split BTF: it refers to types of a base that was not given; give the base with --base")]
    BtfBaseNeeded,
}

impl Error {
    pub(crate) fn damaged(what: &'static str, why: impl ToString) -> Self {
        Error::Damaged { what, why: why.to_string() }
    }
}

impl From<gimli::Error> for Error {
    fn from(error: gimli::Error) -> Self {
        Error::damaged("DWARF", error)
    }
}
