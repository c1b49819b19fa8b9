//! Contention between threads that run together.
//!
//! Calls that carry times are put in order with those of other threads. Their accesses to lines that several threads
//! use go through the model of [`lineup_coherence`]. A call inside another recorded one is part of that one. The order
//! of calls without times is unknown; they are only counted.

mod access_log;
mod access_times;
mod call_waits;
mod collector;
mod contention;
mod false_sharing;
mod layout_waits;
mod lock_advice;
mod locked_objects;
mod locks;
mod owned_bytes;
mod process;
mod report;
mod serialising_locks;
pub mod sharing;
mod task_contention;
mod tasks;
mod unwritten_data;
mod use_names;
mod windowed_calls;

pub use collector::Collector;
pub use false_sharing::is_of_system;
pub(crate) use layout_waits::Replay;
pub use layout_waits::{Elsewhere, ObjectsElsewhere, VariableElsewhere, WaitsElsewhere};
pub use locks::LockKind;
pub(crate) use owned_bytes::{ByBytes, Owned};
pub use report::{
    Beside, BesideHot, BetweenThreads, CallWaits, CallsInWindows, FalseSharing, LineBetween, LockPlaces,
    LockReport, LockSection, LockWait, LockWithin, Matrix, Needed, NeededData, NotSeen, Of, PairBetween,
    PartBetween, Placement, Remedy, SharedCounter, TaskBetween, TaskMatrix, ThreadSeen, UseOf, WaitedFor,
    Waits, WaitsByOrder,
};
pub use serialising_locks::Serialising;
pub use tasks::{Tasks, name_of};
pub(crate) use windowed_calls::Reaches;
