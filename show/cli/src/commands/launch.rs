//! `lineup keep-child` and `lineup launch-child`, by which [`lineup_study`] starts programs. Not for users.

use crate::terminal::outcome::Outcome;
use anyhow::Result;
use lineup_study::placed::Placed;
use lineup_study::{keeper, launch};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
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
    /// The file that the program reads as standard input.
    #[arg(long, default_value = "/dev/null")]
    stdin: PathBuf,
    /// A copy of a folder, shown to the program at the path of the original.
    #[arg(long, requires = "original")]
    copy: Option<PathBuf>,
    /// The folder that the copy stands for.
    #[arg(long, requires = "copy")]
    original: Option<PathBuf>,
    /// A variable of the program's environment, `NAME=VALUE`.
    #[arg(long = "variable", allow_hyphen_values = true)]
    variables: Vec<OsString>,
    /// The first of the arguments that the program sees, where it is not the program's path.
    #[arg(long, allow_hyphen_values = true)]
    called: Option<OsString>,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Ends only by failing: success replaces the process.
pub(crate) fn run(launch: Launch) -> Result<Outcome> {
    let Launch { cpus, fixed_addresses, stdin, copy, original, variables, called, command } = launch;
    let environment = variables.iter().filter_map(|both| parted(both)).collect();
    let placed = copy.zip(original).map(|(copy, original)| Placed { copy, original });
    let launch = launch::Launch { cpus, fixed_addresses, stdin, placed, environment, command, called };
    match launch::run(&launch)? {}
}

/// Starts what runs a program, and keeps what comes from it, until standard input, which is the control socket, is
/// closed.
#[derive(clap::Args)]
pub(crate) struct Keep {
    /// The command of this program that runs the program.
    #[arg(trailing_var_arg = true, required = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Ends when the started processes have ended.
pub(crate) fn keep(keep: &Keep) -> Result<Outcome> {
    keeper::serve(&keep.command)?;
    Ok(Outcome::Done)
}

fn parted(variable: &OsStr) -> Option<(OsString, OsString)> {
    let at = variable.as_bytes().iter().position(|byte| *byte == b'=')?;
    let (name, value) = variable.as_bytes().split_at(at);
    Some((OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(&value[1..]).to_owned()))
}
