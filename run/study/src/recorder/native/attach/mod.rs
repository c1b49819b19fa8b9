//! Attaching to a process that runs, and leaving it as it was.
//!
//! `engine/src/start/attach.rs` describes the order of the steps. A thread of the process makes its loader load the
//! engine, and creates the engine's own thread, which does all else while the program continues. Threads of the program
//! are stopped only for moments, while its code is changed. Otherwise Lineup does not hold the process, and others may
//! trace it.

mod attached;
mod burst_starter;
mod changes;

pub(super) use attached::{Attached, check, command};
pub(super) use burst_starter::{Attempt, BurstStarter};
