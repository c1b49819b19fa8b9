//! The command as it is installed: its recorders lie beside it.

use std::path::Path;
use std::process::Command;
use std::sync::Once;

static RECORDER: Once = Once::new();

/// `lineup`, with a recorder of the same state of the sources beside it.
pub(crate) fn lineup() -> Command {
    let command = Path::new(env!("CARGO_BIN_EXE_lineup"));
    RECORDER.call_once(|| build_recorder(command.parent().expect("a folder")));
    Command::new(command)
}

fn build_recorder(profile: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "--quiet",
        "--package",
        "lineup-plugin",
        "--package",
        "lineup-engine",
        "--target-dir",
    ]);
    cargo.arg(profile.parent().expect("cargo's folder for what it builds"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs");
    assert!(status.success(), "the recorder does not build");
}
