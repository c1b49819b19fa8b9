//! The compiler as judge of predicted layouts.

pub mod asserted;

pub(crate) mod build_results;
pub(crate) mod compiler;
pub(crate) mod verification;

pub use compiler::{CargoCheck, CompileError, Compiled, Judge, NoCompiler, RustError, Stopped};
