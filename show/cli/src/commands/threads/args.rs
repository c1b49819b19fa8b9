//! Arguments of `lineup threads`.

use crate::options::values::line_size;
use clap::Args;
use lineup_find::WAIT_CYCLES;
use lineup_model::line::LineSize;
use std::path::PathBuf;

/// Arguments of `lineup threads`.
#[derive(Args)]
pub(crate) struct Options {
    /// A recording of functions that threads run at the same time, made by `lineup record --engine native`, or of a
    /// kernel on several CPUs, made with `--cpus 2 --region kernel`
    pub(crate) recording: PathBuf,
    /// Bytes in a cache line: 64, or 128 for processors that fetch lines in pairs
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_size)]
    pub(crate) line_size: LineSize,
    /// Assumed cost of one wait for a line, in cycles; it is not measured
    #[arg(long, value_name = "CYCLES", default_value_t = WAIT_CYCLES as u64)]
    pub(crate) wait_cycles: u64,
    /// Findings and lines shown at most
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) top: usize,
    /// End with exit code 1 when threads share lines without need
    #[arg(long)]
    pub(crate) check: bool,
    /// Also write an HTML page with a map of each line, by who reads and writes its bytes
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON (schema lineup.threads/1)
    #[arg(long)]
    pub(crate) json: bool,
}
