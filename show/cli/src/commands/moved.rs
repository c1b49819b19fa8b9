//! Commands of the previous version, which name their replacements.

use crate::terminal::outcome::Outcome;
use anyhow::{Result, bail};
use clap::Args;
use std::ffi::OsString;

/// The words after the old name.
#[derive(Args)]
pub(crate) struct Moved {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<OsString>,
}

/// Refuses the old name.
pub(crate) fn run(old: &str, now: &str) -> Result<Outcome> {
    bail!("there is no `lineup {old}` any more; {now}")
}
