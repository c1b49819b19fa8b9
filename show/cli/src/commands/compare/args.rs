//! Arguments of `lineup compare`.

use super::fail_if::Bound;
use crate::options::format::Format;
use crate::options::quantities::{Percentage, Span, above_zero};
use lineup_stats::random::Seed;
use lineup_study::timing::Placing;
use std::path::PathBuf;

/// Compares commands: runs them in mirrored blocks (ABBA), each block placed alike, and says of
/// every quantity whether it changed, is equivalent within the margin, or is not decided.
///
/// Each command is one quoted string, split as a shell would and run without a shell.
#[derive(clap::Args)]
pub(crate) struct Compare {
    /// The commands; the others are compared with the first.
    #[arg(required_unless_present = "from_table", value_name = "COMMAND")]
    pub(crate) commands: Vec<String>,
    /// Judge printed figures instead: lines metric,variant,MEAN,ERROR,RUNS (an error as 0.08% or in the
    /// unit), or metric,variant,VALUE once per run.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["commands", "csv", "markdown", "html"])]
    pub(crate) from_table: Option<PathBuf>,
    /// Compare one command with itself and report how often that raises a false alarm here.
    #[arg(long = "self", conflicts_with = "fail_if")]
    pub(crate) itself: bool,
    /// Link each program this many times, with its objects in other orders and padding between them: each block uses
    /// one link of each, and the interval covers the differences between links.
    #[arg(long, value_name = "N", requires = "builds", conflicts_with_all = ["shell", "from_table"], value_parser = clap::value_parser!(u64).range(2..=200))]
    pub(crate) links: Option<u64>,
    /// With --links: shell command that links the programs anew, here, by GCC or Clang, as make -B does; once for all
    /// commands, or once for each.
    #[arg(long = "build", value_name = "COMMAND", requires = "links")]
    pub(crate) builds: Vec<String>,
    /// Run the commands through /bin/sh.
    #[arg(long)]
    pub(crate) shell: bool,
    /// Blocks to run at most; every block runs each command twice (once with --shuffled). 20 when
    /// left out, or 1000 with --until-width.
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    pub(crate) blocks: Option<u64>,
    /// Stop when the interval of the primary metric is this narrow, such as 0.5%; not before ten
    /// blocks.
    #[arg(long, value_parser = above_zero)]
    pub(crate) until_width: Option<Percentage>,
    /// Stop after this much time of runs, such as 90s or 2m.
    #[arg(long)]
    pub(crate) max_time: Option<Span>,
    /// Changes smaller than this count as equivalent.
    #[arg(long, default_value = "1%")]
    pub(crate) margin: Percentage,
    /// Confidence level.
    #[arg(long, default_value = "95%")]
    pub(crate) level: Percentage,
    /// Run each command once per block in random order, instead of mirrored.
    #[arg(long)]
    pub(crate) shuffled: bool,
    /// Untimed runs of each command at the start.
    #[arg(short = 'w', long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub(crate) warm_up: u32,
    /// Events to count as well: cycles,instructions:u,{branches,branch-misses},r01c2.
    #[arg(short = 'e', long = "event")]
    pub(crate) events: Vec<String>,
    /// A number the programs print: a pattern with the number in parentheses. Lines `lineup-metric
    /// NAME VALUE UNIT` are picked up without it.
    #[arg(long = "metric")]
    pub(crate) metrics: Vec<String>,
    /// The metric that decides when to stop and whose verdict comes first.
    #[arg(long, default_value = "elapsed")]
    pub(crate) primary: String,
    /// CPUs to run on: auto (one per block in turn, if one is enough), none, apart (each thread on one of its own),
    /// together (all threads on one, another for each block), or a list such as 0,2.
    #[arg(long, default_value = "auto")]
    pub(crate) pin: Placing,
    /// Keep the environment's size the same in all blocks.
    #[arg(long)]
    pub(crate) same_environment: bool,
    /// File that the programs read as standard input.
    #[arg(long)]
    pub(crate) stdin: Option<PathBuf>,
    /// Background load to hold during the whole comparison: 'load --vm 2 --vm-bytes 32M'.
    #[arg(long, value_name = "LOAD")]
    pub(crate) under: Option<String>,
    /// Exit with 1 when the interval lies wholly past a bound: 'time > +1%'. May be repeated.
    #[arg(long)]
    pub(crate) fail_if: Vec<Bound>,
    /// Seed of the order of runs, the environment's sizes and the resampling.
    #[arg(long, default_value_t = Seed::default().0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) format: Format,
    /// Print every metric in full, instead of one screen.
    #[arg(long)]
    pub(crate) full: bool,
    /// Write the result to a file instead of standard output: text in full.
    #[arg(short = 'o', long)]
    pub(crate) output: Option<PathBuf>,
    /// Also write an offline HTML page with the distributions, quantiles and the order of runs.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// The commands as variants: the same twice for a comparison with itself.
pub(crate) fn commands(compare: &Compare) -> Vec<String> {
    let twice = if compare.itself { 2 } else { 1 };
    compare.commands.iter().cycle().take(twice * compare.commands.len()).cloned().collect()
}
