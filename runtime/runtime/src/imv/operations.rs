//! Sets and queries of immediate values.

use super::lock::with_registry;
use super::patch::Mode;
use super::status::{Applied, Error, ListedVariable, Status};
use super::value::{Imv, Value};
use super::write::WritePath;

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

impl<T: Value> Imv<T> {
    /// Sets the value: when this returns, every read that starts later, on any thread, sees it. Allocates nothing and
    /// may be called in a signal handler, also in one that interrupts a set.
    ///
    /// # Errors
    ///
    /// As [`Batch::apply`].
    pub fn set(&'static self, value: T) -> Result<Applied, Error> {
        set_one(self.address(), size_of::<T>() as u8, value.to_bits64())
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
