//! Gathers: global variables that are used together, in one aligned struct.

pub(crate) mod arrangement;
pub(crate) mod gathers;
pub(crate) mod struct_text;
