//! The command as it is installed: its libraries lie next to it.

use std::path::Path;
use std::process::Command;
use std::sync::Once;

/// The files next to the command.
const LIBRARIES: [&str; 3] = ["liblineup_engine.so", "liblineup_plugin.so", "liblineup_heap.so"];

static CHECKED: Once = Once::new();

/// `lineup`, with its libraries next to it, built from the same sources. Cargo builds none of them for a test of the
/// command: `make built` does, and without it the first test says so.
pub(crate) fn lineup() -> Command {
    let command = Path::new(env!("CARGO_BIN_EXE_lineup"));
    let folder = command.parent().expect("a folder");
    CHECKED.call_once(|| LIBRARIES.iter().for_each(|name| drop(lineup_fixtures::built_in(folder, name))));
    Command::new(command)
}
