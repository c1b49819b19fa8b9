//! Traces of Arm's Statistical Profiling Extension: the records that a processor writes of sampled instructions.
//!
//! Perf writes the bytes unchanged. They are a run of packets; a record ends with its time, or without one. The numbers
//! of data sources have a meaning that each processor defines; it is known for some.

#[cfg(feature = "writer")]
mod encode;
mod info;
mod packet;
mod record;
mod source;
mod traces;

pub use packet::{Packet, packet};
pub use record::{Access, Kind, TraceRecord};

#[cfg(feature = "writer")]
pub(crate) use info::ARM_SPE;
pub(crate) use info::{Clock, Info};
pub(crate) use source::data_source;
pub(crate) use traces::{ChunkBytes, DueRecord, Part, Traces, Whose};
