//! The reasons samples could not be read.

use std::io;

/// The reason samples could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SamplesError {
    /// The system could not read the file.
    #[error("cannot read the samples: {0}")]
    Io(#[from] io::Error),
    /// It begins otherwise.
    #[error("this is no perf.data: it does not begin with PERFILE2")]
    NotPerf,
    /// It holds nothing.
    #[error("the file is empty: `perf record` wrote nothing into it, or was ended before it did")]
    Empty,
    /// It is text.
    #[error(
        "this is text, no perf.data: give the file that `perf record` wrote, not what `perf script` or `perf report` printed of it"
    )]
    Text,
    /// It was made on a machine of the other byte order.
    #[error("this perf.data is of a big-endian machine, which is not read; `perf script` reads it")]
    BigEndian,
    /// A part does not fit into the file, or into its containing part.
    #[error("the perf.data is damaged: {what} at byte {at}")]
    Damaged {
        /// The part that does not fit.
        what: &'static str,
        /// The place where it begins.
        at: u64,
    },
    /// It describes no event, so that no sample can be understood.
    #[error("the perf.data describes no event")]
    NoEvents,
    /// The samples carry no identifier of their event.
    #[error(
        "the perf.data has {events} events with samples of different kinds and no identifier in them; record them again \
         with a newer perf, or each alone"
    )]
    NoIdentifier {
        /// The number of events.
        events: usize,
    },
    /// Its only samples are in a trace, of which nothing can be read.
    #[error(
        "the {bytes} bytes of Arm SPE's trace hold no record that can be read; `perf script -D` shows what stands there"
    )]
    Undecodable {
        /// The length of the trace.
        bytes: u64,
    },
}
