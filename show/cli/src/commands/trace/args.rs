//! Arguments of `lineup trace`.

use anyhow::{Result, anyhow};
use lineup_trace::estimate::Level;
use lineup_trace::tail::Tail;
use std::path::PathBuf;

/// Reports and explains traces of the runtime's tracer, and reports recorded calls of whole systems.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Shows what was recorded: distributions, new maxima, losses
    Report(Report),
    /// States how much of each region's median and tail is due to code misses, data misses, locks or
    /// more instructions, by the random interventions in the trace
    Explain(Explain),
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Tables and the high-water listing
    Text,
    /// The form lineup.trace/1
    Json,
    /// One line per event
    Csv,
    /// One offline page
    Html,
    /// Perfetto's trace of track events, of a trace
    Perfetto,
    /// Chrome's trace events in JSON, which Perfetto opens: of recorded calls
    Chrome,
    /// HDR histogram interval log: V2, compressed, a tag per region and lock
    Hdr,
    /// Percentile tables that HDR histogram tools plot, one per name
    HdrPercentiles,
}

#[derive(clap::Args)]
pub(crate) struct Explain {
    /// The trace.
    pub(crate) file: PathBuf,
    /// Only this region.
    #[arg(long)]
    pub(crate) region: Option<String>,
    /// Which calls make up the tail: those beyond the first quantile; time beyond the second is not counted.
    #[arg(long, value_name = "FROM..TO", default_value = "0.90..0.99", value_parser = tail)]
    pub(crate) tail: Tail,
    /// Confidence level of the intervals.
    #[arg(long, value_name = "LEVEL", default_value = "0.95", value_parser = level)]
    pub(crate) level: Level,
    /// Print all regions, instead of one screen.
    #[arg(long)]
    pub(crate) full: bool,
    /// Print JSON, the form lineup.explain-trace/1.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn tail(text: &str) -> Result<Tail> {
    let numbers = text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    numbers
        .and_then(|(from, to)| Tail::new(from, to))
        .ok_or_else(|| anyhow!("write two quantiles from 0.5 to 1, such as 0.90..0.99"))
}

pub(crate) fn level(text: &str) -> Result<Level> {
    text.parse()
        .ok()
        .and_then(Level::new)
        .ok_or_else(|| anyhow!("write a level from 0.5 to less than 1, such as 0.95"))
}

#[derive(clap::Args)]
pub(crate) struct Report {
    /// The trace or recording of a whole system, or several of one kind to lay over each other
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// In which form
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with_all = ["format", "csv"])]
    pub(crate) json: bool,
    /// The same as --format csv
    #[arg(long, conflicts_with = "format")]
    pub(crate) csv: bool,
    /// Besides, write one offline page to this file
    #[arg(long, value_name = "PAGE")]
    pub(crate) html: Option<PathBuf>,
    /// Show these regions in full [default: the first, and spans with interrupts off]
    #[arg(long = "region", value_name = "NAME")]
    pub(crate) regions: Vec<String>,
    /// Name functions from this file: an ELF file, a kernel image, /proc/kallsyms or System.map [default: the recorded
    /// image]
    #[arg(long, value_name = "FILE")]
    pub(crate) symbols: Option<PathBuf>,
    /// Print the whole text, every table and listing, instead of one screen
    #[arg(long)]
    pub(crate) full: bool,
    /// Write to this file instead of the terminal: text in full
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

impl Report {
    pub(crate) fn format(&self) -> Format {
        match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Csv,
            _ => self.format,
        }
    }
}
