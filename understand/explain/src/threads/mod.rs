//! Contention between threads that run together.
//!
//! Calls that carry times are put in order with those of other threads. Their accesses to lines that several threads
//! use go through the model of [`lineup_coherence`]. A call inside another recorded one is part of that one. The order
//! of calls without times is unknown; they are only counted.

mod beside_hot;
mod collect;
mod elsewhere;
mod finding;
mod lock_advice;
mod locks;
mod naming;
mod owned;
mod reaches;
mod report;
mod serialising;
mod tasks;
mod times;
mod work_out;

pub use collect::Collector;
pub(crate) use elsewhere::Replay;
pub use elsewhere::{Elsewhere, ObjectsElsewhere, VariableElsewhere, WaitsElsewhere};
pub use finding::is_of_system;
pub use locks::LockKind;
pub(crate) use owned::{ByBytes, Owned};
pub(crate) use reaches::Reaches;
pub use report::{
    Beside, BesideHot, BetweenThreads, CallWaits, CallsInWindows, FalseSharing, LineBetween, LockPlaces,
    LockReport, LockSection, LockWait, LockWithin, Matrix, Needed, NeededData, NotSeen, Of, PairBetween,
    PartBetween, Placement, Remedy, SharedCounter, TaskBetween, TaskMatrix, ThreadSeen, UseOf, WaitedFor,
    Waits, WaitsByOrder,
};
pub use serialising::Serialising;
pub use tasks::{Tasks, name_of};
