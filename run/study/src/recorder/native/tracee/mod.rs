//! Another process under `ptrace`: its threads are stopped, and made to call functions.

pub(crate) mod caller;
pub(crate) mod ptrace;
pub(crate) mod refusals;
pub(crate) mod threads;
