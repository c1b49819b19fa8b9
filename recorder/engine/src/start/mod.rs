//! How recording begins and ends: with the program, in a static program, in a running one, and for a burst.

pub(crate) mod attach;
pub(crate) mod bursts;
pub(crate) mod constructor;
pub(crate) mod static_program;
