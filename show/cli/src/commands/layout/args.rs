//! Arguments of `lineup layout`.

use crate::options::values::line_size;
use crate::types::guard::AssertionLanguage;
use clap::{Args, ValueEnum};
use lineup_model::line::LineSize;
use std::path::PathBuf;

/// Arguments of `lineup layout`.
#[derive(Args)]
pub(crate) struct Options {
    /// Program, library, object file, or raw BTF such as /sys/kernel/btf/vmlinux
    pub(crate) file: PathBuf,
    /// Types to show in full, with or without namespaces; without any, a table of all types
    #[arg(value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    /// Bytes in a cache line: 32, 64 or 128
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_size)]
    pub(crate) line_size: LineSize,
    /// Show a table instead of members, in this order
    #[arg(long, value_enum)]
    pub(crate) sort: Option<Sort>,
    /// Show the whole result, instead of one screen: without types, all types with their members; a pipe always gets it
    #[arg(long, conflicts_with_all = ["sort", "json", "diff"])]
    pub(crate) full: bool,
    /// Write types as pahole 1.24 does, for what reads its output: those that are named, or else all
    #[arg(long, conflicts_with_all = ["sort", "full", "json", "diff", "check"])]
    pub(crate) pahole: bool,
    /// Show every row of the table, as a pipe always gets it
    #[arg(long, conflicts_with_all = ["types", "full", "pahole", "json", "diff"])]
    pub(crate) all: bool,
    /// Print JSON (schema lineup.layout/1, or lineup.layout-diff/1 with --diff)
    #[arg(long)]
    pub(crate) json: bool,
    /// Show what is different in OTHER: sizes, members that came, went, moved
    #[arg(long, value_name = "OTHER")]
    pub(crate) diff: Option<PathBuf>,
    /// The BTF image that a kernel module's split BTF continues
    #[arg(long, value_name = "FILE")]
    pub(crate) base: Option<PathBuf>,
    /// Read all of a large file, and neither use nor write the index by which types are found at once
    #[arg(long)]
    pub(crate) no_index: bool,
    /// Check that FILE keeps what a lineup.lock promises; exit 1 when a member has moved
    #[arg(long, value_name = "LOCK", conflicts_with_all = ["types", "sort", "full", "diff"])]
    pub(crate) check: Option<PathBuf>,
    /// With --check: print the promises as assertions that the compiler checks instead, when FILE keeps them: in C (and
    /// C++), Rust, or as Linux writes them; in the language of the types when none is named
    #[arg(long, value_name = "LANGUAGE", num_args = 0..=1, require_equals = true, default_missing_value = "auto", requires = "check", conflicts_with = "json")]
    pub(crate) static_asserts: Option<AssertionLanguage>,
}

/// Order of the table.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// Largest first
    Size,
    /// Most bytes in holes and padding first
    Holes,
    /// Most cache lines first
    Lines,
}
