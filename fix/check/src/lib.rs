//! Checks a change of layout without trusting what made it.
//!
//! Two builds of one program are compared in the form that the compiler has before it optimises: GCC's GIMPLE with
//! the object file's data, or LLVM's IR. They must be equal but for what the map from the old layout to the new one
//! explains. Each use of a changed type that is no plain access of a member becomes an obligation. The format and its
//! meaning stand in `docs/certificate.md`.
//!
//! The crate uses no other crate of Lineup, so that a fault there is no fault here.

pub mod certificate;
pub mod data;
pub mod dwarf;
pub mod error;
pub mod facts;
pub mod gimple;
pub mod llvm;
pub mod map;
pub mod obligation;
pub mod two_types;
pub mod unit;

pub use error::{Error, Result};
