//! Errors of this library. Refusals are not errors: they are answers.

use thiserror::Error;

/// An error of this library.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum AdviseError {
    /// A `lineup.lock` that is no valid TOML, or holds other things than a lock does.
    #[error("{name}, line {line}: {what}; write it anew with `lineup advise --guard`, or correct the line")]
    LockSyntax {
        /// The file, as the caller named it.
        name: String,
        /// Line, from 1.
        line: u32,
        /// The error.
        what: String,
    },
    /// A `lineup.lock` of a version this program does not know.
    #[error("{name} says schema {found:?}; this program reads {expected:?}: use the program that wrote it")]
    LockVersion {
        /// The file, as the caller named it.
        name: String,
        /// The schema found.
        found: String,
        /// The schema expected.
        expected: &'static str,
    },
    /// A file of constraints that cannot be understood.
    #[error("not a file of constraints: {0}")]
    Constraints(String),
    /// An order that cannot be parsed, or that is not an order of its type.
    #[error("{name}, line {line}: {what}")]
    OrderSyntax {
        /// The file, as the caller named it.
        name: String,
        /// Line of the file of orders, from 1.
        line: u32,
        /// The error.
        what: String,
    },
    /// A patch that cannot be applied to the sources.
    #[error("the patch cannot be applied: {0}")]
    Patch(String),
    /// Something else than a candidate ended the work while one was built.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The reason why the work ends while a candidate is built. It says nothing about the candidate.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Stopped {
    /// The build failed for another reason than the edit: a full disk, a compiler that was killed.
    #[error("{what}")]
    BuildFailed {
        /// The error and its remedy.
        what: String,
    },
    /// A signal asked the whole work to end.
    #[error("interrupted by {}", lineup_model::signal_name(*.signal))]
    Interrupted {
        /// The signal's number.
        signal: i32,
    },
}
