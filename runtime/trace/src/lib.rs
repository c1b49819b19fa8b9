//! The tracer's file, and its analysis.
//!
//! Design constraints:
//!
//! * The file is memory that the traced process maps: everything stored before a `kill -9` is in it. There is no index
//!   to complete and no trailer to write; each record carries the number that marks it as whole.
//! * The reader trusts nothing: every offset is checked against the file's length, and bytes that cannot be a record
//!   are counted, not guessed at.
//! * Losses are exact: overwritten, refused because full, refused because a handler interrupted the writer, refused
//!   because there was no buffer for the thread. A count that a kill left open is reported as open.
//! * [`layout`] is shared with the writer in the runtime; nothing else here is, so the runtime stays small.
//! * Analysis returns values; nothing prints.

#[cfg(feature = "attribution")]
pub mod attribution;
pub mod control;
pub mod error;
#[cfg(feature = "attribution")]
pub mod estimate;
pub mod event;
#[cfg(feature = "attribution")]
pub mod export;
#[cfg(feature = "attribution")]
pub mod hdr;
pub mod histogram;
pub mod layout;
#[cfg(feature = "attribution")]
pub mod modes;
pub mod reader;
#[cfg(feature = "attribution")]
pub mod summary;
#[cfg(feature = "attribution")]
pub mod tail;

pub use error::TraceError;
pub use event::{Arm, Event, Kind};
pub use histogram::Histogram;
pub use reader::{HighWater, Losses, Name, NameKind, Rung, ThreadTrace, Trace};
