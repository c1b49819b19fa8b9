//! Numbers of the parts of a perf.data: of perf's own records, and of the sections behind the records. Readers and
//! writers share them.

/// Describes an event.
pub(crate) const ATTRIBUTE: u32 = 64;
/// Contains formats of trace points, which follow it.
pub(crate) const TRACING_DATA: u32 = 66;
/// Contains a file's build id.
pub(crate) const BUILD_ID: u32 = 67;
/// Ends a round.
pub(crate) const ROUND_ENDS: u32 = 68;
/// Describes the source of traces.
pub(crate) const TRACE_INFO: u32 = 70;
/// Announces a chunk of a trace, which stands behind it.
pub(crate) const AUXILIARY: u32 = 71;
/// Updates the description of an event.
pub(crate) const EVENT_UPDATE: u32 = 78;
/// Holds the conversion of ticks of the machine's timer to times.
pub(crate) const TIMER: u32 = 79;

/// Bits of the sections behind the records.
pub(crate) mod section {
    pub(crate) const BUILD_IDS: u32 = 2;
    pub(crate) const HOST_NAME: u32 = 3;
    pub(crate) const RELEASE: u32 = 4;
    pub(crate) const ARCHITECTURE: u32 = 6;
    pub(crate) const CPUS: u32 = 7;
    pub(crate) const PROCESSOR: u32 = 9;
    pub(crate) const COMMAND_LINE: u32 = 11;
    pub(crate) const EVENT_NAMES: u32 = 12;
}
