//! Records of a file or pipe in the order of their times.

mod packed;
mod record_head;
mod record_reader;
mod rounds;
mod scan;
mod threads;
mod trace_samples;
mod traced;

pub use record_reader::{Ending, Reader};
