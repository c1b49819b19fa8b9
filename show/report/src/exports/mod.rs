//! Recorded calls in forms that other tools open: Chrome's trace events, which Perfetto reads, and comma-separated values.

mod call_trace;
mod chrome;
mod csv;
mod figures;

pub use call_trace::CallTrace;
pub use chrome::{ChromeTrace, Slice};
pub use csv::{CALLS_HEAD, call_line, members};
pub use figures::CallFigures;

pub(crate) use csv::quoted;
pub(crate) use figures::end;
