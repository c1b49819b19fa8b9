//! The type of the machine.

/// The machine.
pub(crate) struct X86_64;
