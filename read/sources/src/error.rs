//! Errors before any unit was read. A unit that does not parse is no error: it is counted and named.

use std::path::PathBuf;
use thiserror::Error;

/// The reason sources could not be read at all.
#[derive(Debug, Error)]
pub enum Error {
    /// No libclang on this machine.
    #[error("libclang is not installed (apt install libclang1-19 libclang-common-19-dev): {0}")]
    NoLibclang(String),
    /// A malformed list of compile commands.
    #[error("{file}: {why}; write it with `cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON` or `bear`", file = .file.display())]
    CompileCommands {
        /// The file.
        file: PathBuf,
        /// The error in it.
        why: String,
    },
    /// The pool of reading threads could not be made.
    #[error("cannot start threads to read the sources: {0}")]
    Threads(String),
}
