//! Arguments of `lineup bisect`.

use crate::options::quantities::Percentage;
use lineup_prove::metric::ELAPSED;
use lineup_study::timing::Placing;
use std::ffi::OsString;
use std::path::PathBuf;

/// Finds the commit that changed a program's cost: builds commits in a scratch clone, compares each
/// with the good one in mirrored blocks, skips what is inconclusive, and goes into merges. Where only the
/// merge is bad, it says which pair of commits carries the change. The working tree and the refs of the
/// repository are never touched; an interrupted search resumes where it stopped.
#[derive(clap::Args)]
pub(crate) struct Bisect {
    /// A revision without the change.
    #[arg(long)]
    pub(crate) good: String,
    /// A revision with the change.
    #[arg(long)]
    pub(crate) bad: String,
    /// Shell command that builds a checked-out commit.
    #[arg(long)]
    pub(crate) build: Option<String>,
    /// Show what the builds print.
    #[arg(long)]
    pub(crate) show_build: bool,
    /// Blocks per comparison at most.
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) blocks: u64,
    /// End a comparison when its interval is this narrow, such as 0.5%.
    #[arg(long)]
    pub(crate) until_width: Option<Percentage>,
    /// The metric to search by.
    #[arg(long, default_value = "time")]
    pub(crate) primary: String,
    /// Events to count, when the metric is one.
    #[arg(short = 'e', long = "event")]
    pub(crate) events: Vec<String>,
    /// A number the program prints, when the metric is one: a pattern with the number in parentheses.
    #[arg(long = "metric")]
    pub(crate) metrics: Vec<String>,
    /// CPUs to run on: auto, none, apart (each thread on one of its own), together, or a list such as 0,2.
    #[arg(long, default_value = "auto")]
    pub(crate) pin: Placing,
    /// Where the scratch clone, the builds and the verdicts are kept; a place in the user's cache when
    /// left out.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The program to measure, run in each commit's directory.
    #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}

impl Bisect {
    pub(super) fn primary(&self) -> String {
        if self.primary == "time" { ELAPSED.into() } else { self.primary.clone() }
    }
}
