//! Programs as LLVM's IR before any pass, with typed pointers.

mod allocation;
pub mod equal;
pub mod ir_module;
pub mod lexer;
pub mod metadata;
pub mod program;
pub mod types;
pub mod unit;
pub mod uses;

pub use program::check;
pub use unit::Unit;
