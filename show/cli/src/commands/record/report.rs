//! The values that `lineup record` shows.

use crate::whole_program::functions::FunctionProfile;
use lineup_explain::process_summary::ProcessSummary;
use lineup_explain::region_summary::RegionSummary;
use serde::Serialize;

/// The recording, as shown.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) schema: &'static str,
    /// The recording.
    pub(crate) file: String,
    /// The recorder.
    pub(crate) recorder: String,
    /// The program's end.
    pub(crate) exit_status: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// Instructions of the whole program, when they were counted.
    pub(crate) total_instructions: Option<u64>,
    pub(crate) threads: u64,
    /// Processes forked off, recorded as well.
    pub(crate) forks: u64,
    /// All processes, in order of their start.
    pub(crate) processes: Vec<ProcessSummary>,
    /// The number of the program's runs for the recording.
    pub(crate) runs: u32,
    /// Programs started by `exec` whose work is not recorded, each once.
    pub(crate) unfollowed: Vec<UnfollowedProgram>,
    /// The reason why not everything could be written.
    pub(crate) failure: Option<String>,
    pub(crate) line_bytes: u64,
    pub(crate) caches: Vec<String>,
    pub(crate) regions: Vec<RegionSummary>,
    pub(crate) functions: Vec<FunctionProfile>,
    pub(crate) notes: Vec<String>,
}

/// A program that ran unrecorded.
#[derive(Serialize)]
pub(crate) struct UnfollowedProgram {
    pub(crate) program: String,
    /// The reason, as in "it is not recorded: it …".
    pub(crate) why: String,
    pub(crate) times: u64,
}
