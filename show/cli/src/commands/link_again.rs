//! `lineup link-again`, by which [`lineup_study`] links programs in several layouts. Not for users.

use crate::terminal::outcome::Outcome;
use anyhow::Result;
use lineup_study::source::relink::{Again, serve};
use std::ffi::OsString;
use std::path::PathBuf;

/// Stands for a linker in a build.
#[derive(clap::Args)]
pub(crate) struct LinkAgain {
    /// How often a program is linked besides.
    #[arg(long)]
    links: u64,
    /// Seed of the random choices.
    #[arg(long)]
    seed: u64,
    /// The folder for the links.
    #[arg(long)]
    into: PathBuf,
    /// The linker and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Links as asked, and in other layouts.
pub(crate) fn run(options: LinkAgain) -> Result<Outcome> {
    let LinkAgain { links, seed, into, command } = options;
    Ok(match serve(&Again { links, seed, into, command })? {
        true => Outcome::Done,
        false => Outcome::Finding,
    })
}
