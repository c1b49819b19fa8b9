//! Why the code of a file cannot be looked at.

use lineup_model::abi::Machine;

/// Why the code of a file cannot be looked at.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodeError {
    /// Its machine's instructions are not read here.
    #[error("{path} is for {machine:?}: the order of code is looked at for x86-64 alone")]
    Machine {
        /// The file.
        path: String,
        /// What it is for.
        machine: Machine,
    },
    /// No symbol tells where a function is.
    #[error("{path} has no symbols of functions: link it without -s, or install its debug symbols")]
    NoFunctions {
        /// The file.
        path: String,
    },
    /// No executed code is described in the way that a sample profile needs.
    #[error(
        "no function that was executed was compiled by Clang with debug lines, which counts by source line need: build \
         the program by clang -O2 -g -fdebug-info-for-profiling and record it again"
    )]
    NotByClang,
}
