//! Signals of the program: its handlers, its masks, and its state at every place where a signal arrives.

pub(crate) mod actions;
pub(crate) mod code_ranges;
pub(crate) mod delivery;
pub(crate) mod handlers;
pub(crate) mod interruptions;
pub(crate) mod marks;
pub(crate) mod masks;
