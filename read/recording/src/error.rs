//! Errors of recordings, and the loss of a cut-off file.

use std::fmt;

/// The reason a recording could not be written or read at all.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The bytes do not start with the magic.
    #[error("not a recording: the file does not start with LINEUPRC; give a file that `lineup record` wrote")]
    NotARecording,
    /// There are no bytes.
    #[error("the file is empty: the command that was to write it wrote nothing, or was ended before it did")]
    Empty,
    /// The bytes are text.
    #[error(
        "the file is text, as `perf script` prints, and no recording; give the file that `lineup record` or \
         `perf record` wrote"
    )]
    Text,
    /// The version is not one this reader knows.
    #[error("recording version {found} is not supported (this lineup reads {supported}); record again")]
    Version {
        /// The version in the file.
        found: u32,
        /// The version that this crate reads.
        supported: u32,
    },
    /// The file ends, or is damaged, before its header is complete.
    #[error("the recording holds no readable header ({0}); record again")]
    NoHeader(Damage),
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// One record is larger than a block may be.
    #[error("a record of {bytes} bytes exceeds the {limit} bytes of a block; record fewer accesses per call")]
    TooLarge {
        /// Its encoded size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

/// The place where a recording stops being readable, and the reason. Everything before it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Bytes of the file that form whole, checked blocks: cutting the file here repairs it.
    pub good_bytes: u64,
    /// The damage there.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} after {} good bytes", self.what, self.good_bytes)
    }
}
