//! The options of the search for findings.

use crate::findings::BurstsTaken;
use crate::stalls::page_stalls::PageCosts;
use lineup_recording::Latency;
use std::path::PathBuf;

/// The options of the search.
#[derive(Clone, Debug)]
pub struct Options {
    /// Findings that gain less than this share of all modelled stalls are left out.
    pub least_gain: f64,
    /// Findings at most.
    pub most_findings: usize,
    /// The costs of misses.
    pub latency: Latency,
    /// The costs of pages.
    pub page_costs: PageCosts,
    /// The next command of a finding in a kernel; `None` for a program that `lineup study` can build.
    pub next: Option<NextWords>,
    /// The words with which a finding's next command runs the program.
    pub again: Again,
    /// How bursts were taken, when the recording is of these.
    pub bursts: Option<BurstsTaken>,
}

/// The command that a finding in a kernel leads to.
#[derive(Clone, Default, Debug)]
pub struct NextWords {
    /// Its words up to the functions.
    pub first: Vec<String>,
    /// The words in place of functions where a finding has none that can be recorded.
    pub without_functions: Vec<String>,
}

/// Words of commands that run a program again as it was recorded.
#[derive(Clone, Default, Debug)]
pub struct Again {
    /// Options of every command that runs it, such as `--drive` with its line.
    pub run: Vec<String>,
    /// Options of the recorder: `--engine` and `--cache`.
    pub recorder: Vec<String>,
    /// Other options of `lineup record`: additions to the environment, which a study takes as part of its command.
    pub environment: Vec<String>,
    /// Other options of `lineup study`: the folder of the sources, and the build command.
    pub build: Vec<String>,
    /// The program and its arguments as `lineup study` takes them; empty when as they were recorded.
    pub studied: Vec<String>,
    /// The folder of the sources, where it is known.
    pub source: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            least_gain: 0.01,
            most_findings: 10,
            latency: Latency::default(),
            page_costs: PageCosts::default(),
            next: None,
            again: Again::default(),
            bursts: None,
        }
    }
}
