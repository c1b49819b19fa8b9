//! The libclang that is installed.

use crate::error::Error;
use crate::headers::missing_package;
use crate::libclang::Library;

/// The libclang that is installed.
#[derive(Clone, Debug)]
pub struct Libclang {
    /// Its version text, such as `Debian clang version 14.0.6`.
    pub version: String,
    /// The library.
    pub file: std::path::PathBuf,
    /// Debian's package with its own headers, when they are missing.
    pub missing_headers: Option<String>,
}

/// Finds the libclang that sources are read with.
///
/// # Errors
/// When libclang is not installed.
pub fn installed_libclang() -> Result<Libclang, Error> {
    let library = Library::load()?;
    Ok(Libclang {
        version: library.version(),
        file: library.path().to_owned(),
        missing_headers: missing_package(&library),
    })
}
