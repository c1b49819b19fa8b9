//! The values that a recording holds, and the packed form of each.

pub(crate) mod allocation;
pub(crate) mod context;
pub(crate) mod event;
pub(crate) mod header;
pub(crate) mod placement;
pub(crate) mod sizes;
pub mod stream;
pub(crate) mod system;
pub(crate) mod tasks;
pub(crate) mod window;
