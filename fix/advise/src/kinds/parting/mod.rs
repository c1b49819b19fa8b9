//! Partings: data of different threads on cache lines of their own.

pub(crate) mod layout_choice;
pub(crate) mod partings;
pub(crate) mod room_layout;
pub(crate) mod room_text;
pub(crate) mod rust_text;
pub(crate) mod rust_types;
pub(crate) mod variables;
pub(crate) mod variables_text;
