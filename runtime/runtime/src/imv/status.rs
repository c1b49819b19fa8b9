//! The results of sets, and the state of immediate values.

use super::patch::Mode;
use super::value::Class;
use super::write::WritePath;

/// The result of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Applied {
    /// Instructions that now carry the value.
    pub patched_sites: usize,
    /// Sites that read the ordinary variable, which holds the value too.
    pub plain_sites: usize,
}

/// The reason a set failed. The ordinary variables hold the new values in every case.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Code that was patched before cannot be changed any more.
    #[error(
        "immediate values: the system no longer allows writing to code; patched sites keep their old values. \
         Lift the restriction (a seccomp filter or a mount of /proc set up after start?) and set again"
    )]
    Stuck {
        /// The system's error.
        source: Option<std::io::Error>,
    },
    /// No variable has this name.
    #[error("no immediate value is named {name:?}; `list` shows those there are")]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// Several variables have this name.
    #[error("{count} immediate values are named {name:?}; give one of them another name")]
    Ambiguous {
        /// The name asked for.
        name: String,
        /// The number of variables with the name.
        count: usize,
    },
    /// The text is no value of the variable's type.
    #[error("{text:?} is no value for {name} ({class:?}, {size_bytes} bytes)")]
    Malformed {
        /// The variable.
        name: String,
        /// The text.
        text: String,
        /// The kind of number it holds.
        class: Class,
        /// Its size.
        size_bytes: u8,
    },
}

/// The reason values are read from ordinary variables instead of the instruction stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fallback {
    /// No way to write has been tried yet.
    NotTried,
    /// This machine has no encoding.
    Architecture,
    /// The system has no barrier that makes other cores refetch their instructions.
    Barrier,
    /// The system forbids every way to write to code, or written code is not the code that is executed.
    Write,
}

impl std::fmt::Display for Fallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotTried => "not tried yet",
            Self::Architecture => "no encoding for this architecture",
            Self::Barrier => {
                "membarrier SYNC_CORE is refused (needs Linux 4.16 and a seccomp filter that allows it)"
            }
            Self::Write => "every way to write to code is refused or has no effect",
        })
    }
}

/// The state of immediate values in this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// The way code is changed.
    pub mode: Mode,
    /// The way code is written, or the reason it is not.
    pub writing: Result<WritePath, Fallback>,
    /// Images registered.
    pub images: usize,
    /// Sites that carry their value.
    pub patched_sites: usize,
    /// Sites that read the ordinary variable.
    pub plain_sites: usize,
    /// Times a thread met a trap instruction and was given the new value.
    pub traps_taken: usize,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.writing {
            Ok(path) => write!(f, "patching through {path:?}, mode {:?}", self.mode)?,
            Err(why) => write!(f, "reading ordinary variables: {why}")?,
        }
        write!(
            f,
            "; {} sites patched, {} plain, in {} images",
            self.patched_sites, self.plain_sites, self.images
        )
    }
}

/// A variable as [`list`](super::list) shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedVariable {
    /// Its name: as written in C, with its module path in Rust.
    pub name: String,
    /// The kind of number it holds.
    pub class: Class,
    /// Its size in bytes: 1, 2, 4 or 8.
    pub size_bytes: u8,
    /// Its value, as the low bits of a word.
    pub bits: u64,
    /// Instructions that carry it.
    pub patched_sites: usize,
    /// Sites that read the ordinary variable.
    pub plain_sites: usize,
    /// The number of sites that are branches.
    pub branches: usize,
    /// Address of the ordinary variable.
    pub address: usize,
}
