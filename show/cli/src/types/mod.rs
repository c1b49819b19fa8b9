//! Types of a file: opening it, finding types by name, changed types, guards.

pub(crate) mod changed;
pub(crate) mod guard;
pub(crate) mod index;
pub(crate) mod opening;
pub(crate) mod select;
mod spelling;
pub(crate) mod subject;
