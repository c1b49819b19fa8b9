//! Errors that end a check.

use std::path::PathBuf;

/// An error: where, and both sides of a difference.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("cannot read or write {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what its name promises.
    #[error("{unit}: {what}")]
    Unreadable {
        /// The unit or file.
        unit: String,
        /// The fault.
        what: String,
    },
    /// The map does not say what the debug information says.
    #[error("{unit}: the map is wrong for {record}: {what}")]
    Map {
        /// The unit.
        unit: String,
        /// The type.
        record: String,
        /// The difference.
        what: String,
    },
    /// Two statements or two pieces of data differ and the map does not explain it.
    #[error("{unit}: {function} differs at {place}:\n  before: {before}\n  after:  {after}")]
    Differs {
        /// The unit.
        unit: String,
        /// The function or object.
        function: String,
        /// The place in the source.
        place: String,
        /// The statement before the change.
        before: String,
        /// The statement after it.
        after: String,
    },
    /// A file beside the certificate is another than the one it names.
    #[error("{} is not the file that the certificate names: its SHA-256 is {found}", path.display())]
    Hash {
        /// The file.
        path: PathBuf,
        /// Its hash.
        found: String,
    },
    /// The certificate says something else than what was found again.
    #[error("the certificate says `{said}`, but the check finds `{found}`")]
    Certificate {
        /// The line of the certificate, or nothing.
        said: String,
        /// The line as computed again, or nothing.
        found: String,
    },
}

/// The result of a check.
pub type Result<T> = std::result::Result<T, Error>;
