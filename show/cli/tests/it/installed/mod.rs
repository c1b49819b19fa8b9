//! The command as it is installed: its recorders lie next to it.

use std::path::Path;
use std::process::Command;
use std::sync::Once;

/// The files next to the command.
const RECORDERS: [&str; 2] = ["liblineup_engine.so", "liblineup_plugin.so"];

static CHECKED: Once = Once::new();

/// `lineup`, with its recorders next to it, built from the same sources. Cargo builds no recorder for a test of the
/// command: `make built` does, and without it the first test says so.
pub(crate) fn lineup() -> Command {
    let command = Path::new(env!("CARGO_BIN_EXE_lineup"));
    let folder = command.parent().expect("a folder");
    CHECKED.call_once(|| RECORDERS.iter().for_each(|name| drop(lineup_fixtures::built_in(folder, name))));
    Command::new(command)
}
