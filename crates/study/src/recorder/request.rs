//! What is to be recorded.

use lineup_cache::CacheSpec;
use lineup_recording::{Ending, Mode, Summary};
use std::ffi::OsString;
use std::path::PathBuf;

/// A recording to be made.
#[derive(Clone, Debug)]
pub struct RecordRequest {
    /// The program's file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its working directory; `None` for ours.
    pub directory: Option<PathBuf>,
    /// Variables added to its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Functions to record; empty in whole-program mode.
    pub regions: Vec<RegionRequest>,
    /// How to record.
    pub mode: Mode,
    /// Calls recorded at most per region.
    pub max_calls: Option<u64>,
    /// Calls left out at the start of each region.
    pub warmup_calls: u64,
    /// Caches to model, in whole-program mode.
    pub caches: Vec<CacheSpec>,
    /// Where to write the recording.
    pub output: PathBuf,
    /// What becomes of the program's own output in the recording run; it then reads our standard input, too.
    pub shown: Output,
}

/// What becomes of what the program prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Thrown away.
    Hidden,
    /// Passed through.
    Shown,
    /// Passed through, all of it on standard error.
    OnStandardError,
}

/// A function to record.
#[derive(Clone, PartialEq, Debug)]
pub struct RegionRequest {
    /// Its name.
    pub name: String,
    /// How much its calls count against those of others.
    pub weight: f64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct RecordOutcome {
    /// How the program ended.
    pub ending: Ending,
    /// The recorder's counts; `None` when it did not get to write them.
    pub summary: Option<Summary>,
    /// What the user should know: functions inlined besides, blocks not seen.
    pub notes: Vec<String>,
}
