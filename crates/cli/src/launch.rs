//! `lineup launch-child`, by which [`lineup_study`] starts programs. Not for users.

use crate::outcome::Outcome;
use anyhow::Result;
use lineup_study::launch;
use lineup_study::placed::Placed;
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs a program on behalf of `lineup`; standard input is the control socket.
#[derive(clap::Args)]
pub(crate) struct Launch {
    /// CPUs that the program may run on.
    #[arg(long, value_delimiter = ',')]
    cpus: Vec<usize>,
    /// The program's parts lie at the same addresses in every run.
    #[arg(long)]
    fixed_addresses: bool,
    /// What the program reads as standard input.
    #[arg(long, default_value = "/dev/null")]
    stdin: PathBuf,
    /// A copy of a folder, shown to the program at the path of the original.
    #[arg(long, requires = "original")]
    copy: Option<PathBuf>,
    /// The folder that the copy stands for.
    #[arg(long, requires = "copy")]
    original: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Ends only by failing: success replaces the process.
pub(crate) fn run(launch: Launch) -> Result<Outcome> {
    let Launch { cpus, fixed_addresses, stdin, copy, original, command } = launch;
    let placed = copy.zip(original).map(|(copy, original)| Placed { copy, original });
    match launch::run(&launch::Launch { cpus, fixed_addresses, stdin, placed, command })? {}
}
