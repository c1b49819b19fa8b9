//! What is to be recorded.

use lineup_cache::CacheSpec;
use lineup_recording::{Ending, Mode, Summary};
use std::ffi::OsString;
use std::path::PathBuf;

/// A recording to be made.
#[derive(Clone, Debug)]
pub(crate) struct RecordRequest {
    /// The program's file.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// Its working directory; `None` for ours.
    pub(crate) directory: Option<PathBuf>,
    /// Variables added to its environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Functions to record; empty in whole-program mode.
    pub(crate) regions: Vec<RegionRequest>,
    /// How to record.
    pub(crate) mode: Mode,
    /// Calls recorded at most per region.
    pub(crate) max_calls: Option<u64>,
    /// Calls left out at the start of each region.
    pub(crate) warmup_calls: u64,
    /// Caches to model, in whole-program mode.
    pub(crate) caches: Vec<CacheSpec>,
    /// Where to write the recording.
    pub(crate) output: PathBuf,
    /// What becomes of the program's own output in the recording run; it then reads our standard input, too.
    pub(crate) shown: Output,
}

/// What becomes of what the program prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Output {
    /// Thrown away.
    Hidden,
    /// Passed through.
    Shown,
    /// Passed through, all of it on standard error.
    OnStandardError,
}

/// A function to record.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RegionRequest {
    /// Its name.
    pub(crate) name: String,
    /// How much its calls count against those of others.
    pub(crate) weight: f64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct RecordOutcome {
    /// How the program ended.
    pub(crate) ending: Ending,
    /// The recorder's counts; `None` when it did not get to write them.
    pub(crate) summary: Option<Summary>,
    /// What the user should know: functions inlined besides, blocks not seen.
    pub(crate) notes: Vec<String>,
}
