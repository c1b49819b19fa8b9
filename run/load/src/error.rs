//! Errors that stop a load.

use std::io;
use std::path::PathBuf;

/// The reason why a load could not run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A size or count out of range.
    #[error("{what} is {value}; it must be {range}")]
    Parameter {
        /// The parameter.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The permitted values.
        range: &'static str,
    },
    /// No control group hierarchy that divides CPU time.
    #[error("no control group hierarchy with the cpu controller is mounted; weighted groups need one")]
    NoCpuController,
    /// A control group file could not be written.
    #[error(
        "{path}: {source}. Weighted groups need write access to the cpu controller: run as root, or have the group delegated"
    )]
    Group {
        /// The file or directory.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel refused something else.
    #[error("{what}: {source}")]
    System {
        /// The failed request.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// Text of the kernel that could not be read.
    #[error("/proc/stat, line {line}: {text:?} is not understood")]
    Statistics {
        /// Line number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
}

/// Names the failed request when the kernel refuses.
pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> LoadError {
    move |source| LoadError::System { what, source: source.into() }
}
