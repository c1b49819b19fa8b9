//! The installed emulator of whole systems.

use crate::error::{Doing, Error, Result};
use crate::process::tool;
use crate::recorder::on_path;
use lineup_kernel::machine::{OLDEST_EMULATOR, board, emulator_version};
use lineup_model::abi::Machine;
use std::path::PathBuf;
use std::process::Command;

/// An emulator of whole systems.
pub struct Emulator {
    /// Its file.
    pub command: PathBuf,
    /// Its version text.
    pub name: String,
    /// Major and minor version.
    pub version: (u32, u32),
}

/// The emulator for a machine, if it is new enough.
pub fn find_emulator(machine: Machine) -> Result<Emulator> {
    let board = board(machine)?;
    let (name, package) = (board.emulator, board.package);
    let command = on_path(name).ok_or_else(|| Error::not_installed(name, package))?;
    let output =
        tool::output(Command::new(&command).arg("--version")).doing_with(|| format!("running {name}"))?;
    let output = String::from_utf8_lossy(&output.stdout);
    let first = output.lines().next().unwrap_or_default().to_owned();
    let (major, minor) = OLDEST_EMULATOR;
    match emulator_version(&output) {
        Some(version) if version >= OLDEST_EMULATOR => Ok(Emulator { command, name: first, version }),
        Some(_) => Err(Error::Tool {
            tool: first,
            what: format!("is too old: {major}.{minor} or later is needed"),
            next: format!("on Debian 12 or later: apt install {package}"),
        }),
        None => Err(Error::Tool {
            tool: command.display().to_string(),
            what: format!("does not say its version, but {first:?}"),
            next: format!("on Debian: apt install {package}"),
        }),
    }
}
