//! Arguments of `lineup explain`.

use super::code::args::CodeOptions;
use crate::options::values::line_size;
use crate::samples::findings::Symbols;
use anyhow::Result;
use clap::{Args, ValueEnum};
use lineup_cache::CacheSpec;
use lineup_model::line::LineSize;
use std::path::PathBuf;

/// Arguments of `lineup explain`.
#[derive(Args)]
pub(crate) struct Options {
    /// A recording, as `lineup record` writes it, or a perf.data of `perf record`, `perf mem record` or `perf c2c record`; -
    /// for a pipe from `perf record -o -`
    pub(crate) recording: PathBuf,
    /// Bytes in a cache line of the maps: 32, 64 or 128
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_size)]
    pub(crate) line_size: LineSize,
    /// Show only these regions
    #[arg(long = "region", value_name = "FUNCTION")]
    pub(crate) regions: Vec<String>,
    /// Lines shown per region, most needed first [default: as many as fit on the first screen; all with --full]
    #[arg(long, value_name = "COUNT")]
    pub(crate) top: Option<usize>,
    /// Show everything: all line sizes, evidence, what rides along on each line, code by function
    #[arg(long)]
    pub(crate) full: bool,
    /// Caches for which misses are expected, such as l1d=32K,8,64
    #[arg(long = "cache", value_name = "LEVEL=SIZE,WAYS,LINE")]
    pub(crate) caches: Vec<CacheSpec>,
    /// Other data that passes through the caches between two calls: bytes, or with K, M, G
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, requires = "caches")]
    pub(crate) pressure: Vec<u64>,
    /// Seconds that the program runs without emulation, to compute calls per second
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) seconds: Option<f64>,
    /// Print JSON (schema lineup.explain/1; of a perf.data lineup.samples/1, of a whole program lineup.code/1)
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) symbols: Symbols,
    /// Of a perf.data: compare the shares of functions in this file, which `lineup find --json` wrote, with those of the
    /// samples
    #[arg(long, value_name = "FIND_JSON")]
    pub(crate) find: Option<PathBuf>,
    /// Print what the calls used, for `lineup fleet add` on another machine (schema lineup.usage/1)
    #[arg(long, conflicts_with_all = ["json", "full", "top", "regions"])]
    pub(crate) usage: bool,
    /// Print comma-separated values instead: a line for each call, or for each member that calls used
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["json", "usage", "full", "top"])]
    pub(crate) csv: Option<Table>,
    /// Write a page with all of it to FILE, and print nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["csv", "usage", "full", "regions", "caches", "seconds", "trace"])]
    pub(crate) html: Option<PathBuf>,
    /// Write the calls to FILE as a trace that Perfetto opens (Chrome's trace events), and print nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["csv", "json", "usage", "full", "top", "regions"])]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) code: CodeOptions,
}

/// The rows of a table of comma-separated values.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Table {
    /// Each recorded call
    Calls,
    /// Each member and variable that calls used, by region and line
    Members,
}

pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => 64,
    };
    let bytes = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(1u64.checked_shl(shift)?));
    bytes.ok_or_else(|| "a number of bytes, such as 262144 or 256K".to_owned())
}

pub(crate) fn parse_seconds(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|seconds| *seconds > 0.0 && f64::is_finite(*seconds))
        .ok_or("more than 0".to_owned())
}
