//! Arguments of `lineup time`.

use super::interventions::InterventionOptions;
use crate::options::surroundings::Surroundings;
use crate::options::values;
use clap::Args;
use lineup_model::region::Region;
use std::ffi::OsString;

/// Arguments of `lineup time`.
#[derive(Args)]
pub(crate) struct Options {
    /// Function whose calls are timed, callees included; up to seven
    #[arg(long = "region", value_name = "F", required = true)]
    pub(crate) regions: Vec<Region>,
    /// Running process to attach to; Lineup detaches when enough calls were made (--stop-after), after
    /// --max-seconds, or with Ctrl-C
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=0x7fff_ffff), conflicts_with_all = ["command", "environment", "drive", "stdin"])]
    pub(crate) pid: Option<u32>,
    /// Time calls in the programs that the program starts, too: all calls of a function are added up
    #[arg(long, conflicts_with = "pid")]
    pub(crate) children: bool,
    /// Add a variable to the program's environment
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = values::variable)]
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Print JSON (schema lineup.time/1); the program's output then goes to standard error
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) interventions: InterventionOptions,
    #[command(flatten)]
    pub(crate) limits: Surroundings,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "pid", value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}
