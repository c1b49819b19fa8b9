//! Immediate values: variables that live in the instruction stream of the code that reads them.
//!
//! A read is one instruction that carries the value; a set changes every such instruction while threads run. The
//! crate's user guide lists the operations that may run concurrently.
//!
//! ```
//! use lineup_runtime::{define_imv, imv, imv_cond, imv_read};
//!
//! define_imv! {
//!     static LIMIT: u64 = 10;
//!     static VERBOSE: bool = false;
//! }
//!
//! fn main() -> Result<(), imv::Error> {
//!     assert_eq!(imv_read!(LIMIT), 10);
//!     assert!(!imv_cond!(VERBOSE));
//!     imv::Batch::new().with(&LIMIT, 20).with(&VERBOSE, true).apply()?;
//!     assert_eq!(imv_read!(LIMIT), 20);
//!     assert!(imv_cond!(VERBOSE));
//!     Ok(())
//! }
//! ```

mod arch;
mod barrier;
pub mod c_api;
mod cell;
mod lock;
mod macros;
mod pass_on;
mod patch;
mod record;
mod registry;
mod serve;
mod trap;
mod trial;
mod value;
mod write;

pub use patch::Mode;
pub use serve::serve;
pub use value::{Class, Imv, Value};
#[doc(hidden)]
pub use value::{from_register, size_of_value};
pub use write::WritePath;

use lock::with_registry;

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

/// A variable as [`list`] shows it.
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

/// Several changes made together, for the price of one barrier.
#[derive(Default, Debug)]
pub struct Batch(Vec<(usize, u8, u64)>);

impl Batch {
    /// No change.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a change.
    #[must_use]
    pub fn with<T: Value>(mut self, variable: &'static Imv<T>, value: T) -> Self {
        self.0.push((variable.address(), size_of::<T>() as u8, value.to_bits64()));
        self
    }

    /// Makes the changes. When it returns, every read that starts later, on any thread, sees all of them; reads
    /// during the call may see any mixture of old and new variables, never a mixture of old and new bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Stuck`] when code patched earlier cannot be written any more.
    pub fn apply(self) -> Result<Applied, Error> {
        with_registry(|registry| registry.set(self.0.iter().copied()))
    }
}

/// Every named variable of the images registered, by name.
pub fn list() -> Vec<ListedVariable> {
    with_registry(|registry| registry.entries())
}

/// The variable named `name`.
///
/// # Errors
///
/// [`Error::Unknown`], [`Error::Ambiguous`].
pub fn get(name: &str) -> Result<ListedVariable, Error> {
    let mut found: Vec<ListedVariable> = list().into_iter().filter(|entry| entry.name == name).collect();
    match (found.pop(), found.len()) {
        (Some(entry), 0) => Ok(entry),
        (None, _) => Err(Error::Unknown { name: name.to_owned() }),
        (Some(_), others) => Err(Error::Ambiguous { name: name.to_owned(), count: others + 1 }),
    }
}

/// Sets the variable named `name` to a value written as text.
///
/// # Errors
///
/// As [`get`] and [`Batch::apply`], and [`Error::Malformed`].
pub fn set_text(name: &str, text: &str) -> Result<Applied, Error> {
    let entry = get(name)?;
    let bits = entry.class.parse(text, entry.size_bytes).ok_or_else(|| Error::Malformed {
        name: name.to_owned(),
        text: text.to_owned(),
        class: entry.class,
        size_bytes: entry.size_bytes,
    })?;
    set_one(entry.address, entry.size_bytes, bits)
}

fn set_one(address: usize, size_bytes: u8, bits: u64) -> Result<Applied, Error> {
    with_registry(|registry| registry.set(std::iter::once((address, size_bytes, bits))))
}

/// The state of immediate values in this process.
pub fn status() -> Status {
    with_registry(|registry| registry.status())
}

/// Chooses the protocol for later changes. [`Mode::Direct`] is the default.
pub fn set_mode(mode: Mode) {
    with_registry(|registry| registry.set_mode(mode));
}

/// Tries `path` on a site of the runtime's own and uses it if it works; otherwise falls back, as [`status`] shows.
pub fn set_write_path(path: WritePath) {
    with_registry(|registry| registry.choose_writer(Some(path)));
}
