//! Options and values of options that several commands have.

pub(crate) mod advice;
pub(crate) mod engine;
pub(crate) mod format;
pub(crate) mod pins;
pub(crate) mod quantities;
pub(crate) mod surroundings;
pub(crate) mod values;
