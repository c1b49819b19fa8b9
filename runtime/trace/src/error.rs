//! Errors of a trace file.

/// The reason a file cannot be read as a trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TraceError {
    /// It does not begin as a trace does.
    #[error(
        "not a trace: the file does not begin with the tracer's mark; give the file named at start of tracing"
    )]
    NotATrace,
    /// It was written by another version.
    #[error("trace of version {found}; this build reads version {supported}: use the Lineup that wrote it")]
    Version {
        /// The version in the file.
        found: u32,
        /// The version read here.
        supported: u32,
    },
    /// The header contradicts itself.
    #[error("trace header is damaged: {what}")]
    Header {
        /// The error.
        what: &'static str,
    },
    /// The file ends before its last buffer.
    #[error("trace is cut off: {have_bytes} bytes of {need_bytes}; copy it again from where it was written")]
    Truncated {
        /// Bytes there are.
        have_bytes: u64,
        /// Bytes the header announces.
        need_bytes: u64,
    },
    /// The trace holds no events of the region asked for.
    #[error("no region named {name:?} in the trace; it has {known}")]
    UnknownRegion {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
}
