//! A kernel's sources: its copy, its configuration, and builds of it.

pub mod configuration;
pub(crate) mod copy;
pub mod kbuild;
pub mod tree;
