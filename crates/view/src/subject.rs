//! What is shown.

use lineup_report::study::{LineMap, RegionReport};

/// A recording, as far as it is shown.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// Its name.
    pub title: String,
    /// What has to be known of it, a sentence each: what is missing, where the file is damaged.
    pub notes: Vec<String>,
    /// The functions whose calls were recorded.
    pub regions: Vec<RegionReport>,
    /// Types and variables with their lines, most accessed first.
    pub maps: Vec<LineMap>,
    /// The calls, in the order in which they were made.
    pub calls: Vec<CallRow>,
}

/// A recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRow {
    /// Its function: a position among the subject's regions.
    pub region: usize,
    /// Its number among all calls of the function, recorded or not.
    pub number: u64,
    /// The thread that made it.
    pub thread: u32,
    /// Instructions, callees included.
    pub instructions: u64,
    /// Different lines of data.
    pub data_lines: u64,
    /// Different lines of code.
    pub code_lines: u64,
    /// How it ended, when it did not return.
    pub ended: Option<&'static str>,
}
