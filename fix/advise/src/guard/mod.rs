//! The guard: promises about layouts in `lineup.lock`, and assertions that keep them.

pub mod assertions;

pub(crate) mod lock;
pub(crate) mod lock_groups;

pub use lock::{CheckReport, Group, LOCK_SCHEMA, Lock, Violation, Why};
