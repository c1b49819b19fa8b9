//! `lineup completions` and `lineup manual`: descriptions of the commands for a shell and for `man`, written from their
//! declarations.

use crate::terminal::outcome::Outcome;
use crate::terminal::output::write_result;
use anyhow::{Context, Result};
use clap_complete::Shell;
use std::path::PathBuf;

/// Which shell.
#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell that completes
    shell: Shell,
}

/// Where the pages go.
#[derive(clap::Args)]
pub(crate) struct Manual {
    /// Folder for the pages, which is made, such as ~/.local/share/man/man1
    folder: PathBuf,
}

/// Prints the script by which a shell completes `command`.
pub(crate) fn completions(options: &Completions, mut command: clap::Command) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "lineup", &mut script);
    write_result(None, &String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}

/// Writes a page for `command` and for each command below it.
pub(crate) fn manual(options: &Manual, command: clap::Command) -> Result<Outcome> {
    let folder = &options.folder;
    let doing = || format!("writing pages into {}", folder.display());
    std::fs::create_dir_all(folder).with_context(doing)?;
    clap_mangen::generate_to(command.disable_help_subcommand(true), folder).with_context(doing)?;
    Ok(Outcome::Done)
}
