//! Samples that perf took: files and pipes of perf.data, their mappings, and counts of them by place.
//!
//! Design constraints:
//!
//! * Memory does not grow with samples: the reader returns records one at a time in the order of their times, and keeps
//!   counts by place in code and data ([`tally`]).
//! * Files are foreign: a part that does not fit is refused or counted as unreadable, never a panic, and no length is
//!   trusted for an allocation.
//! * A file that was cut off is read up to its last whole record, and [`Ending`] reports it.
//! * Nothing is opened or looked up here: the caller gives bytes, and the segments of files.
//!
//! The container is read here, not by a library: a cut-off file shall give its whole records, traces of any length
//! shall be passed over, and a damaged length shall not be believed. Bodies of samples are read by `perf-event-data`.

mod bytes;
pub mod chains;
pub mod code_names;
pub mod container;
pub mod data_source;
mod error;
mod event;
mod header;
mod numbers;
pub mod operand;
mod reader;
pub mod record;
mod spaces;
pub mod spe;
mod sum;
pub mod synthetic_records;
pub mod tally;
#[cfg(feature = "writer")]
pub mod writer;

pub use error::SamplesError;
pub use event::{Carries, Event};
pub use header::{BuildId, Header};
pub use reader::{Ending, Reader};
pub use record::Record;
pub use spaces::{Code, Data, FileSegment, MappedFile, Segments};
pub use tally::{Tally, tally};
