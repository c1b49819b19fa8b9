//! The memory that engine and command share.

mod children;
mod frame_rules;
mod memory;

pub(crate) use children::{first_path, remember_first};
pub(crate) use memory::Shared;
