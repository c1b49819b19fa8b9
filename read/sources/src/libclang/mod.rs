//! The C library libclang, loaded at run time: the one place with unsafe code.
//!
//! Every function here takes values that libclang itself gave for a unit that is still alive, which the lifetime `'u`
//! guarantees; that is all that libclang asks of its callers. Names of kinds are libclang's.

mod cursor;
mod library;
mod unit;

pub(crate) use cursor::{Cursor, Location, Type};
pub(crate) use library::Library;
pub(crate) use unit::Unit;
