//! Arguments of `lineup advise`.

use super::groups::GroupOptions;
use super::weights::WeighingOptions;
use crate::options::advice::{AdviceOptions, ReportOptions};
use crate::types::guard::AssertionLanguage;
use clap::Args;
use lineup_model::line::LineSize;
use std::path::PathBuf;

/// Arguments of `lineup advise`.
#[derive(Args)]
pub(crate) struct Options {
    /// A recording made by `lineup record`
    pub(crate) recording: PathBuf,
    /// Folder with the recorded program's sources, and the program itself; never written to [default: .; for a kernel
    /// none: its types are written out as C]
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Option<PathBuf>,
    /// Shell command that builds the program in a copy of the source folder; a kernel is not built [default: that of
    /// CMake, Cargo, Meson or Ninja where files around the program show one, else make]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) build: Option<String>,
    /// Write the patch to this file; `not-built` is put into the name of a kernel's
    #[arg(long, value_name = "FILE")]
    pub(crate) patch: Option<PathBuf>,
    /// Write the guard to this file, for `lineup layout --check`
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "lineup.lock")]
    pub(crate) guard: Option<PathBuf>,
    /// Print the guard's promises as assertions that the compiler checks: in C (and C++), Rust, or as Linux writes
    /// them; in the language of the types when none is named
    #[arg(long, value_name = "LANGUAGE", num_args = 0..=1, require_equals = true, default_missing_value = "auto")]
    pub(crate) static_asserts: Option<AssertionLanguage>,
    #[command(flatten)]
    pub(crate) advice: AdviceOptions,
    #[command(flatten)]
    pub(crate) weighing: WeighingOptions,
    #[command(flatten)]
    pub(crate) groups: GroupOptions,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
    /// Predict the misses of the proposals, or of the orders in a file (`TYPE: member, align(64) group NAME { member
    /// }, rest`): the caches run again over the stream that `lineup record --kernel --stream` wrote
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = PROPOSED)]
    pub(crate) what_if: Option<PathBuf>,
    /// Print JSON (schema lineup.advice/2; lineup.what-if/2 with --what-if)
    #[arg(long)]
    pub(crate) json: bool,
}

impl Options {
    /// The size of lines that are counted, and whether JSON is printed.
    pub(crate) fn shown(&self) -> (LineSize, bool) {
        (self.advice.line_size, self.json)
    }
}

/// The meaning of `--what-if` without a file.
pub(crate) const PROPOSED: &str = "proposed";
