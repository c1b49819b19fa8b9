//! Errors in reading the code of a file.

use lineup_model::abi::Machine;

/// The reason why the code of a file cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodeError {
    /// Its machine's instructions are not read here.
    #[error("{path} is for {machine:?}: the order of code is looked at for x86-64 alone")]
    Machine {
        /// The file.
        path: String,
        /// Its machine.
        machine: Machine,
    },
    /// No symbol gives a function's address.
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
