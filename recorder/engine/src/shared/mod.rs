//! The memory that engine and command share.

mod children;
mod memory;

pub(crate) use memory::Shared;
