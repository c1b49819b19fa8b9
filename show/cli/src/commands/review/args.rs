//! Arguments of `lineup review`.

use crate::options::surroundings::Surroundings;
use crate::options::values::{line_size, variable};
use anyhow::{Result, bail};
use clap::Args;
use lineup_model::line::LineSize;
use lineup_model::region::Region;
use lineup_review::FailIf;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Reviews a change: builds the commits before and after it, and compares layouts, lines per call and
/// promises. Prints a comment in Markdown; exits with 1 on the conditions of --fail-if.
///
/// Both commits are built in a scratch clone. The working tree and the refs of the repository are never touched.
#[derive(Args)]
pub(crate) struct Options {
    /// Revision of the branch that the change goes into; the review starts where the head left it
    #[arg(long, value_name = "REV")]
    pub(crate) base: String,
    /// Revision that the change leads to
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub(crate) head: String,
    /// Shell command that builds a checked-out commit, with debug information (-g)
    #[arg(long, value_name = "COMMAND")]
    pub(crate) build: Option<String>,
    /// Show what the builds print
    #[arg(long)]
    pub(crate) show_build: bool,
    /// Program, library or object file that the build makes, from the repository's top, whose types are compared; the
    /// program that is run when left out
    #[arg(long = "file", value_name = "FILE", required_unless_present = "command")]
    pub(crate) files: Vec<PathBuf>,
    /// Compare this type, wherever it is declared; when left out all types that the repository declares
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    /// Bytes in a cache line: 32, 64 or 128
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_size)]
    pub(crate) line_size: LineSize,
    /// The promises, from the repository's top, as the head has them
    #[arg(long, value_name = "LOCK", default_value = USUAL_GUARD)]
    pub(crate) guard: PathBuf,
    /// Function whose calls are recorded on both sides, callees included
    #[arg(long = "region", value_name = "F", requires = "command")]
    pub(crate) regions: Vec<Region>,
    /// Calls of each region to record at most, spread over the run
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) calls: u64,
    /// Recordings of each side: more of them show smaller changes in programs whose runs differ
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) runs: u64,
    /// Also run lineup find on both sides, and report new findings
    #[arg(long, requires = "command")]
    pub(crate) find: bool,
    /// Exit with 1 on this: guard, growth, split, lines, code-lines, instructions or finding; lines, code-lines and
    /// instructions take a bound: 'lines > +2%' [default: guard]
    #[arg(long, value_name = "RULE")]
    pub(crate) fail_if: Vec<FailIf>,
    /// Check this certificate of a study's patch again, and that the change is this patch; exit with 1 when it is not
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
    /// Also write regressions in SARIF, for code hosts
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
    /// Write the comment, or the JSON, to this file instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON (schema lineup.review/1)
    #[arg(long)]
    pub(crate) json: bool,
    /// Where the scratch clone and the builds are kept for the next review; else they are removed
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Add a variable to the program's environment
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = variable)]
    pub(crate) environment: Vec<(OsString, OsString)>,
    #[command(flatten)]
    pub(crate) limits: Surroundings,
    /// The program to record, run in each commit's folder, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

pub(crate) const USUAL_GUARD: &str = "lineup.lock";

impl Options {
    /// Files whose types are compared, from the repository's top.
    pub(super) fn compared(&self) -> Result<Vec<PathBuf>> {
        let files = match (self.files.as_slice(), self.command.first()) {
            ([], Some(program)) if Path::new(program).is_relative() && has_folder(program) => {
                vec![PathBuf::from(program)]
            }
            ([], _) => bail!("give the files whose types are compared with --file"),
            (files, _) => files.to_vec(),
        };
        match files.iter().find(|file| file.is_absolute()) {
            Some(file) => bail!("{}: --file is given from the repository's top", file.display()),
            None => Ok(files),
        }
    }
}

pub(crate) fn has_folder(program: &OsString) -> bool {
    program.as_encoded_bytes().contains(&b'/')
}
