//! What can go wrong before any unit was read. A unit that does not parse is no error: it is counted and named.

use std::path::PathBuf;
use thiserror::Error;

/// Why sources could not be read at all.
#[derive(Debug, Error)]
pub enum Error {
    /// No libclang on this machine.
    #[error("libclang is not installed (apt install libclang1-19 libclang-common-19-dev): {0}")]
    NoLibclang(String),
    /// A list of compile commands that is none.
    #[error("{file}: {why}; write it with `cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON` or `bear`", file = .file.display())]
    CompileCommands {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The pool of reading threads could not be made.
    #[error("cannot start threads to read the sources: {0}")]
    Threads(String),
}
