//! Arguments of `lineup measure`.

use crate::options::format::Format;
use lineup_study::counters;
use lineup_study::timing::Placing;
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs a program several times and prints every counter with its standard error, ratios with
/// their own intervals, and quantiles: `perf stat -r` with and without hardware counters.
#[derive(clap::Args)]
pub(crate) struct Measure {
    /// How many runs.
    #[arg(short = 'r', long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) repeat: u32,
    /// Untimed runs at the start.
    #[arg(short = 'w', long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub(crate) warm_up: u32,
    /// Events to count, as for perf stat: cycles,instructions:u,{branches,branch-misses},r01c2.
    #[arg(short = 'e', long = "event", default_value = counters::DEFAULT_EVENTS)]
    pub(crate) events: Vec<String>,
    /// Shell command before every run, untimed.
    #[arg(long)]
    pub(crate) pre: Option<String>,
    /// Shell command after every run, untimed.
    #[arg(long)]
    pub(crate) post: Option<String>,
    /// CPUs to run on: none (anywhere), auto (one per run in turn), apart (each thread on one of its own), together, or
    /// a list such as 0,2.
    #[arg(long, default_value = "none")]
    pub(crate) pin: Placing,
    /// Also count the program's instructions exactly, by running it twice under the emulator.
    #[arg(long)]
    pub(crate) emulate: bool,
    /// File that the program reads as standard input.
    #[arg(long)]
    pub(crate) stdin: Option<PathBuf>,
    /// A number the program prints: a pattern with the number in parentheses. Lines `lineup-metric
    /// NAME VALUE UNIT` are picked up without it.
    #[arg(long = "metric")]
    pub(crate) metrics: Vec<String>,
    /// Show what the program prints, on standard error.
    #[arg(long, conflicts_with = "metrics")]
    pub(crate) show_output: bool,
    /// Compute this expression instead of running a program, with its error: names, numbers, + - * / ^, parentheses, sqrt
    /// ln exp abs. Names with a dash go between backquotes: `page-faults`. Inputs follow: NAME=VALUE±ERROR (or
    /// VALUE+-ERROR), NAME=VALUE, or NAME=@FILE with one measured value a line.
    #[arg(long, value_name = "EXPRESSION", conflicts_with_all = ["emulate", "stdin", "metrics", "show_output", "pre", "post", "csv", "markdown"])]
    pub(crate) derive: Option<String>,
    /// With --derive: take the metrics of a `lineup measure --json` result as inputs, under their names.
    #[arg(long, value_name = "FILE", requires = "derive")]
    pub(crate) from: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) format: Format,
    /// Write the result to a file instead of standard output.
    #[arg(short = 'o', long)]
    pub(crate) output: Option<PathBuf>,
    /// The program and its arguments; with --derive the inputs.
    #[arg(trailing_var_arg = true, required_unless_present = "derive", allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}
