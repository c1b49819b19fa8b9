//! `lineup mcp`: commands as tools for agents. Starts `lineup-mcp`, which speaks the protocol.

use crate::terminal::outcome::Outcome;
use anyhow::{Context, Result, bail};
use clap::Args;
use lineup_study::own_programs;
use std::ffi::OsString;

/// The program that is started.
const PROGRAM: &str = "lineup-mcp";

/// The command that installs it from Lineup's sources.
const INSTALL: &str = "cargo install --locked --path mcp (in Lineup's sources)";

/// Offers find, layout, explain, advise and study as tools to an agent, over standard input and output
#[derive(Args)]
pub(crate) struct Options {
    /// Let tools start programs and builds that the agent names: find, and advise with a build
    #[arg(long)]
    allow_run: bool,
    /// Let tools write files that the agent names, and start programs: study
    #[arg(long)]
    allow_write: bool,
}

/// Runs `lineup mcp`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let program = own_programs::find(PROGRAM, INSTALL)?;
    let own = std::env::current_exe().context("cannot find the path of this program")?;
    let mut arguments = vec![OsString::from("--lineup"), own.into_os_string()];
    let allowed = [(options.allow_run, "--allow-run"), (options.allow_write, "--allow-write")];
    arguments
        .extend(allowed.into_iter().filter(|(is_allowed, _)| *is_allowed).map(|(_, option)| option.into()));
    let status = own_programs::run(&program, &arguments)?;
    match status.code() {
        Some(0) => Ok(Outcome::Done),
        // It has reported its error.
        Some(code) => std::process::exit(code),
        None => bail!("{PROGRAM} was ended: {status}"),
    }
}
