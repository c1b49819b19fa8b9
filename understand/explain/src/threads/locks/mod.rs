//! Locks: who takes them, how long they are held, and who waits for whom.

mod holds;
mod lock_code;
mod lock_names;
mod sleeping_locks;
mod spin_words;
mod taken_locks;

pub use lock_code::LockKind;
pub(super) use taken_locks::{Lines, Locks};
